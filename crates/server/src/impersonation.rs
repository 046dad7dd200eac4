//! The headers by which a request asks to act as someone else.

use auth::{NoName, Wanted};
use hyper::header::{HeaderMap, HeaderValue};
use object::Text;

use crate::request::percent_decode;

/// What all of these headers begin with.
const ALL: &str = "impersonate-";
const EXTRA: &str = "impersonate-extra-";

/// Whom a request asks to act as; `None` if it does not. An empty user name counts as none.
///
/// # Errors
/// Groups, an id or extra values are asked for without a name.
pub(crate) fn wanted(headers: &HeaderMap) -> Result<Option<Wanted>, NoName> {
    if !headers.keys().any(|name| name.as_str().starts_with(ALL)) {
        return Ok(None);
    }
    let first = |name: &str| headers.get(name).map(text).unwrap_or_default();
    let mut wanted = Wanted {
        name: first("impersonate-user"),
        uid: first("impersonate-uid"),
        groups: headers
            .get_all("impersonate-group")
            .iter()
            .map(text)
            .collect(),
        ..Wanted::default()
    };
    for (name, value) in headers {
        if let Some(key) = name.as_str().strip_prefix(EXTRA) {
            // A key that is not properly encoded is taken as it is.
            let key = percent_decode(key).unwrap_or_else(|| key.to_owned());
            wanted
                .extra
                .entry(Text::from(key))
                .or_default()
                .push(text(value));
        }
    }
    if !wanted.name.is_empty() {
        return Ok(Some(wanted));
    }
    if wanted.uid.is_empty() && wanted.groups.is_empty() && wanted.extra.is_empty() {
        return Ok(None);
    }
    Err(NoName(wanted))
}

fn text(value: &HeaderValue) -> Text {
    Text::from(String::from_utf8_lossy(value.as_bytes()))
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderName;

    use super::*;

    fn read(headers: &[(&str, &str)]) -> Result<Option<Wanted>, String> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
            map.append(name, HeaderValue::from_str(value).unwrap());
        }
        wanted(&map).map_err(|error| error.to_string())
    }

    #[test]
    fn whom_do_the_headers_name() {
        assert_eq!(read(&[]), Ok(None));
        assert_eq!(read(&[("Impersonate-User", "")]), Ok(None));
        let all = read(&[
            ("Impersonate-User", "jane"),
            ("Impersonate-Group", "a"),
            ("Impersonate-Group", "b"),
            ("Impersonate-Uid", "7"),
            ("Impersonate-Extra-Acme.com%2Fproject", "x"),
            ("Impersonate-Extra-acme.com%2fProject", "y"),
            ("Impersonate-Extra-Bad%zz", "z"),
        ]);
        let all = all.unwrap().unwrap();
        assert_eq!((all.name.as_str(), all.uid.as_str()), ("jane", "7"));
        assert_eq!(all.groups, ["a", "b"]);
        assert_eq!(all.extra["acme.com/project"], ["x", "y"]);
        assert_eq!(all.extra["bad%zz"], ["z"]);
    }

    #[test]
    fn nothing_but_a_name_stands_alone() {
        let cases = [
            (("Impersonate-Uid", "7"), "UID:\"7\", Groups:[]string(nil)"),
            (("Impersonate-Group", ""), "UID:\"\", Groups:[]string{\"\"}"),
        ];
        for (header, told) in cases {
            let expected = format!(
                "requested &user.DefaultInfo{{Name:\"\", {told}, Extra:map[string][]string(nil)}} \
                 without impersonating a user name"
            );
            assert_eq!(read(&[header]), Err(expected));
        }
        let extra = read(&[("Impersonate-Extra-Dept", "demo")]).unwrap_err();
        assert!(
            extra.contains("Extra:map[string][]string{\"dept\":[]string{\"demo\"}}"),
            "{extra}"
        );
    }
}
