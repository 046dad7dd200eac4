//! APIs that others serve, and the objects that say who serves which.
//!
//! Every group and version that is served here has an APIService of its own, kept without anybody's
//! help; one with a service behind it is somebody else's, and says whether they can be reached.
//! Contract: upstream's `kube-aggregator/pkg/controllers`.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kinds::groups::api_priority;
use kinds::{Catalogue, Kind};
use object::{Map, Text, Value, value};
use store::{Range, Revision};
use tracing::debug;

use crate::error::Error;
use crate::meta::meta;
use crate::options::{DeleteOptions, WriteOptions};
use crate::record::Stored;
use crate::{Request, Resources, Warnings};

const AUTOMANAGED: &str = "kube-aggregator.kubernetes.io/automanaged";
const SERVICE_NAME: &str = "kubernetes.io/service-name";
const HTTPS_PORT: u16 = 443;
/// The places of custom groups among groups, and of their versions.
const CUSTOM_PRIORITIES: (i64, i64) = (1000, 100);

/// What says who serves what, and then where they are: group and resource.
const PLACES: [(&str, &str); 3] = [
    ("apiregistration.k8s.io", "apiservices"),
    ("", "services"),
    ("discovery.k8s.io", "endpointslices"),
];

/// A group and version that somebody else serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteApi {
    /// The name of its APIService.
    pub name: String,
    /// The group.
    pub group: String,
    /// The version.
    pub version: String,
    /// The namespace of the service behind it.
    pub namespace: String,
    /// The name of the service behind it.
    pub service: String,
    /// The port of that service.
    pub port: u16,
    /// Whom to trust, as PEM; empty for whomever the system trusts.
    pub bundle: Vec<u8>,
    /// Whether to trust whoever answers.
    pub insecure: bool,
    /// The place of its group among the groups, and of its version in the group.
    pub priorities: (i64, i64),
    /// Whether it could be reached last time.
    pub available: bool,
}

/// Whether an API can be reached, and why not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Availability {
    /// Whether it can.
    pub available: bool,
    /// A word for programs.
    pub reason: &'static str,
    /// A sentence for people.
    pub message: String,
}

impl Availability {
    /// It cannot.
    pub fn no(reason: &'static str, message: String) -> Availability {
        Availability {
            available: false,
            reason,
            message,
        }
    }
}

