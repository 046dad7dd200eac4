//! Small controllers for a server without a kube-controller-manager.
//!
//! A namespace that lives has a service account `default` and the certificate of the API server; a
//! namespace that is being deleted is emptied and then let go. They write through the same path as
//! everyone else. One task does all of it, namespace by namespace.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use auth::User;
use kinds::{Catalogue, Kind};
use object::{Value, json, value};
use store::Range;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tracing::{debug, warn};

use crate::body::{Body, Media};
use crate::error::Error;
use crate::options::{DeleteOptions, Propagation, WriteOptions};
use crate::record::Stored;
use crate::write::Draft;
use crate::{Request, Resources, Warnings};

/// Objects of a namespace that are deleted side by side, so that they share syncs.
const DELETIONS_AT_A_TIME: usize = 64;
/// A namespace that is not done is looked at again after this long, then after longer.
const AGAIN_FIRST: Duration = Duration::from_millis(50);
const AGAIN_LAST: Duration = Duration::from_secs(5);

/// What a namespace needs from its controllers.
struct Namespaces {
    resources: Resources,
    kind: Arc<Kind>,
    accounts: Arc<Kind>,
    config_maps: Arc<Kind>,
    certificate: String,
    user: User,
    options: WriteOptions,
}

/// What is left to do about a namespace.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    Done,
    Again,
}

impl Resources {
    /// Tends namespaces until the task is dropped; `certificate` is that of the API's authority.
    pub async fn run_controllers(self, certificate: String) {
        let kind = |resource| {
            Catalogue::builtin()
                .resource("", "v1", resource)
                .map(Arc::clone)
        };
        let (Some(namespaces), Some(accounts), Some(config_maps)) = (
            kind("namespaces"),
            kind("serviceaccounts"),
            kind("configmaps"),
        ) else {
            return warn!("controllers do not run: their kinds are not served");
        };
        let controller = Namespaces {
            kind: namespaces,
            accounts,
            config_maps,
            certificate,
            user: User::server(),
            options: WriteOptions {
                manager: "kube-controller-manager".into(),
                ..WriteOptions::default()
            },
            resources: self,
        };
        loop {
            // It ends when it fell behind the history: then everything is looked at again.
            if let Err(error) = controller.run().await {
                debug!(%error, "controllers start over");
            }
            tokio::time::sleep(AGAIN_FIRST).await;
        }
    }
}

impl Namespaces {
    async fn run(&self) -> Result<(), store::Error> {
        let store = &self.resources.store;
        let page = store.range(&self.kind.collection, Range::default()).await?;
        let mut due: BTreeMap<String, (Instant, Duration)> = BTreeMap::new();
        let now = Instant::now();
        for record in &page.records {
            due.insert(record.name.to_string(), (now, AGAIN_FIRST));
        }
        let mut namespaces = store.watch(&self.kind.collection, page.revision).await?;
        let mut accounts = store
            .watch(&self.accounts.collection, page.revision)
            .await?;
        loop {
            let next = due.iter().min_by_key(|(_, (when, _))| *when);
            let next = next.map(|(name, (when, wait))| (name.clone(), *when, *wait));
            let wake = next.as_ref().map_or(Instant::now(), |(_, when, _)| *when);
            tokio::select! {
                event = namespaces.next() => {
                    let name = event?.record.name.to_string();
                    due.insert(name, (Instant::now(), AGAIN_FIRST));
                }
                event = accounts.next() => {
                    let event = event?;
                    if let (true, Some((namespace, _))) =
                        (event.deleted, event.record.name.split_once('/'))
                    {
                        due.insert(namespace.to_owned(), (Instant::now(), AGAIN_FIRST));
                    }
                }
                () = sleep_until(wake), if next.is_some() => {
                    let Some((name, _, wait)) = next else { continue };
                    due.remove(&name);
                    if self.tend(&name).await == Progress::Again {
                        let again = (wait * 2).min(AGAIN_LAST);
                        due.insert(name, (Instant::now() + wait, again));
                    }
                }
            }
        }
    }

    async fn tend(&self, namespace: &str) -> Progress {
        let tended = self.tend_or_fail(namespace).await;
        tended.unwrap_or_else(|error| {
            debug!(namespace, %error, "a namespace is tended again later");
            Progress::Again
        })
    }

