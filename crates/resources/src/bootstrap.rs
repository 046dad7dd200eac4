//! The objects that exist from the first start on.
//!
//! They are written through the normal write path as manager `kube-apiserver`; what an operator
//! deleted comes back at the next start, what an operator changed stays changed.

mod networking;

pub use self::networking::advertised;

use std::net::SocketAddr;
use std::sync::Arc;

use auth::User;
use kinds::{Catalogue, Kind};
use object::{Value, json, value};
use tokio::task::JoinSet;

use crate::accounts::day;
use crate::body::{Body, Media};
use crate::error::Error;
use crate::options::WriteOptions;
use crate::{Request, Resources, Warnings};

/// One object a line: API version, resource, object.
const OBJECTS: &str = include_str!("bootstrap.jsonl");
/// Controllers look here for the day since when uses of tokens in Secrets are noted.
const TOKEN_TRACKING: &str = "kube-apiserver-legacy-service-account-token-tracking";

impl Resources {
    /// Makes sure that every bootstrap object exists; `address` is where the server listens.
    pub async fn bootstrap(&self, address: SocketAddr) -> Result<(), Error> {
        self.load_allocations().await?;
        let mut namespaces = Vec::new();
        let mut others = Vec::new();
        for line in OBJECTS.lines() {
            let (kind, object) = self.read_line(line)?;
            if kind.kind == "Namespace" {
                namespaces.push((kind, object));
            } else {
                others.push((kind, object));
            }
        }
        others.push(self.token_tracking()?);
        let own = networking::own_objects(address)?;
        others.extend(
            own.iter()
                .map(|own| (Arc::clone(&own.kind), own.object.clone())),
        );
        self.make_all(namespaces).await?;
        self.make_all(others).await?;
        self.keep_current(&own).await;
        self.report_service_range().await
    }

    fn token_tracking(&self) -> Result<(Arc<Kind>, Value), Error> {
        let object = value!({
            "metadata": {"name": TOKEN_TRACKING, "namespace": "kube-system"},
            "data": {"since": (day(self.now()))},
        });
        let kind = self.built_in(("", "v1", "configmaps"))?;
        Ok((Arc::clone(kind), object))
    }

    /// Makes objects side by side, so that they share the syncs of the store.
    async fn make_all(&self, objects: Vec<(Arc<Kind>, Value)>) -> Result<(), Error> {
        let mut tasks = JoinSet::new();
        for (kind, object) in objects {
            let resources = self.clone();
            tasks.spawn(async move { resources.make(&kind, object).await });
        }
        while let Some(done) = tasks.join_next().await {
            done.map_err(|error| Error::Internal(error.to_string()))??;
        }
        Ok(())
    }

    /// Makes an object unless there is one of its name.
    pub(crate) async fn make(&self, kind: &Arc<Kind>, object: Value) -> Result<(), Error> {
        let text = |field| {
            object
                .str_at(&["metadata", field])
                .unwrap_or_default()
                .to_owned()
        };
        let (namespace, name) = (text("namespace"), text("name"));
        match self.get(kind, &namespace, &name, None).await {
            Err(Error::NotFound(_)) => {}
            other => return other.map(|_| ()),
        }
        let options = WriteOptions {
            manager: manager(kind).into(),
            ..WriteOptions::default()
        };
        let user = User::server();
        let request = Request {
            kind,
            namespace: &namespace,
            name: "",
            subresource: "",
            user: &user,
            options: &options,
            warnings: &Warnings::default(),
        };
        let body = Body {
            media: Media::Json,
            bytes: json::to_vec(&object).into(),
        };
        match self.create(&request, &body).await {
            Ok(_) | Err(Error::AlreadyExists(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn read_line(&self, line: &str) -> Result<(Arc<Kind>, Value), Error> {
        let damaged = || Error::Internal(format!("bootstrap object cannot be read: {line}"));
        let parsed = json::parse(line.as_bytes()).map_err(|_| damaged())?;
        let Value::Array(parts) = parsed else {
            return Err(damaged());
        };
        let [Value::String(api_version), Value::String(resource), object] = parts.as_slice() else {
            return Err(damaged());
        };
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let kind = Catalogue::builtin()
            .resource(group, version, resource)
            .ok_or_else(damaged)?;
        Ok((Arc::clone(kind), object.clone()))
    }
}

/// The part of the server that makes objects of a kind, as upstream names it.
fn manager(kind: &Kind) -> &'static str {
    match kind.group.as_str() {
        "flowcontrol.apiserver.k8s.io" => "api-priority-and-fairness-config-producer-v1",
        _ => "kube-apiserver",
    }
}
