//! No verb, path or encoding gives a user without rights more than everybody has.

use serde_json::Value;
use testkit::{Launch, TestServer};

use crate::raw::Connection;

const METHODS: [&str; 9] = [
    "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "WATCH",
];
/// What `system:discovery` and `system:public-info-viewer` let everybody read.
const READABLE: [&str; 9] = [
    "/api",
    "/apis",
    "/healthz",
    "/livez",
    "/readyz",
    "/openapi",
    "/version",
    "/version/",
    "/openapi/",
];
/// What `system:basic-user` lets everybody ask.
const QUESTIONS: [&str; 3] = [
    "/apis/authentication.k8s.io/v1/selfsubjectreviews",
    "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
    "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews",
];

/// The collections and objects of the API, by discovery.
async fn resources(admin: &mut Connection) -> Vec<String> {
    let mut versions = vec!["/api/v1".to_owned()];
    let groups = admin
        .ask("GET /apis", &["accept: application/json"], "")
        .await;
    let groups: Value = serde_json::from_str(&groups.body).unwrap();
    for group in groups["groups"].as_array().unwrap() {
        for version in group["versions"].as_array().unwrap() {
            let name = version["groupVersion"].as_str().unwrap();
            versions.push(format!("/apis/{name}"));
        }
    }
    let mut paths = Vec::new();
    for version in versions {
        let list = admin.ask(&format!("GET {version}"), &[], "").await;
        let list: Value = serde_json::from_str(&list.body).unwrap();
        for resource in list["resources"].as_array().unwrap() {
            let name = resource["name"].as_str().unwrap();
            let (name, below) = match name.split_once('/') {
                Some((name, below)) => (name, format!("/x/{below}")),
                None => (name, String::new()),
            };
            let place = match resource["namespaced"].as_bool() {
                Some(true) => "/namespaces/default",
                _ => "",
            };
            paths.push(format!("{version}{place}/{name}{below}"));
            if below.is_empty() {
                paths.push(format!("{version}{place}/{name}/x"));
                paths.push(format!("{version}/{name}"));
                paths.push(format!("{version}/watch{place}/{name}"));
            }
        }
    }
    paths
}

/// Other ways to write a path.
fn disguises(path: &str) -> Vec<String> {
    let encoded: String = path
        .bytes()
        .map(|byte| match byte {
            b'/' => "/".to_owned(),
            other => format!("%{other:02x}"),
        })
        .collect();
    let last = path.rfind('/').unwrap();
    vec![
        format!("{path}/"),
        format!("/{path}"),
        format!("/livez/..{path}"),
        format!("/healthz/%2e%2e{path}"),
        format!("/./{path}"),
        format!("{}/.{}", &path[..last], &path[last..]),
        format!("{}//{}", &path[..last], &path[last..]),
        format!("{}%2f{}", &path[..last], &path[last + 1..]),
        encoded,
        path.to_uppercase(),
        format!("{path};x=y"),
        format!("{path}%00"),
        format!("{path}?watch=true&timeoutSeconds=1"),
        format!("{path}?fieldSelector=metadata.name%3Dx"),
        format!("/api{path}"),
        format!("/openapi{path}"),
        format!("/version{path}"),
        format!("https://localhost{path}"),
    ]
}

/// Whether everybody may do this; `target` is the path of the request line, without its query.
fn is_everybodys(method: &str, target: &str) -> bool {
    let read = matches!(method, "GET" | "HEAD");
    let known = READABLE.contains(&target)
        || ["/api/", "/apis/", "/openapi/"]
            .iter()
            .any(|prefix| target.starts_with(prefix));
    (read && known) || (method == "POST" && QUESTIONS.contains(&target))
}

/// Whether the answer shows documents that everybody may read, and not an object.
fn is_document(body: &str) -> bool {
    let kinds = [
        "APIResourceList",
        "APIGroupList",
        "APIGroup",
        "APIVersions",
        "APIGroupDiscoveryList",
    ];
    match serde_json::from_str::<Value>(body) {
        Ok(value) => match value["kind"].as_str() {
            Some(kind) => kinds.contains(&kind),
            None => value.get("openapi").is_some() || value.get("swagger").is_some(),
        },
        Err(_) => body.is_empty() || body == "ok",
    }
}

#[tokio::test]
async fn no_verb_path_or_encoding_gives_more_than_everybody_has() {
    let directory = std::env::temp_dir().join(format!("windlass-paths-{}", std::process::id()));
    std::fs::write(&directory, "nobody-token,nobody,0\n").unwrap();
    let file = directory.display().to_string();
    let server: TestServer = Launch::new()
        .binary(env!("CARGO_BIN_EXE_windlass"))
        .flag("--token-auth-file")
        .flag(file)
        .start()
        .unwrap();
    let mut admin = Connection::open(&server).await;
    let paths = resources(&mut admin).await;
    assert!(paths.len() > 200, "{}", paths.len());
    let mut readable = 0;
    for path in &paths {
        if !path.contains("/watch/") && !path.contains("/proxy") {
            let answer = admin.ask(&format!("GET {path}"), &[], "").await;
            assert!(answer.code < 500, "admin: GET {path}: {}", answer.code);
            readable += usize::from(answer.code == 200);
        }
    }
    // The paths are real: the test would notice if they opened.
    assert!(readable > 60, "{readable}");
    let mut nobody = Connection::open_as(&server, "nobody-token", None)
        .await
        .unwrap();
    let body = r#"{"metadata":{"name":"x"}}"#;
    for (place, path) in paths.iter().enumerate() {
        let mut forms = vec![path.clone()];
        // Each disguise with every method for some, two of them for all.
        let disguised = disguises(path);
        let some = if place % 12 == 0 {
            0
        } else {
            disguised.len() - 2
        };
        forms.extend(disguised.into_iter().skip(some));
        for form in forms {
            for method in METHODS {
                let answer = nobody.ask_any(&server, method, &form, body).await;
                let Some((code, text)) = answer else { continue };
                assert!(code < 500, "{method} {form}: {code} {text}");
                let target = form.split('?').next().unwrap();
                let target = target.strip_prefix("https://localhost").unwrap_or(target);
                let own = is_everybodys(method, target);
                let fine = own && (method == "POST" || is_document(&text));
                assert!(code >= 300 || fine, "{method} {form}: {code} {text}");
            }
        }
    }
    std::fs::remove_file(directory).unwrap();
}
