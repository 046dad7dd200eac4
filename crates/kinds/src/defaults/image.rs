//! Reads as much of an image reference as the pull policy depends on.
//!
//! The grammar is that of container registries: `[domain/]path[:tag][@digest]`. A reference that
//! cannot be read has no tag, so it counts as neither tagged nor latest.

/// The pull policy of an image: always when its tag is, or means, `latest`.
pub(super) fn pull_policy(image: &str) -> &'static str {
    if is_latest(image) {
        "Always"
    } else {
        "IfNotPresent"
    }
}

/// Whether a reference names the tag `latest`, or neither tag nor digest.
fn is_latest(image: &str) -> bool {
    let (named, digest) = match image.split_once('@') {
        Some((named, digest)) => (named, Some(digest)),
        None => (image, None),
    };
    // A colon before the last slash belongs to the port of the registry.
    let last = named.rfind('/').map_or(0, |slash| slash + 1);
    let (name, tag) = match named[last..].find(':') {
        Some(colon) => (&named[..last + colon], Some(&named[last + colon + 1..])),
        None => (named, None),
    };
    let readable = is_name(name) && tag.is_none_or(is_tag) && digest.is_none_or(is_digest);
    readable && tag.map_or(digest.is_none(), |tag| tag == "latest")
}

fn is_name(name: &str) -> bool {
    let (domain, path) = split_domain(name);
    // Sixty-four hexadecimal digits alone would be taken for an identifier.
    let is_identifier =
        domain.is_none() && path.len() == 64 && path.bytes().all(|byte| byte.is_ascii_hexdigit());
    !is_identifier && domain.is_none_or(is_domain) && path.split('/').all(is_component)
}

/// The first component is a domain only when it cannot be a path component of the default registry.
fn split_domain(name: &str) -> (Option<&str>, &str) {
    match name.split_once('/') {
        Some((first, rest))
            if first.contains(['.', ':'])
                || first == "localhost"
                || first.contains(|character: char| character.is_ascii_uppercase()) =>
        {
            (Some(first), rest)
        }
        _ => (None, name),
    }
}

fn is_domain(domain: &str) -> bool {
    let (host, port) = match domain.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (domain, None),
    };
    let is_label = |label: &str| {
        !label.is_empty()
            && label
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let is_address = |host: &str| {
        host.strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
            .is_some_and(|inner| {
                inner
                    .bytes()
                    .all(|byte| byte.is_ascii_hexdigit() || byte == b':')
            })
    };
    (host.split('.').all(is_label) || is_address(host))
        && port
            .is_none_or(|port| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Lower-case letters and digits, in groups joined by one of `.`, `_`, `__` or dashes.
fn is_component(component: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = component.as_bytes();
    let ends_plain =
        bytes.first().copied().is_some_and(is_plain) && bytes.last().copied().is_some_and(is_plain);
    ends_plain
        && component
            .split(|character: char| character.is_ascii_lowercase() || character.is_ascii_digit())
            .all(|separator| {
                matches!(separator, "" | "." | "_" | "__")
                    || separator.bytes().all(|byte| byte == b'-')
            })
}

fn is_tag(tag: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    tag.len() <= 128
        && tag.bytes().next().is_some_and(is_word)
        && tag
            .bytes()
            .all(|byte| is_word(byte) || byte == b'.' || byte == b'-')
}

fn is_digest(digest: &str) -> bool {
    digest.split_once(':').is_some_and(|(algorithm, hash)| {
        algorithm.starts_with(|first: char| first.is_ascii_alphabetic())
            && hash.len() >= 32
            && hash.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn which_images_are_always_pulled() {
        let hash = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
        let cases = [
            ("app", true),
            ("app:latest", true),
            ("registry.example:5000/team/app", true),
            ("registry.example:5000/team/app:latest", true),
            ("app:1", false),
            ("registry.example:5000/app:v1.2_3-rc", false),
            (&format!("app@sha256:{hash}"), false),
            (&format!("app:latest@sha256:{hash}"), true),
            ("", false),
            ("App", false),
            ("team/App", false),
            ("team//app", false),
            ("app:", false),
            ("app:-x", false),
            ("a__b/c--d/e.f", true),
            ("a___b", false),
            ("a b", false),
            (hash, false),
            ("[2001:db8::1]:5000/app", true),
            ("Registry/app", true),
        ];
        for (image, always) in cases {
            let expected = if always { "Always" } else { "IfNotPresent" };
            assert_eq!(pull_policy(image), expected, "{image}");
        }
    }
}
