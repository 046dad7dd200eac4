//! Paths that lead to a node or a backend: logs, exec, attach, port-forward and proxies.

use std::sync::Arc;

use hyper::{Response, StatusCode};
use kinds::Kind;
use resources::Warnings;
use resources::options::WriteOptions;

use crate::answer::Failure;
use crate::body::Body;
use crate::handle::Call;
use crate::request::ResourcePath;
use crate::verbs;

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
    if !offered.is_some_and(|offered| offered.verbs.iter().any(|offered| offered == verb)) {
        return Err(Failure::method_not_allowed());
    }
    let options = WriteOptions::default();
    let request = verbs::request(call, kind, path, &options, warnings);
    let container = call.query.text("container").unwrap_or_default();
    call.state.resources.connect(&request, container).await?;
    let mut answer = Response::new(Body::empty());
    *answer.status_mut() = StatusCode::NO_CONTENT;
    Ok(answer)
}