    async fn tend_or_fail(&self, namespace: &str) -> Result<Progress, Error> {
        let record = match self.resources.get(&self.kind, "", namespace, None).await {
            Err(Error::NotFound(_)) => return Ok(Progress::Done),
            other => other?,
        };
        let deleting = Stored::new(&record.value).is_ok_and(|stored| stored.is_deleting());
        if deleting {
            return self.empty(namespace).await;
        }
        let account = value!({"metadata": {"name": "default"}});
        self.make(&self.accounts, namespace, "default", account)
            .await?;
        let name = "kube-root-ca.crt";
        let certificate = value!({
            "metadata": {"name": name},
            "data": {"ca.crt": (self.certificate.as_str())},
        });
        self.make(&self.config_maps, namespace, name, certificate)
            .await?;
        Ok(Progress::Done)
    }

    fn request<'a>(
        &'a self,
        kind: &'a Arc<Kind>,
        namespace: &'a str,
        name: &'a str,
        warnings: &'a Warnings,
    ) -> Request<'a> {
        Request {
            kind,
            namespace,
            name,
            subresource: "",
            user: &self.user,
            options: &self.options,
            warnings,
        }
    }

    async fn make(
        &self,
        kind: &Arc<Kind>,
        namespace: &str,
        name: &str,
        object: Value,
    ) -> Result<(), Error> {
        match self.resources.get(kind, namespace, name, None).await {
            Err(Error::NotFound(_)) => {}
            other => return other.map(|_| ()),
        }
        let body = Body {
            media: Media::Json,
            bytes: json::to_vec(&object).into(),
        };
        let warnings = Warnings::default();
        let request = self.request(kind, namespace, "", &warnings);
        match self.resources.create(&request, &body).await {
            Ok(_) | Err(Error::AlreadyExists(_) | Error::NotFound(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Deletes what is in a namespace, and lets the namespace go once nothing is.
    async fn empty(&self, namespace: &str) -> Result<Progress, Error> {
        let prefix = format!("{namespace}/");
        let mut left = 0;
        for kind in self.deletable() {
            let range = Range {
                prefix: &prefix,
                ..Range::default()
            };
            let page = self.resources.store.range(&kind.collection, range).await;
            let page = page.map_err(|error| Error::from_store(error, Default::default))?;
            for records in page.records.chunks(DELETIONS_AT_A_TIME) {
                let names = records
                    .iter()
                    .map(|record| record.name[prefix.len()..].to_owned());
                self.delete_all(&kind, namespace, names).await?;
            }
            left += self.resources.store.count(&kind.collection, &prefix).await;
        }
        if left > 0 {
            return Ok(Progress::Again);
        }
        self.finalize(namespace).await
    }

    /// Every namespaced kind once, in the form that is stored.
    fn deletable(&self) -> Vec<Arc<Kind>> {
        let stored = |kind: &&Arc<Kind>| {
            kind.namespaced
                && kind.verbs.iter().any(|verb| verb == "delete")
                && self.resources.is_stored_form(kind)
        };
        let catalogue = self.resources.catalogue();
        catalogue
            .kinds()
            .iter()
            .filter(stored)
            .map(Arc::clone)
            .collect()
    }

    async fn delete_all(
        &self,
        kind: &Arc<Kind>,
        namespace: &str,
        names: impl Iterator<Item = String>,
    ) -> Result<(), Error> {
        let mut tasks = JoinSet::new();
        for name in names {
            let (resources, kind) = (self.resources.clone(), Arc::clone(kind));
            let (namespace, user) = (namespace.to_owned(), self.user.clone());
            let write = self.options.clone();
            tasks.spawn(async move {
                let options = DeleteOptions {
                    propagation: Some(Propagation::Background),
                    ..DeleteOptions::default()
                };
                let request = Request {
                    kind: &kind,
                    namespace: &namespace,
                    name: &name,
                    subresource: "",
                    user: &user,
                    options: &write,
                    warnings: &Warnings::default(),
                };
                match resources.delete(&request, &options).await {
                    Ok(_) | Err(Error::NotFound(_)) => Ok(()),
                    Err(error) => Err(error),
                }
            });
        }
        while let Some(done) = tasks.join_next().await {
            done.map_err(|error| Error::Internal(error.to_string()))??;
        }
        Ok(())
    }

    /// Takes the last hold off an empty namespace.
    async fn finalize(&self, namespace: &str) -> Result<Progress, Error> {
        let warnings = Warnings::default();
        let mut request = self.request(&self.kind, "", namespace, &warnings);
        request.subresource = "finalize";
        let Some(live) = self.resources.live(&request).await? else {
            return Ok(Progress::Done);
        };
        let mut object = live.map().clone();
        object.object_at("spec").remove("finalizers");
        let owners = live.owners.clone();
        let finished = self
            .resources
            .finish_update(&request, &live, Draft { object, owners });
        finished.await?;
        // Finalizers of its own may still hold it; whoever removes them ends it.
        Ok(Progress::Done)
    }
}