impl Resources {
    /// Keeps an APIService for everything that is served here, until the task is dropped.
    pub async fn run_registration(self) {
        let mut changes = self.catalogue_changes();
        loop {
            if let Err(error) = self.register_apis().await {
                debug!(%error, "an API is registered later");
            }
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    async fn register_apis(&self) -> Result<(), Error> {
        let Some(kind) = api_services() else {
            return Ok(());
        };
        let catalogue = self.catalogue();
        let mut names = Vec::new();
        for group in catalogue.groups() {
            let mut known = Catalogue::builtin().groups().iter();
            let built_in = known.any(|known| known.name == group.name);
            for version in &group.versions {
                let priorities = api_priority(&group.name, version);
                let (priorities, kept) = match (priorities, built_in) {
                    (Some(priorities), _) => (priorities, "onstart"),
                    (None, false) => (CUSTOM_PRIORITIES, "true"),
                    (None, true) => continue,
                };
                let name = format!("{version}.{}", group.name);
                let object = api_service(&name, &group.name, version, priorities, kept);
                self.make(&kind, object).await?;
                names.push(name);
            }
        }
        for (name, object) in self.all_api_services(&kind).await?.1 {
            let labels = meta(&object).get("labels");
            let kept = labels.and_then(|labels| labels.str_at(&[AUTOMANAGED]));
            if kept == Some("true") && !names.contains(&name) {
                self.unregister(&kind, &name).await?;
            }
        }
        Ok(())
    }

    async fn unregister(&self, kind: &Arc<Kind>, name: &str) -> Result<(), Error> {
        let (user, options, warnings) = server_identity();
        let request = request(kind, name, "", &user, &options, &warnings);
        match self.delete(&request, &DeleteOptions::default()).await {
            Ok(_) | Err(Error::NotFound(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn all_api_services(&self, kind: &Kind) -> Result<(Revision, Vec<(String, Map)>), Error> {
        let page = self.store.range(&kind.collection, Range::default()).await;
        let page = page.map_err(|error| Error::from_store(error, Default::default))?;
        let records = page.records.iter().filter_map(|record| {
            let tree = Stored::new(&record.value).ok()?.tree(None).ok()?;
            Some((record.name.to_string(), tree))
        });
        Ok((page.revision, records.collect()))
    }

    /// The APIs that others serve, and the revision at which that is so.
    pub async fn remote_apis(&self) -> Result<(Revision, Vec<RemoteApi>), Error> {
        let Some(kind) = api_services() else {
            return Ok((self.store.revision(), Vec::new()));
        };
        let (revision, all) = self.all_api_services(&kind).await?;
        let remote = all
            .into_iter()
            .filter_map(|(name, object)| remote_api(name, &Value::Object(object)));
        Ok((revision, remote.collect()))
    }

    /// Waits for a change of what says who serves what.
    pub async fn api_services_changed(&self, after: Revision) -> Result<(), Error> {
        self.places_changed(&PLACES[..1], after).await
    }

    /// Waits for a change of what says who serves what, or where they are.
    pub async fn remote_apis_changed(&self, after: Revision) -> Result<(), Error> {
        self.places_changed(&PLACES, after).await
    }

    async fn places_changed(&self, places: &[(&str, &str)], after: Revision) -> Result<(), Error> {
        let failed = |error| Error::from_store(error, Default::default);
        let mut watches = Vec::new();
        for (group, resource) in places {
            if let Some(kind) = Catalogue::builtin().resource(group, "v1", resource) {
                let watch = self.store.watch(&kind.collection, after).await;
                watches.push(watch.map_err(failed)?);
            }
        }
        let mut waiting: Vec<_> = watches
            .iter_mut()
            .map(|watch| Box::pin(watch.next()))
            .collect();
        let first = std::future::poll_fn(|context| {
            let mut ready = waiting.iter_mut().map(|watch| watch.as_mut().poll(context));
            ready
                .find(|polled| polled.is_ready())
                .unwrap_or(std::task::Poll::Pending)
        });
        first.await.map(|_| ()).map_err(failed)
    }

    /// Where the service of an API can be reached, as `host:port`, or why it cannot.
    pub async fn locate_api(&self, api: &RemoteApi) -> Result<String, Availability> {
        let (namespace, name) = (api.namespace.as_str(), api.service.as_str());
        let Some(service) = self.stored_service(namespace, name).await else {
            let message = format!("service/{name} in \"{namespace}\" is not present");
            return Err(Availability::no("ServiceNotFound", message));
        };
        let spec = service.get("spec").unwrap_or(&Value::Null);
        match spec.str_at(&["type"]).unwrap_or("ClusterIP") {
            "ExternalName" => {
                let host = spec.str_at(&["externalName"]).unwrap_or_default();
                return Ok(address(host, api.port.into()));
            }
            "ClusterIP" => {}
            _ => {
                let host = spec.str_at(&["clusterIP"]).unwrap_or_default();
                return Ok(address(host, api.port.into()));
            }
        }
        let ports = spec.get("ports").and_then(Value::as_array);
        let number = |port: &&Value| port.get("port").and_then(Value::as_int);
        let port = ports
            .unwrap_or_default()
            .iter()
            .find(|port| number(port) == Some(api.port.into()));
        let Some(port) = port else {
            let message = format!(
                "service/{name} in \"{namespace}\" is not listening on port {}",
                api.port
            );
            return Err(Availability::no("ServicePortError", message));
        };
        let port_name = port.str_at(&["name"]).unwrap_or_default();
        let slices = self.slices(namespace, name).await;
        if slices.is_empty() {
            let message =
                format!("cannot find endpointslices for service/{name} in \"{namespace}\"");
            return Err(Availability::no("EndpointsNotFound", message));
        }
        let ready = slices.iter().find_map(|slice| ready_in(slice, port_name));
        ready.ok_or_else(|| {
            let message = format!(
                "endpointslices for service/{name} in \"{namespace}\" have no addresses with port \
                 name \"{port_name}\""
            );
            Availability::no("MissingEndpoints", message)
        })
    }

    async fn stored_service(&self, namespace: &str, name: &str) -> Option<Map> {
        let kind = Catalogue::builtin().resource("", "v1", "services")?;
        let record = self.get(kind, namespace, name, None).await.ok()?;
        Stored::new(&record.value).ok()?.tree(None).ok()
    }

    async fn slices(&self, namespace: &str, service: &str) -> Vec<Map> {
        let kind = Catalogue::builtin().resource("discovery.k8s.io", "v1", "endpointslices");
        let Some(kind) = kind else { return Vec::new() };
        let range = Range {
            prefix: &format!("{namespace}/"),
            ..Range::default()
        };
        let Ok(page) = self.store.range(&kind.collection, range).await else {
            return Vec::new();
        };
        let mine = page.records.iter().filter_map(|record| {
            let stored = Stored::new(&record.value).ok()?;
            let mine = stored.label(SERVICE_NAME) == Some(service);
            mine.then(|| stored.tree(None).ok()).flatten()
        });
        mine.collect()
    }

    /// Writes into the status of an APIService whether it can be reached.
    pub async fn report_api(&self, name: &str, found: &Availability) -> Result<(), Error> {
        let Some(kind) = api_services() else {
            return Ok(());
        };
        let (user, options, warnings) = server_identity();
        let request = request(&kind, name, "status", &user, &options, &warnings);
        let now = self.now_text();
        self.edit(&request, |object| set_condition(object, found, &now))
            .await
    }

    /// Publishes whom servers of other APIs may trust: clients of this server, and the server.
    pub async fn publish_authorities(&self, clients: &str, proxy: &str) -> Result<(), Error> {
        let data = value!({
            "client-ca-file": clients,
            "requestheader-allowed-names": "[\"front-proxy-client\"]",
            "requestheader-client-ca-file": proxy,
            "requestheader-extra-headers-prefix": "[\"X-Remote-Extra-\"]",
            "requestheader-group-headers": "[\"X-Remote-Group\"]",
            "requestheader-uid-headers": "[\"X-Remote-Uid\"]",
            "requestheader-username-headers": "[\"X-Remote-User\"]",
        });
        let Some(kind) = Catalogue::builtin().resource("", "v1", "configmaps") else {
            return Ok(());
        };
        let name = "extension-apiserver-authentication";
        let metadata = value!({"name": name, "namespace": "kube-system"});
        let object = value!({"metadata": metadata, "data": (data.clone())});
        self.make(kind, object).await?;
        let (user, options, warnings) = server_identity();
        let mut request = request(kind, name, "", &user, &options, &warnings);
        request.namespace = "kube-system";
        let change = |object: &mut Map| {
            let differs = object.get("data") != Some(&data);
            object.insert("data", data.clone());
            differs
        };
        self.edit(&request, change).await
    }
}

fn api_services() -> Option<Arc<Kind>> {
    let catalogue = Catalogue::builtin();
    let kind = catalogue.resource("apiregistration.k8s.io", "v1", "apiservices");
    kind.map(Arc::clone)
}

fn server_identity() -> (auth::User, WriteOptions, Warnings) {
    let options = WriteOptions {
        manager: "kube-apiserver".into(),
        ..WriteOptions::default()
    };
    (auth::User::server(), options, Warnings::default())
}

fn request<'a>(
    kind: &'a Arc<Kind>,
    name: &'a str,
    subresource: &'a str,
    user: &'a auth::User,
    options: &'a WriteOptions,
    warnings: &'a Warnings,
) -> Request<'a> {
    Request {
        kind,
        namespace: "",
        name,
        subresource,
        user,
        options,
        warnings,
    }
}

fn api_service(
    name: &str,
    group: &str,
    version: &str,
    (of_group, of_version): (i64, i64),
    kept: &str,
) -> Value {
    let labels = Map::from_entries(vec![(AUTOMANAGED.into(), kept.into())]);
    let mut spec = value!({
        "version": version,
        "groupPriorityMinimum": of_group,
        "versionPriority": of_version,
    });
    if let (false, Some(spec)) = (group.is_empty(), spec.as_object_mut()) {
        spec.insert("group", group.into());
    }
    value!({"metadata": {"name": name, "labels": labels}, "spec": spec})
}

fn remote_api(name: String, object: &Value) -> Option<RemoteApi> {
    let spec = object.get("spec")?;
    let service = spec.get("service").filter(|service| !service.is_null())?;
    let text = |value: &Value, field| value.str_at(&[field]).unwrap_or_default().to_owned();
    let number = |field| spec.get(field).and_then(Value::as_int).unwrap_or(0);
    let port = service.get("port").and_then(Value::as_int);
    let port = port.and_then(|port| u16::try_from(port).ok());
    let conditions = object
        .at(&["status", "conditions"])
        .and_then(Value::as_array);
    let available = conditions.unwrap_or_default().iter().any(|condition| {
        condition.str_at(&["type"]) == Some("Available")
            && condition.str_at(&["status"]) == Some("True")
    });
    Some(RemoteApi {
        name,
        group: text(spec, "group"),
        version: text(spec, "version"),
        namespace: text(service, "namespace"),
        service: text(service, "name"),
        port: port.unwrap_or(HTTPS_PORT),
        bundle: STANDARD.decode(text(spec, "caBundle")).unwrap_or_default(),
        insecure: spec.get("insecureSkipTLSVerify") == Some(&Value::Bool(true)),
        priorities: (number("groupPriorityMinimum"), number("versionPriority")),
        available,
    })
}

/// An address of a slice that is ready, with the port of this name.
fn ready_in(slice: &Map, port_name: &str) -> Option<String> {
    let ports = slice.get("ports")?.as_array()?;
    let named = |port: &&Value| port.str_at(&["name"]).unwrap_or_default() == port_name;
    let port = ports.iter().find(named)?.get("port")?.as_int()?;
    let endpoints = slice.get("endpoints")?.as_array()?;
    let ready = endpoints.iter().find(|endpoint| {
        let ready = endpoint.at(&["conditions", "ready"]);
        ready.and_then(Value::as_bool) != Some(false)
    })?;
    let host = ready.get("addresses")?.as_array()?.first()?.as_str()?;
    Some(address(host, port))
}

fn address(host: &str, port: i64) -> String {
    if host.contains(':') {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    }
}

fn set_condition(object: &mut Map, found: &Availability, now: &Text) -> bool {
    let status = if found.available { "True" } else { "False" };
    let conditions = object
        .object_at("status")
        .get_or_insert_with("conditions", || Value::Array(Vec::new()));
    let Some(conditions) = conditions.as_array_mut() else {
        return false;
    };
    let old = conditions
        .iter()
        .position(|condition| condition.str_at(&["type"]) == Some("Available"));
    let known = old.map(|old| &conditions[old]);
    let same = known.filter(|known| known.str_at(&["status"]) == Some(status));
    let since = same.and_then(|known| known.str_at(&["lastTransitionTime"]));
    let new = value!({
        "type": "Available",
        "status": status,
        "lastTransitionTime": (since.unwrap_or(now).to_owned()),
        "reason": (found.reason),
        "message": (found.message.as_str()),
    });
    match old {
        Some(old) if conditions[old] == new => return false,
        Some(old) => conditions[old] = new,
        None => conditions.push(new),
    }
    true
}
