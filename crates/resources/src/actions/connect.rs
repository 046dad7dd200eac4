//! Paths that lead to a node or a backend: logs, exec, attach, port-forward and proxies.
//!
//! This server reaches no nodes. It checks what upstream checks before it connects, and then says
//! that nobody is there.

use kinds::Kind;
use object::{Map, Value};

use crate::admission::Place;
use crate::error::Error;
use crate::{Request, Resources, subject};

const PODS: Place = ("", "v1", "pods");
const SERVICES: Place = ("", "v1", "services");
const NODES: Place = ("", "v1", "nodes");

/// Whether a subresource leads to something outside the server.
pub fn is_connection(kind: &Kind, subresource: &str) -> bool {
    kind.group.is_empty()
        && match kind.resource.as_str() {
            "pods" => matches!(
                subresource,
                "log" | "exec" | "attach" | "portforward" | "proxy"
            ),
            "nodes" | "services" => subresource == "proxy",
            _ => false,
        }
}

impl Resources {
    /// Tries to connect; succeeds only where there is nothing to show.
    pub async fn connect(&self, request: &Request<'_>, container: &str) -> Result<(), Error> {
        match (request.kind.resource.as_str(), request.subresource) {
            ("nodes", _) => self.connect_node(request, backend(request.name)).await,
            ("services", _) => {
                let name = backend(request.name);
                let service = self.find(SERVICES, request.namespace, name).await?;
                service.ok_or_else(|| Error::NotFound(subject(request.kind, name)))?;
                let text = format!("no endpoints available for service \"{}\"", request.name);
                Err(Error::Unreachable(text))
            }
            (_, "proxy") => {
                let pod = self.connected_pod(request, backend(request.name)).await?;
                let address = pod
                    .get("status")
                    .and_then(|status| status.str_at(&["podIP"]));
                if address.unwrap_or_default().is_empty() {
                    return Err(Error::BadRequest("address not allowed".to_owned()));
                }
                Err(nobody_there())
            }
            (_, subresource) => {
                let pod = self.connected_pod(request, request.name).await?;
                if subresource != "portforward" {
                    check_container(request.name, &pod, container).map_err(Error::BadRequest)?;
                }
                let node = pod.get("spec").and_then(|spec| spec.str_at(&["nodeName"]));
                match (node.unwrap_or_default(), subresource) {
                    ("", "log") => Ok(()),
                    ("", _) => Err(Error::BadRequest(format!(
                        "pod {} does not have a host assigned",
                        request.name
                    ))),
                    (node, _) => self.connect_node(request, node).await,
                }
            }
        }
    }

    async fn connected_pod(&self, request: &Request<'_>, name: &str) -> Result<Map, Error> {
        let pod = self.find(PODS, request.namespace, name).await?;
        pod.ok_or_else(|| Error::NotFound(subject(request.kind, name)))
    }

    /// A node that does not exist is missed under the resource that was asked for.
    async fn connect_node(&self, request: &Request<'_>, name: &str) -> Result<(), Error> {
        if self.find(NODES, "", name).await?.is_none() {
            return Err(Error::NotFound(subject(request.kind, name)));
        }
        Err(nobody_there())
    }
}

fn nobody_there() -> Error {
    let text = "error trying to reach service: this server does not connect to nodes and pods";
    Error::Unreachable(text.to_owned())
}

/// The object's name in `name`, `name:port` and `scheme:name:port`.
fn backend(name: &str) -> &str {
    let parts: Vec<&str> = name.split(':').collect();
    match parts.as_slice() {
        [_, name, _] => name,
        [name, ..] => name,
        [] => "",
    }
}

fn names<'a>(pod: &'a Map, list: &str) -> Vec<&'a str> {
    let containers = pod
        .get("spec")
        .and_then(|spec| spec.get(list))
        .and_then(Value::as_array);
    let containers = containers.unwrap_or_default().iter();
    containers
        .filter_map(|container| container.str_at(&["name"]))
        .collect()
}

/// Which container is meant must be clear.
fn check_container(name: &str, pod: &Map, container: &str) -> Result<(), String> {
    let main = names(pod, "containers");
    let first = names(pod, "initContainers");
    let guests = names(pod, "ephemeralContainers");
    if container.is_empty() {
        if main.len() == 1 {
            return Ok(());
        }
        let mut text = format!(
            "a container name must be specified for pod {name}, choose one of: [{}]",
            main.join(" ")
        );
        if !first.is_empty() {
            text.push_str(&format!(
                " or one of the init containers: [{}]",
                first.join(" ")
            ));
        }
        if !guests.is_empty() {
            text.push_str(&format!(
                " or one of the ephemeral containers: [{}]",
                guests.join(" ")
            ));
        }
        return Err(text);
    }
    if [main, first, guests].concat().contains(&container) {
        return Ok(());
    }
    Err(format!("container {container} is not valid for pod {name}"))
}
