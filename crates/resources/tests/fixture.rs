//! A server's objects in memory, and requests in few words.

use std::sync::Arc;

use auth::User;
use object::{Map, Value, json};
use resources::admission::Chain;
use resources::body::{Body, Media};
use resources::options::{DeleteOptions, WriteOptions};
use resources::record::Stored;
use resources::{Deleted, Error, PatchType, Request, Resources, Warnings, Written, WrittenObject};
use store::{FalseClock, Options, Store};

/// Objects with the bootstrap's, and every plugin but those named.
pub(crate) async fn server_without(plugins: &[&str]) -> Resources {
    server_with(&[], plugins).await
}

/// Objects with the bootstrap's, and the usual plugins with some more and without others.
pub(crate) async fn server_with(enabled: &[&str], disabled: &[&str]) -> Resources {
    start(enabled, disabled).await.0
}

async fn start(enabled: &[&str], disabled: &[&str]) -> (Resources, Arc<FalseClock>) {
    let names = |list: &[&str]| list.iter().map(|name| (*name).to_owned()).collect();
    let (enabled, disabled): (Vec<String>, Vec<String>) = (names(enabled), names(disabled));
    let clock = Arc::new(FalseClock::new(1_700_000_000_000));
    let store = Store::memory(Options {
        clock: clock.clone(),
        ..Options::default()
    });
    let chain = Chain::new(&enabled, &disabled).expect("the plugins are known");
    let resources = Resources::new(store, clock.clone(), chain);
    let address = "127.0.0.1:6443".parse().expect("an address");
    resources
        .bootstrap(address)
        .await
        .expect("the bootstrap works");
    (resources, clock)
}

/// Objects without the plugin that wants a controller to make service accounts.
pub(crate) async fn server() -> Resources {
    server_without(&["ServiceAccount"]).await
}

/// The same, and the clock that it goes by.
pub(crate) async fn server_and_clock() -> (Resources, Arc<FalseClock>) {
    start(&[], &["ServiceAccount"]).await
}

/// A request, in the namespace `default` unless another is named.
pub(crate) struct Ask<'a> {
    pub(crate) resources: &'a Resources,
    pub(crate) group: &'a str,
    pub(crate) resource: &'a str,
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
    pub(crate) subresource: &'a str,
    pub(crate) user: User,
    pub(crate) dry_run: bool,
    pub(crate) warnings: Warnings,
}

impl<'a> Ask<'a> {
    /// About a collection of the group's version 1.
    pub(crate) fn new(resources: &'a Resources, group: &'a str, resource: &'a str) -> Ask<'a> {
        let user = User::authenticated("admin", "admin", &["system:masters"]);
        Ask {
            resources,
            group,
            resource,
            namespace: "default",
            name: "",
            subresource: "",
            user,
            dry_run: false,
            warnings: Warnings::default(),
        }
    }

    pub(crate) fn named(self, name: &'a str) -> Ask<'a> {
        Ask { name, ..self }
    }

    pub(crate) fn within(self, namespace: &'a str) -> Ask<'a> {
        Ask { namespace, ..self }
    }

    pub(crate) fn under(self, subresource: &'a str) -> Ask<'a> {
        Ask {
            subresource,
            ..self
        }
    }

    pub(crate) fn dry(self) -> Ask<'a> {
        Ask {
            dry_run: true,
            ..self
        }
    }

    pub(crate) async fn create(&self, object: Value) -> Result<Value, Error> {
        let options = self.options();
        self.shown(
            self.resources
                .create(&self.request(&options), &body(object))
                .await,
        )
    }

    pub(crate) async fn update(&self, object: Value) -> Result<Value, Error> {
        let options = self.options();
        self.shown(
            self.resources
                .update(&self.request(&options), &body(object))
                .await,
        )
    }

    pub(crate) async fn update_scale(&self, scale: Value) -> Result<Value, Error> {
        let options = self.options();
        self.shown(
            self.resources
                .update_scale(&self.request(&options), &body(scale))
                .await,
        )
    }

    pub(crate) async fn merge(&self, patch: Value) -> Result<Value, Error> {
        let options = self.options();
        let request = self.request(&options);
        self.shown(
            self.resources
                .patch(&request, PatchType::Merge, &body(patch))
                .await,
        )
    }

    pub(crate) async fn strategic(&self, patch: Value) -> Result<Value, Error> {
        let options = self.options();
        let request = self.request(&options);
        self.shown(
            self.resources
                .patch(&request, PatchType::Strategic, &body(patch))
                .await,
        )
    }

    /// Whether anybody owns a field of the object.
    pub(crate) async fn is_owned(&self) -> bool {
        let options = self.options();
        let request = self.request(&options);
        let found = self
            .resources
            .get(request.kind, request.namespace, request.name, None);
        let record = found.await.expect("it is there");
        let stored = Stored::new(&record.value).expect("a record");
        !stored.managed_fields().is_empty()
    }

    pub(crate) async fn delete(&self) -> Result<Deleted, Error> {
        self.delete_with(DeleteOptions::default()).await
    }

    pub(crate) async fn delete_with(&self, delete: DeleteOptions) -> Result<Deleted, Error> {
        let options = self.options();
        let delete = DeleteOptions {
            dry_run: self.dry_run,
            ..delete
        };
        self.resources
            .delete(&self.request(&options), &delete)
            .await
    }

    /// Deletes without any grace.
    pub(crate) async fn delete_now(&self) -> Result<Deleted, Error> {
        let options = self.options();
        let delete = DeleteOptions {
            grace_period_seconds: Some(0),
            ..DeleteOptions::default()
        };
        self.resources
            .delete(&self.request(&options), &delete)
            .await
    }

    pub(crate) async fn admit_connection(&self, kind: &str, wanted: Value) -> Result<(), Error> {
        let options = self.options();
        let wanted = wanted.as_object().cloned().unwrap_or_default();
        self.resources
            .admit_connection(&self.request(&options), kind, wanted)
            .await
    }

    pub(crate) async fn connect(&self, container: &str) -> Result<(), Error> {
        let options = self.options();
        self.resources
            .connect(&self.request(&options), container)
            .await
    }

    fn options(&self) -> WriteOptions {
        WriteOptions {
            manager: "tester".into(),
            dry_run: self.dry_run,
            ..WriteOptions::default()
        }
    }

    fn request<'r>(&'r self, options: &'r WriteOptions) -> Request<'r> {
        let kind = kinds::Catalogue::builtin().resource(self.group, "v1", self.resource);
        let kind = kind.expect("the kind is built in");
        Request {
            kind,
            namespace: if kind.namespaced { self.namespace } else { "" },
            name: self.name,
            subresource: self.subresource,
            user: &self.user,
            options,
            warnings: &self.warnings,
        }
    }

    fn shown(&self, written: Result<Written, Error>) -> Result<Value, Error> {
        written.map(|written| match written.object {
            WrittenObject::Virtual(object) => Value::Object(object),
            WrittenObject::Stored { value, revision } => {
                let stored = Stored::new(&value).expect("a record");
                let tree: Map = stored.tree(revision).expect("a tree");
                Value::Object(tree)
            }
        })
    }
}

fn body(object: Value) -> Body {
    Body {
        media: Media::Json,
        bytes: json::to_vec(&object).into(),
    }
}

/// The text of a refusal.
pub(crate) fn refusal(result: Result<Value, Error>) -> String {
    result.expect_err("this is refused").to_string()
}
