//! Paths that lead to a node or a backend: logs, exec, attach, port-forward and proxies.

use std::sync::Arc;

use hyper::{Method, Response, StatusCode, header};
use kinds::Kind;
use object::{Map, Value};
use resources::Warnings;
use resources::options::WriteOptions;

use crate::answer::Failure;
use crate::body::Body;
use crate::handle::Call;
use crate::negotiate::{self, Offer, Stream};
use crate::request::ResourcePath;
use crate::verbs;

/// What a log can be refused as; it is plain text in any case.
const LOG: Offer = Offer {
    tables: false,
    metadata: true,
    plain_text: true,
    protobuf: true,
    router: true,
    stream: Stream::No,
};

/// What may be streamed from and to a container.
const STREAMS: [&str; 4] = ["stdin", "stdout", "stderr", "tty"];

/// Answers a request that would be passed on; whatever follows the subresource in the path is for
/// the other side.
pub(crate) async fn answer(
    call: &Call,
    kind: &Arc<Kind>,
    verb: &str,
    path: &ResourcePath,
    warnings: &Warnings,
) -> Result<Response<Body>, Failure> {
    let offered = kind.subresource(&path.subresource);
    let is_offered =
        offered.is_some_and(|offered| offered.verbs.iter().any(|offered| offered == verb));
    // A log is read by one method, what is passed on by any.
    if !is_offered || (path.subresource == "log" && call.method != Method::GET) {
        return Err(Failure::method_not_allowed());
    }
    if path.subresource == "log" {
        negotiate::accept(call.header(header::ACCEPT), LOG)?;
    } else if !call.query.all("dryRun").is_empty() {
        let text = "dryRun is not supported";
        return Err(Failure::new(400, "BadRequest", text));
    }
    let options = WriteOptions::default();
    let request = verbs::request(call, kind, path, &options, warnings);
    if let Some((kind, wanted)) = wanted(call, path) {
        let resources = &call.state.resources;
        resources.admit_connection(&request, kind, wanted).await?;
    }
    let container = call.query.text("container").unwrap_or_default();
    call.state.resources.connect(&request, container).await?;
    let mut answer = Response::new(Body::empty());
    *answer.status_mut() = StatusCode::NO_CONTENT;
    Ok(answer)
}

/// What a connection is wanted for, as admission sees it; logs are read without asking anybody.
fn wanted(call: &Call, path: &ResourcePath) -> Option<(&'static str, Map)> {
    let (kind, flags): (_, &[&str]) = match (path.resource.as_str(), path.subresource.as_str()) {
        ("pods", "exec") => ("PodExecOptions", &STREAMS),
        ("pods", "attach") => ("PodAttachOptions", &STREAMS),
        ("pods", "portforward") => ("PodPortForwardOptions", &[]),
        ("pods", "proxy") => ("PodProxyOptions", &[]),
        ("services", "proxy") => ("ServiceProxyOptions", &[]),
        ("nodes", "proxy") => ("NodeProxyOptions", &[]),
        _ => return None,
    };
    let mut options = Map::new();
    for flag in flags.iter().filter(|flag| call.query.flag(flag)) {
        options.insert(*flag, Value::Bool(true));
    }
    if let Some(container) = call.query.text("container") {
        options.insert("container", Value::from(container));
    }
    let command = call.query.all("command").into_iter().map(Value::from);
    let command: Vec<Value> = command.collect();
    if kind == "PodExecOptions" && !command.is_empty() {
        options.insert("command", Value::Array(command));
    }
    let ports = call.query.all("ports");
    let ports = ports.iter().flat_map(|ports| ports.split(','));
    let ports: Vec<Value> = ports
        .filter_map(|port| port.parse().ok().map(Value::Int))
        .collect();
    if !ports.is_empty() {
        options.insert("ports", Value::Array(ports));
    }
    if path.subresource == "proxy" && !path.rest.is_empty() {
        options.insert("path", Value::from(format!("/{}", path.rest)));
    }
    Some((kind, options))
}
