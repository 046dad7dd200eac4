//! What a request asks for, parsed once.
//!
//! Routing and authorization use the same struct, so no encoding of a path can make them disagree.
//! Contract: the request-info rules of `apiserver/pkg/endpoints/request/requestinfo.go`.

use auth::Attributes;
use hyper::Method;

use crate::query::Query;

/// A parsed request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RequestInfo {
    /// The decoded path.
    pub path: String,
    /// The verb: of the API for resources, the lower-case method for other paths.
    pub verb: &'static str,
    /// The method in lower case, if it is none that we know; the verb is `other` then.
    odd_method: Option<String>,
    /// What the path names, if it is one of the API's resources.
    pub resource: Option<ResourcePath>,
}

/// A path below `/api/v1` or `/apis/GROUP/VERSION`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ResourcePath {
    pub group: String,
    pub version: String,
    pub namespace: String,
    pub resource: String,
    pub name: String,
    pub subresource: String,
    /// What follows the subresource, for those that take a path.
    pub rest: String,
    /// The deprecated `/watch/` form.
    pub watch_prefix: bool,
    /// Whether the path itself gives the name.
    pub is_named: bool,
}

/// A path that says how and not what.
#[derive(Debug, PartialEq, Eq)]
struct Unfinished;

/// Why a path cannot be parsed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum BadPath {
    /// It is not UTF-8 in the encoding of URLs.
    Encoding,
    /// It ends where a resource should be named; this is the path.
    NoResource(String),
}

impl RequestInfo {
    /// Parses the path and, where the verb depends on them, the query parameters.
    pub(crate) fn new(method: &Method, path: &str, query: &Query) -> Result<RequestInfo, BadPath> {
        let path = percent_decode(path).ok_or(BadPath::Encoding)?;
        let verb = method_name(method);
        let odd_method = (verb == "other").then(|| method.as_str().to_lowercase());
        let Ok(resource) = ResourcePath::parse(&path) else {
            return Err(BadPath::NoResource(path));
        };
        let Some(mut resource) = resource else {
            return Ok(RequestInfo {
                path,
                verb,
                odd_method,
                resource: None,
            });
        };
        let verb = if resource.watch_prefix {
            "watch"
        } else {
            api_verb(method, &resource, query)
        };
        if resource.name.is_empty()
            && matches!(verb, "list" | "watch")
            && let Some(name) = query.single_name()
        {
            resource.name = name;
        }
        Ok(RequestInfo {
            path,
            verb,
            odd_method,
            resource: Some(resource),
        })
    }

    /// What permissions are asked about; `resource` is the path's, with its subresource.
    pub(crate) fn attributes<'a>(&'a self, resource: Option<&'a str>) -> Attributes<'a> {
        match (&self.resource, resource) {
            (Some(path), Some(resource)) => Attributes::Resource {
                verb: self.verb,
                group: &path.group,
                resource,
                namespace: &path.namespace,
                name: &path.name,
            },
            _ => Attributes::Path {
                verb: self.odd_method.as_deref().unwrap_or(self.verb),
                path: &self.path,
            },
        }
    }

    /// Whether the request lasts as long as its client wants.
    pub(crate) fn is_long_running(&self) -> bool {
        let lasting = ["attach", "exec", "proxy", "log", "portforward"];
        let subresource = self.resource.as_ref().map(|path| path.subresource.as_str());
        self.verb == "watch" || subresource.is_some_and(|name| lasting.contains(&name))
    }
}

impl ResourcePath {
    /// What a path names; `None` if it is none of the API's resources.
    fn parse(path: &str) -> Result<Option<ResourcePath>, Unfinished> {
        let inner = path.strip_prefix('/').unwrap_or(path);
        let inner = inner.strip_suffix('/').unwrap_or(inner);
        let parts: Vec<&str> = inner.split('/').collect();
        // Empty segments name nothing; a path with them is no resource. A dot is a name like any
        // other: nothing is ever resolved.
        if parts.contains(&"") {
            return Ok(None);
        }
        let (group, version, mut parts) = match parts.as_slice() {
            ["api", version, rest @ ..] => ("", *version, rest),
            ["apis", group, version, rest @ ..] => (*group, *version, rest),
            _ => return Ok(None),
        };
        if let ["watch" | "proxy"] = parts {
            return Err(Unfinished);
        }
        let mut out = ResourcePath {
            group: group.to_owned(),
            version: version.to_owned(),
            ..ResourcePath::default()
        };
        if let ["watch", rest @ ..] = parts {
            out.watch_prefix = true;
            parts = rest;
        }
        if let ["namespaces", namespace, rest @ ..] = parts {
            out.namespace = (*namespace).to_owned();
            // `namespaces/x`, `namespaces/x/status` and `namespaces/x/finalize` are the namespace.
            if !matches!(rest, [] | ["status" | "finalize", ..]) {
                parts = rest;
            }
        }
        let Some((resource, parts)) = parts.split_first() else {
            return Ok(None);
        };
        out.resource = (*resource).to_owned();
        if let Some((name, parts)) = parts.split_first() {
            out.name = (*name).to_owned();
            out.is_named = true;
            if let Some((subresource, parts)) = parts.split_first() {
                out.subresource = (*subresource).to_owned();
                out.rest = parts.join("/");
            }
        }
        Ok(Some(out))
    }

