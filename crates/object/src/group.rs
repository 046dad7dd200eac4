//! Groups, versions, kinds and resources, and which version is preferred.
//!
//! Contract: apimachinery `runtime/schema/group_version.go` and `version/helpers.go`.

use std::cmp::Ordering;
use std::fmt;

use crate::Text;

/// An `apiVersion` with more than one slash.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unexpected GroupVersion string: {0}")]
pub struct ApiVersionError(pub String);

/// Cuts an `apiVersion` into group and version; the group of `v1` is empty.
///
/// # Errors
/// If there is more than one slash.
pub fn parse_api_version(text: &str) -> Result<(&str, &str), ApiVersionError> {
    match text.split_once('/') {
        None => Ok(("", text)),
        Some((_, version)) if version.contains('/') => Err(ApiVersionError(text.to_owned())),
        Some(parts) => Ok(parts),
    }
}

/// Joins group and version to an `apiVersion`.
pub fn api_version(group: &str, version: &str) -> Text {
    if group.is_empty() {
        version.into()
    } else {
        format!("{group}/{version}").into()
    }
}

/// A group and one of its versions; prints as an `apiVersion`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct GroupVersion {
    /// The group; empty for the core.
    pub group: Text,
    /// The version.
    pub version: Text,
}

impl GroupVersion {
    /// Names a version of a group.
    pub fn new(group: impl Into<Text>, version: impl Into<Text>) -> GroupVersion {
        GroupVersion {
            group: group.into(),
            version: version.into(),
        }
    }

    /// Reads an `apiVersion`.
    ///
    /// # Errors
    /// If there is more than one slash.
    pub fn parse(text: &str) -> Result<GroupVersion, ApiVersionError> {
        let (group, version) = parse_api_version(text)?;
        Ok(GroupVersion::new(group, version))
    }
}

impl fmt::Display for GroupVersion {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&api_version(&self.group, &self.version))
    }
}

/// A kind in a version of a group; prints as messages name it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct GroupVersionKind {
    /// The group; empty for the core.
    pub group: Text,
    /// The version.
    pub version: Text,
    /// The kind, such as `Pod`.
    pub kind: Text,
}

impl GroupVersionKind {
    /// Names a kind.
    pub fn new(
        group: impl Into<Text>,
        version: impl Into<Text>,
        kind: impl Into<Text>,
    ) -> GroupVersionKind {
        GroupVersionKind {
            group: group.into(),
            version: version.into(),
            kind: kind.into(),
        }
    }

    /// What the object's `apiVersion` says.
    pub fn api_version(&self) -> Text {
        api_version(&self.group, &self.version)
    }

    /// The kind whatever its version.
    pub fn group_kind(&self) -> GroupKind {
        GroupKind {
            group: self.group.clone(),
            kind: self.kind.clone(),
        }
    }
}

impl fmt::Display for GroupVersionKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}, Kind={}", self.group, self.version, self.kind)
    }
}

/// A resource in a version of a group; prints as messages name it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct GroupVersionResource {
    /// The group; empty for the core.
    pub group: Text,
    /// The version.
    pub version: Text,
    /// The resource, such as `pods`.
    pub resource: Text,
}

impl GroupVersionResource {
    /// Names a resource.
    pub fn new(
        group: impl Into<Text>,
        version: impl Into<Text>,
        resource: impl Into<Text>,
    ) -> GroupVersionResource {
        let (group, version) = (group.into(), version.into());
        GroupVersionResource {
            group,
            version,
            resource: resource.into(),
        }
    }

    /// The resource whatever its version.
    pub fn group_resource(&self) -> GroupResource {
        GroupResource {
            group: self.group.clone(),
            resource: self.resource.clone(),
        }
    }
}

impl fmt::Display for GroupVersionResource {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "{}/{}, Resource={}",
            self.group, self.version, self.resource
        )
    }
}

/// A kind of a group, in any version; prints as `Deployment.apps`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct GroupKind {
    /// The group; empty for the core.
    pub group: Text,
    /// The kind.
    pub kind: Text,
}

