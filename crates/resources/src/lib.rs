//! What each verb does to stored objects; the only writer to the store.
//!
//! `write.rs` is the place to read first: every create, replace, patch and apply passes the same
//! steps there, from the current object to the commit.

pub mod accounts;
mod actions;
pub mod admission;
mod aggregation;
mod allocate;
mod apply;
pub mod authorization;
pub mod body;
pub mod bootstrap;
mod controllers;
mod conversion;
mod definitions;
mod delete;
pub mod encryption;
pub mod error;
mod hooks;
pub mod ids;
mod meta;
pub mod options;
mod ownership;
mod patch;
mod present;
mod read;
pub mod record;
mod repeated;
mod report;
mod reviews;
mod roles;
mod scale;
mod watch;
mod write;
mod zones;

use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use auth::{Authenticator, Issuer, User};
use kinds::{Catalogue, Kind};
use object::Text;
use object::time::Time;
use store::{Clock, Store};
use tokio::sync::watch::{Receiver, Sender};

pub use actions::is_connection;
pub use aggregation::{Availability, RemoteApi};
pub use controllers::Controller;
pub use delete::Deleted;
pub use error::Error;
use error::Subject;
pub use patch::PatchType;
pub use read::Listed;
pub use store::{Record, Revision};
pub use watch::{Initial, Notice, Watching};
pub use write::{Written, WrittenObject};

/// The objects of a server and what can be done with them. Clones are the same objects.
#[derive(Clone)]
pub struct Resources {
    store: Store,
    clock: Arc<dyn Clock>,
    /// What is served now; definitions of custom kinds replace it.
    catalogue: Arc<ArcSwap<Catalogue>>,
    admission: Arc<admission::Chain>,
    allocations: allocate::Allocations,
    /// Whom bearer tokens stand for, for reviews of tokens.
    authenticator: Option<Arc<Authenticator>>,
    /// Signs the tokens of service accounts.
    issuer: Option<Arc<Issuer>>,
    roles: Arc<roles::Roles>,
    /// Who decides what users may do.
    modes: authorization::Modes,
    hooks: Arc<hooks::Hooks>,
    repeated: Arc<repeated::Repeated>,
    /// What managers were seen to own.
    known_sets: Arc<::apply::KnownSets>,
    quotas: Arc<admission::Quotas>,
    server_side_apply: bool,
    /// How far the definitions of custom kinds have taken effect.
    definitions: Arc<definitions::Progress>,
    /// Counts the catalogues that were served.
    served: Arc<Sender<u64>>,
}

/// What a write is about and who asks for it.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// The kind of the endpoint.
    pub kind: &'a Arc<Kind>,
    /// The namespace of the path; empty for cluster-scoped kinds.
    pub namespace: &'a str,
    /// The name of the path; empty for a create.
    pub name: &'a str,
    /// The subresource; empty for the object itself.
    pub subresource: &'a str,
    /// Who asks.
    pub user: &'a User,
    /// How.
    pub options: &'a options::WriteOptions,
    /// Where advice for the client goes, be the request answered or refused.
    pub warnings: &'a Warnings,
}

/// Advice for a client, collected while its request is worked on, and notes for the audit log.
#[derive(Debug, Default)]
pub struct Warnings(Mutex<Vec<String>>, Mutex<Vec<(String, String)>>);

