//! `/healthz`, `/livez`, `/readyz` and `/version`.

use hyper::{Response, StatusCode, header};
use object::json;

use crate::answer;
use crate::body::Body;
use crate::query::Query;
use crate::state::State;

/// The version that clients see: upstream's that is answered for, and ours.
pub const VERSION: &str = concat!("v1.36.4+windlass-", env!("CARGO_PKG_VERSION"));

/// The checks of every endpoint.
const CHECKS: &[&str] = &["ping", "log", "etcd", "poststarthook/bootstrap"];
/// Those of readiness; `shutdown` fails once the server begins to stop.
const READY_CHECKS: &[&str] = &[
    "ping",
    "log",
    "etcd",
    "etcd-readiness",
    "informer-sync",
    "poststarthook/bootstrap",
    "shutdown",
];

/// The endpoints and their checks.
const ENDPOINTS: &[(&str, &[&str])] = &[
    ("healthz", CHECKS),
    ("livez", CHECKS),
    ("readyz", READY_CHECKS),
];

/// Every path that is answered here about health.
pub(crate) fn paths() -> impl Iterator<Item = String> {
    ENDPOINTS.iter().flat_map(|(endpoint, checks)| {
        let each = checks
            .iter()
            .map(move |check| format!("/{endpoint}/{check}"));
        std::iter::once(format!("/{endpoint}")).chain(each)
    })
}

/// Answers a health endpoint, by any method; `None` if the path is none.
pub(crate) fn answer(state: &State, path: &str, query: &Query) -> Option<Response<Body>> {
    let mut parts = path.trim_start_matches('/').splitn(2, '/');
    let (wanted, one) = (parts.next()?, parts.next());
    let (endpoint, checks) = ENDPOINTS.iter().find(|(name, _)| *name == wanted)?;
    if let Some(name) = one {
        return Some(match checks.iter().find(|check| **check == name) {
            None => answer::page_not_found(),
            Some(check) if passes(state, endpoint, check) => {
                let mut answer = answer::text(StatusCode::OK, "ok");
                // Upstream writes this one text without the header that its other texts have.
                answer.headers_mut().remove(header::X_CONTENT_TYPE_OPTIONS);
                answer
            }
            Some(_) => answer::text(
                StatusCode::INTERNAL_SERVER_ERROR,
                format!("internal server error: {name} is not ready\n"),
            ),
        });
    }
    Some(all(state, endpoint, checks, query))
}

fn all(
    state: &State,
    endpoint: &'static str,
    checks: &[&'static str],
    query: &Query,
) -> Response<Body> {
    let excluded = query.all("exclude");
    let mut report = String::new();
    let mut failed = false;
    for check in checks {
        if excluded.iter().any(|name| name == check) {
            report.push_str(&format!("[+]{check} excluded: ok\n"));
        } else if passes(state, endpoint, check) {
            report.push_str(&format!("[+]{check} ok\n"));
        } else {
            failed = true;
            report.push_str(&format!("[-]{check} failed: reason withheld\n"));
        }
    }
    let unknown: Vec<String> = excluded
        .iter()
        .filter(|name| !checks.contains(&name.as_str()))
        .cloned()
        .collect();
    if !unknown.is_empty() {
        let names = unknown.join(", ");
        report.push_str(&format!(
            "warn: some health checks cannot be excluded: no matches for {names}\n"
        ));
    }
    if failed {
        report.push_str(&format!("{endpoint} check failed\n"));
        return answer::text(StatusCode::INTERNAL_SERVER_ERROR, report);
    }
    if query.get("verbose").is_some() {
        report.push_str(&format!("{endpoint} check passed\n"));
        return answer::text(StatusCode::OK, report);
    }
    answer::text(StatusCode::OK, "ok")
}

fn passes(state: &State, endpoint: &'static str, check: &'static str) -> bool {
    let passes = match check {
        "poststarthook/bootstrap" => endpoint == "livez" || state.is_ready(),
        "shutdown" => !state.is_stopping(),
        _ => true,
    };
    state.metrics.checked(endpoint, check, passes);
    passes
}

/// The version that clients see: the API level we answer as, with our own build behind it.
pub(crate) fn version() -> Response<Body> {
    let version = object::value!({
        "major": "1",
        "minor": "36",
        "emulationMajor": "1",
        "emulationMinor": "36",
        "minCompatibilityMajor": "1",
        "minCompatibilityMinor": "35",
        "gitVersion": VERSION,
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "none",
        "compiler": "rustc",
        "platform": (format!("{}/{}", std::env::consts::OS, go_architecture())),
    });
    let mut text = Vec::new();
    json::pretty(&json::to_vec(&version), &mut text);
    let mut answer = Response::new(Body::full(text.into()));
    let content_type = hyper::header::HeaderValue::from_static("application/json");
    answer
        .headers_mut()
        .insert(hyper::header::CONTENT_TYPE, content_type);
    answer
}

fn go_architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_check_has_a_path() {
        let paths: Vec<String> = super::paths().collect();
        for path in ["/healthz", "/livez/ping", "/readyz/shutdown"] {
            assert!(paths.iter().any(|known| known == path), "{path}");
        }
        assert!(!paths.iter().any(|known| known == "/livez/shutdown"));
    }
}