impl fmt::Display for GroupKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        dotted(&self.kind, &self.group, out)
    }
}

/// A resource of a group, in any version; prints as `deployments.apps`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct GroupResource {
    /// The group; empty for the core.
    pub group: Text,
    /// The resource.
    pub resource: Text,
}

impl GroupResource {
    /// Reads `deployments.apps`: the group follows the first dot.
    pub fn parse(text: &str) -> GroupResource {
        let (resource, group) = text.split_once('.').unwrap_or((text, ""));
        GroupResource {
            group: group.into(),
            resource: resource.into(),
        }
    }
}

impl fmt::Display for GroupResource {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        dotted(&self.resource, &self.group, out)
    }
}

fn dotted(name: &str, group: &str, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    if group.is_empty() {
        out.write_str(name)
    } else {
        write!(out, "{name}.{group}")
    }
}

/// Compares versions by preference; the greater one is preferred.
///
/// Stable before beta before alpha, then by number; what does not look like a version comes last,
/// in alphabetical order.
pub fn compare_versions(left: &str, right: &str) -> Ordering {
    match (version_rank(left), version_rank(right)) {
        (Some(left), Some(right)) => left.cmp(&right),
        (Some(_), None) => Ordering::Greater,
        (None, Some(_)) => Ordering::Less,
        (None, None) => right.cmp(left),
    }
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Maturity {
    Alpha,
    Beta,
    Stable,
}

/// Reads `v1`, `v2beta3` or `v1alpha1`; more important first.
fn version_rank(text: &str) -> Option<(Maturity, u64, u64)> {
    let (major, rest) = leading_number(text.strip_prefix('v')?)?;
    if rest.is_empty() {
        return Some((Maturity::Stable, major, 0));
    }
    let (maturity, minor) = match (rest.strip_prefix("alpha"), rest.strip_prefix("beta")) {
        (Some(minor), _) => (Maturity::Alpha, minor),
        (_, Some(minor)) => (Maturity::Beta, minor),
        _ => return None,
    };
    let (minor, rest) = leading_number(minor)?;
    rest.is_empty().then_some((maturity, major, minor))
}

fn leading_number(text: &str) -> Option<(u64, &str)> {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    Some((
        digits
            .parse()
            .ok()
            .filter(|number| i64::try_from(*number).is_ok())?,
        rest,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_api_version_has_at_most_one_slash() {
        let cases = [
            ("", Ok(("", ""))),
            ("/", Ok(("", ""))),
            ("v1", Ok(("", "v1"))),
            ("apps/v1", Ok(("apps", "v1"))),
            ("apps/", Ok(("apps", ""))),
            ("/v1", Ok(("", "v1"))),
            (
                "a/b/c",
                Err("unexpected GroupVersion string: a/b/c".to_owned()),
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(
                parse_api_version(text).map_err(|error| error.to_string()),
                expected
            );
        }
    }

    #[test]
    fn names_print_as_messages_write_them() {
        assert_eq!(GroupVersion::new("apps", "v1").to_string(), "apps/v1");
        assert_eq!(GroupVersion::parse("v1").unwrap().to_string(), "v1");
        let kind = GroupVersionKind::new("apps", "v1", "Deployment");
        assert_eq!(kind.to_string(), "apps/v1, Kind=Deployment");
        assert_eq!(kind.group_kind().to_string(), "Deployment.apps");
        let resource = GroupVersionResource::new("", "v1", "pods");
        assert_eq!(resource.to_string(), "/v1, Resource=pods");
        assert_eq!(resource.group_resource().to_string(), "pods");
        assert_eq!(GroupResource::parse("a.b.c").group, "b.c");
    }

    #[test]
    fn preferred_versions_come_first() {
        let expected = [
            "v10",
            "v2",
            "v1",
            "v11beta2",
            "v10beta3",
            "v3beta1",
            "v12alpha1",
            "v11alpha2",
            "foo1",
            "foo10",
            "v1gamma1",
            "v99999999999999999999",
        ];
        let mut versions = expected;
        versions.sort();
        versions.sort_by(|left, right| compare_versions(right, left));
        assert_eq!(versions, expected);
    }
}