impl Warnings {
    /// Adds advice.
    pub fn add(&self, more: impl IntoIterator<Item = String>) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .extend(more);
    }

    /// Whether nothing has been said.
    pub(crate) fn is_empty(&self) -> bool {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .is_empty()
    }

    /// Notes something for the audit log.
    pub fn annotate(&self, key: String, value: String) {
        let mut notes = self.1.lock().unwrap_or_else(PoisonError::into_inner);
        // The first note of a key stays, as it does upstream.
        if notes.iter().all(|(known, _)| *known != key) {
            notes.push((key, value));
        }
    }

    /// Notes something for the audit log beside what was noted under the same key.
    pub(crate) fn annotate_more(&self, key: String, value: String) {
        let mut notes = self.1.lock().unwrap_or_else(PoisonError::into_inner);
        match notes.iter_mut().find(|(known, _)| *known == key) {
            None => notes.push((key, value)),
            Some((_, known)) if known.split(", ").any(|part| part == value) => {}
            Some((_, known)) => {
                known.push_str(", ");
                known.push_str(&value);
            }
        }
    }

    /// What admission notes for the audit log, as annotations of the event.
    pub fn annotations(&self) -> Vec<(String, String)> {
        self.1
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Everything said so far.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Resources {
    /// Serves the objects of `store`.
    pub fn new(store: Store, clock: Arc<dyn Clock>, admission: admission::Chain) -> Resources {
        let catalogue = ArcSwap::new(Arc::clone(Catalogue::builtin()));
        zones::offer();
        Resources {
            hooks: Arc::new(hooks::Hooks::new(&store)),
            store,
            clock,
            catalogue: Arc::new(catalogue),
            admission: Arc::new(admission),
            allocations: allocate::Allocations::default(),
            authenticator: None,
            issuer: None,
            roles: Arc::default(),
            modes: authorization::Modes::new(vec![authorization::Mode::Rbac]),
            repeated: Arc::default(),
            known_sets: Arc::default(),
            quotas: Arc::default(),
            server_side_apply: true,
            definitions: Arc::default(),
            served: Arc::new(Sender::new(0)),
        }
    }

    /// Switches server-side apply, and with it all tracking of owners, on or off.
    pub fn with_server_side_apply(self, server_side_apply: bool) -> Resources {
        Resources {
            server_side_apply,
            ..self
        }
    }

    /// Lets reviews of tokens find out whom a token stands for.
    pub fn with_authenticator(self, authenticator: Arc<Authenticator>) -> Resources {
        Resources {
            authenticator: Some(authenticator),
            ..self
        }
    }

    /// Signs tokens of service accounts for those who ask for them.
    pub fn with_issuer(self, issuer: Arc<Issuer>) -> Resources {
        Resources {
            issuer: Some(issuer),
            ..self
        }
    }

    /// The signer of service accounts' tokens.
    pub fn issuer(&self) -> Option<&Arc<Issuer>> {
        self.issuer.as_ref()
    }

    /// Whether server-side apply is switched on.
    pub fn has_server_side_apply(&self) -> bool {
        self.server_side_apply
    }

    /// Drops what only makes the next writes faster.
    pub fn rest(&self) {
        self.known_sets.clear();
    }

    /// The store behind the objects.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The kinds that are served now.
    pub fn catalogue(&self) -> Arc<Catalogue> {
        self.catalogue.load_full()
    }

    /// Whether a kind is served now, just as it is described here or on its way out.
    pub fn serves(&self, kind: &Arc<Kind>) -> bool {
        let catalogue = self.catalogue.load();
        let now = catalogue.resource(&kind.group, &kind.version, &kind.resource);
        now.is_some_and(|now| Arc::ptr_eq(now, kind) || is_ending(kind, now))
    }

    /// Tells when other kinds are served.
    pub fn catalogue_changes(&self) -> Receiver<u64> {
        self.served.subscribe()
    }

    /// The kind in the form in which its objects are stored.
    pub fn stored_kind(&self, kind: &Arc<Kind>) -> Arc<Kind> {
        Arc::clone(self.catalogue.load().stored_kind(kind))
    }

    /// Whether objects of `kind` are stored as they are served.
    ///
    /// Records of custom kinds always come in the form that was asked for.
    pub fn is_stored_form(&self, kind: &Arc<Kind>) -> bool {
        kind.is_custom() || Arc::ptr_eq(self.catalogue.load().stored_kind(kind), kind)
    }

    /// Seconds since the start of 1970.
    pub fn now(&self) -> i64 {
        i64::try_from(self.clock.now_millis() / 1000).unwrap_or(i64::MAX)
    }

    /// The time as metadata carries it.
    fn now_text(&self) -> Text {
        Time::from_unix_seconds(self.now()).to_string().into()
    }
}

/// An object of `kind` as messages name it.
fn subject(kind: &Kind, name: &str) -> Subject {
    Subject {
        group: kind.group.clone(),
        resource: kind.resource.clone(),
        name: name.into(),
    }
}

/// An object of `kind` as messages about invalid fields name it.
fn kind_subject(kind: &Kind, name: &str) -> Subject {
    Subject {
        group: kind.group.clone(),
        resource: kind.kind.clone(),
        name: name.into(),
    }
}

/// Whether all that happened to a custom kind is that its definition is being deleted. Whoever
/// watches its objects sees them go.
fn is_ending(kind: &Kind, now: &Kind) -> bool {
    match (&kind.custom, &now.custom) {
        (Some(kind), Some(now)) => {
            now.terminating && !kind.terminating && (&now.tag, now.since) == (&kind.tag, kind.since)
        }
        _ => false,
    }
}