    /// The resource as permissions name it: `pods` or `pods/status`.
    pub(crate) fn with_subresource(&self) -> String {
        if self.subresource.is_empty() {
            self.resource.clone()
        } else {
            format!("{}/{}", self.resource, self.subresource)
        }
    }
}

fn api_verb(method: &Method, resource: &ResourcePath, query: &Query) -> &'static str {
    let collection = resource.name.is_empty();
    match *method {
        Method::GET | Method::HEAD if collection => {
            if query.flag("watch") {
                "watch"
            } else {
                "list"
            }
        }
        Method::GET | Method::HEAD => "get",
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE if collection => "deletecollection",
        Method::DELETE => "delete",
        _ => "",
    }
}

fn method_name(method: &Method) -> &'static str {
    match *method {
        Method::GET => "get",
        Method::HEAD => "head",
        Method::POST => "post",
        Method::PUT => "put",
        Method::PATCH => "patch",
        Method::DELETE => "delete",
        Method::OPTIONS => "options",
        Method::TRACE => "trace",
        _ => "other",
    }
}

/// Decodes `%XX`; `None` for a broken escape or text that is not UTF-8.
pub(crate) fn percent_decode(text: &str) -> Option<String> {
    if !text.contains('%') {
        return Some(text.to_owned());
    }
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let high = (bytes.next()? as char).to_digit(16)?;
            let low = (bytes.next()? as char).to_digit(16)?;
            out.push((high * 16 + low) as u8);
        } else {
            out.push(byte);
        }
    }
    String::from_utf8(out).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(method: Method, uri: &str) -> RequestInfo {
        let (path, query) = uri.split_once('?').unwrap_or((uri, ""));
        RequestInfo::new(&method, path, &Query::parse(query)).unwrap()
    }

    fn told(method: Method, uri: &str) -> String {
        let info = parse(method, uri);
        match info.resource {
            None => format!("{} path {}", info.verb, info.path),
            Some(it) => format!(
                "{} {}/{} {} ns={} name={}",
                info.verb,
                it.group,
                it.version,
                it.with_subresource(),
                it.namespace,
                it.name
            ),
        }
    }

    #[test]
    fn what_each_path_asks_for() {
        let get = |uri| told(Method::GET, uri);
        assert_eq!(get("/api/v1/pods"), "list /v1 pods ns= name=");
        assert_eq!(get("/api/v1/pods/?watch=1"), "watch /v1 pods ns= name=");
        assert_eq!(get("/api/v1/watch/pods"), "watch /v1 pods ns= name=");
        assert_eq!(
            get("/api/v1/namespaces/a"),
            "get /v1 namespaces ns=a name=a"
        );
        assert_eq!(
            get("/api/v1/namespaces/a/status"),
            "get /v1 namespaces/status ns=a name=a"
        );
        assert_eq!(get("/api/v1/namespaces/a/pods"), "list /v1 pods ns=a name=");
        assert_eq!(
            get("/apis/apps/v1/namespaces/a/deployments/b/scale"),
            "get apps/v1 deployments/scale ns=a name=b"
        );
        assert_eq!(get("/apis/apps/v1"), "get path /apis/apps/v1");
        assert_eq!(get("/api/v1"), "get path /api/v1");
        assert_eq!(get("/healthz"), "get path /healthz");
        let by_name = "/api/v1/pods?fieldSelector=metadata.name%3Dx";
        assert_eq!(get(by_name), "list /v1 pods ns= name=x");
        assert_eq!(
            told(Method::DELETE, "/api/v1/nodes"),
            "deletecollection /v1 nodes ns= name="
        );
        // Who deletes by name still deletes a collection.
        assert_eq!(
            told(Method::DELETE, by_name),
            "deletecollection /v1 pods ns= name="
        );
        let odd = parse(Method::from_bytes(b"LOOK").unwrap(), "/x");
        assert_eq!(odd.attributes(None).verb(), "look");
    }

    #[test]
    fn tricks_with_a_path_name_nothing() {
        for path in ["/api//v1/pods", "/api/v1/namespaces//pods", "//api/v1/x//"] {
            assert_eq!(parse(Method::GET, path).resource, None, "{path}");
        }
        assert_eq!(
            told(Method::GET, "/api/v1/p%6Fds"),
            "list /v1 pods ns= name="
        );
        assert_eq!(
            RequestInfo::new(&Method::GET, "/api/%zz", &Query::parse("")),
            Err(BadPath::Encoding)
        );
        // Dots are names that nothing has.
        assert_eq!(
            told(Method::GET, "/api/v1/../v1/pods"),
            "get /v1 ../pods ns= name=v1"
        );
        for path in ["/api/v1/watch", "/apis/apps/v1/proxy/"] {
            assert_eq!(
                RequestInfo::new(&Method::GET, path, &Query::parse("")),
                Err(BadPath::NoResource(path.to_owned()))
            );
        }
        // Paths are case-sensitive: this is a resource that nobody serves.
        assert_eq!(told(Method::GET, "/api/v1/PODS"), "list /v1 PODS ns= name=");
    }

    /// Rules of a user who may only read the config map `x` of the namespace `a`.
    fn reader() -> (auth::Rules, auth::User) {
        let mut rules = auth::Rules::default();
        let list = |text: &str| vec![object::Text::from(text)];
        rules.apply([
            auth::Change::Role(auth::Role {
                namespace: "a".into(),
                name: "r".into(),
                rules: vec![auth::Rule {
                    groups: list(""),
                    resources: list("configmaps"),
                    names: list("x"),
                    verbs: list("get"),
                    ..auth::Rule::default()
                }],
                ..auth::Role::default()
            }),
            auth::Change::Binding(auth::Binding {
                namespace: "a".into(),
                name: "b".into(),
                role: auth::RoleRef::Role("r".into()),
                subjects: vec![auth::Subject::User("jane".into())],
            }),
        ]);
        (rules, auth::User::authenticated("jane", "", &[]))
    }

    #[test]
    fn no_form_of_a_path_gives_more_rights() {
        let (rules, jane) = reader();
        let methods = [
            "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "LIST",
        ];
        let own = [
            "/api/v1/namespaces/a/configmaps/x",
            "/api/v1/namespaces/a/configmaps/%78",
            "/api/v1/namespaces/a/configmaps/x/",
            "/api/v1/namespaces/%61/configmaps/x",
        ];
        let others = [
            "/api/v1/namespaces/a/configmaps/y",
            "/api/v1/namespaces/b/configmaps/x",
            "/api/v1/configmaps/x",
            "/api/v1/namespaces/a/configmaps",
            "/api/v1/configmaps",
            "/api/v1/watch/namespaces/a/configmaps/x",
            "/api/v1/namespaces/a/configmaps/x/status",
            "/api/v1/namespaces/a/configmaps/x?watch=1",
            "/api/v1/namespaces/a/configmaps?watch=1",
            "/api/v1/namespaces/a/configmaps?fieldSelector=metadata.name%3Dx",
            "/api/v1/namespaces/a/configmaps/x%2F..%2Fy",
            "/api/v1/namespaces/a/CONFIGMAPS/x",
            "/api/v1/namespaces/b/../a/configmaps/x",
            "/api/v1/namespaces/a//configmaps/x",
            "/apis/apps/v1/namespaces/a/configmaps/x",
            "/api/v1/namespaces/a",
            "/api/v1",
            "/",
        ];
        for method in methods {
            let method = Method::from_bytes(method.as_bytes()).unwrap();
            let allowed = |uri: &str| {
                let info = parse(method.clone(), uri);
                let resource = info.resource.as_ref().map(ResourcePath::with_subresource);
                let attributes = info.attributes(resource.as_deref());
                rules.authorize(&jane, attributes) == auth::Decision::Allow
            };
            for uri in own {
                assert_eq!(
                    allowed(uri),
                    matches!(method, Method::GET | Method::HEAD),
                    "{method} {uri}"
                );
            }
            for uri in others {
                // A read with a watch parameter is still a read of the one object.
                let read =
                    uri.ends_with("/x?watch=1") && matches!(method, Method::GET | Method::HEAD);
                assert_eq!(allowed(uri), read, "{method} {uri}");
            }
        }
    }
}
