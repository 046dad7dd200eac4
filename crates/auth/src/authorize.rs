//! Whether a user may do what they ask for.
//!
//! Until rules are read from role objects, members of `system:masters` may do everything, everyone
//! may see whether the server is well and which version it is, and authenticated users may discover
//! what is served: what the bootstrap roles `system:public-info-viewer` and `system:discovery` say.

use crate::User;
use crate::user::MASTERS;

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attributes<'a> {
    /// Something of the API.
    Resource {
        /// The verb, such as `list`.
        verb: &'a str,
        /// The API group.
        group: &'a str,
        /// The resource, with its subresource if any: `pods/status`.
        resource: &'a str,
        /// The namespace, or empty.
        namespace: &'a str,
        /// The object, or empty.
        name: &'a str,
    },
    /// Any other path.
    Path {
        /// The HTTP method in lower case.
        verb: &'a str,
        /// The path.
        path: &'a str,
    },
}

/// The answer to a question of permission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Go on.
    Allow,
    /// Stop.
    Deny,
}

const PUBLIC_PATHS: &[&str] = &["/healthz", "/livez", "/readyz", "/version", "/version/"];
const DISCOVERY_PATHS: &[&str] = &["/api", "/api/", "/apis", "/apis/", "/openapi", "/openapi/"];
const DISCOVERY_PREFIXES: &[&str] = &["/api/", "/apis/", "/openapi/"];

/// Decides.
pub fn authorize(user: &User, attributes: Attributes<'_>) -> Decision {
    if user.is_in(MASTERS) {
        return Decision::Allow;
    }
    let Attributes::Path { verb: "get", path } = attributes else {
        return Decision::Deny;
    };
    let discovery = DISCOVERY_PATHS.contains(&path)
        || DISCOVERY_PREFIXES
            .iter()
            .any(|prefix| path.starts_with(prefix));
    if PUBLIC_PATHS.contains(&path) || (discovery && user.is_in("system:authenticated")) {
        Decision::Allow
    } else {
        Decision::Deny
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anonymous_sees_health_and_version_only() {
        let path = |path| Attributes::Path { verb: "get", path };
        let anonymous = User::anonymous();
        assert_eq!(authorize(&anonymous, path("/healthz")), Decision::Allow);
        for refused in ["/", "/api", "/livez/ping", "/metrics", "/openapi/v2"] {
            assert_eq!(
                authorize(&anonymous, path(refused)),
                Decision::Deny,
                "{refused}"
            );
        }
        let someone = User::authenticated("jane", "", &[]);
        assert_eq!(authorize(&someone, path("/apis/apps/v1")), Decision::Allow);
        assert_eq!(authorize(&someone, path("/metrics")), Decision::Deny);
    }
}
