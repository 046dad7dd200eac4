//! URLs and their parts.
//!
//! Contract: `k8s.io/apiserver/pkg/cel/library/urls.go` over Go's `net/url`.

use crate::evaluate::{Fault, Meter};
use crate::function::Declaration;
use crate::value::{Entries, Key, Library, Map, Value, quoted};
use std::fmt;
use std::sync::Arc;

type Outcome<'v> = Result<Value<'v>, Fault>;

/// A parsed URL.
#[derive(Clone, Debug)]
pub struct Url {
    scheme: String,
    /// What follows the scheme if it starts with no slash.
    opaque: String,
    user: Option<String>,
    host: String,
    /// The path as it was written.
    path: Vec<u8>,
    raw_path: String,
    query: Option<String>,
    fragment: Option<String>,
}

pub(crate) const FUNCTIONS: &[Declaration] = &[
    Declaration {
        name: "url",
        overloads: &[("string_to_url", "(string) -> URL")],
        native: |arguments, _| match arguments {
            [Value::String(text)] => {
                let failed = |why: String| {
                    Fault::from(format!(
                        "URL parse error during conversion from string: {why}"
                    ))
                };
                Url::parse_request(text).map_err(failed)?;
                let url = Url::parse(text).map_err(failed)?;
                Ok(Value::Library(Library::Url(Arc::new(url))))
            }
            _ => Err(Fault::no_overload()),
        },
    },
    Declaration {
        name: "isURL",
        overloads: &[("is_url_string", "(string) -> bool")],
        native: |arguments, _| match arguments {
            [Value::String(text)] => Ok(Value::Bool(Url::parse_request(text).is_ok())),
            _ => Err(Fault::no_overload()),
        },
    },
    Declaration {
        name: "getScheme",
        overloads: &[("url_get_scheme", "URL.() -> string")],
        native: |arguments, meter| part(arguments, meter, |url| url.scheme.clone()),
    },
    Declaration {
        name: "getHost",
        overloads: &[("url_get_host", "URL.() -> string")],
        native: |arguments, meter| part(arguments, meter, |url| url.host.clone()),
    },
    Declaration {
        name: "getHostname",
        overloads: &[("url_get_hostname", "URL.() -> string")],
        native: |arguments, meter| part(arguments, meter, |url| url.host_and_port().0.to_owned()),
    },
    Declaration {
        name: "getPort",
        overloads: &[("url_get_port", "URL.() -> string")],
        native: |arguments, meter| part(arguments, meter, |url| url.host_and_port().1.to_owned()),
    },
    Declaration {
        name: "getEscapedPath",
        overloads: &[("url_get_escaped_path", "URL.() -> string")],
        native: |arguments, meter| part(arguments, meter, Url::escaped_path),
    },
    Declaration {
        name: "getQuery",
        overloads: &[("url_get_query", "URL.() -> map(string, list(string))")],
        native: |arguments, _| match arguments {
            [Value::Library(Library::Url(url))] => Ok(url.query_values()),
            _ => Err(Fault::no_overload()),
        },
    },
];

fn part<'v>(arguments: &[Value<'v>], _: &mut Meter, read: fn(&Url) -> String) -> Outcome<'v> {
    match arguments {
        [Value::Library(Library::Url(url))] => Ok(Value::owned_text(read(url))),
        _ => Err(Fault::no_overload()),
    }
}

impl Url {
    /// Reads a URL that a request could be sent to: absolute, or a path from the root.
    pub(crate) fn parse_request(text: &str) -> Result<Url, String> {
        read(text, true).map_err(|why| format!("parse {}: {why}", quoted(text)))
    }

    fn parse(text: &str) -> Result<Url, String> {
        let (rest, fragment) = match text.split_once('#') {
            Some((rest, fragment)) => (rest, Some(fragment)),
            None => (text, None),
        };
        let failed = |why: String| format!("parse {}: {why}", quoted(text));
        let mut url = read(rest, false).map_err(failed)?;
        if let Some(fragment) = fragment {
            unescape(fragment).map_err(failed)?;
            url.fragment = Some(fragment.to_owned());
        }
        Ok(url)
    }

    fn host_and_port(&self) -> (&str, &str) {
        let host = &self.host;
        if let Some(rest) = host.strip_prefix('[')
            && let Some(end) = rest.find(']')
        {
            let port = rest[end + 1..].strip_prefix(':').unwrap_or_default();
            return (&rest[..end], port);
        }
        match host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|it| it.is_ascii_digit()) => (name, port),
            _ => (host, ""),
        }
    }

    fn escaped_path(&self) -> String {
        let allowed = |it: u8| !must_escape(it) || b"!'()*[]%".contains(&it);
        if self.raw_path.bytes().all(allowed) {
            return self.raw_path.clone();
        }
        if self.path == b"*" {
            return "*".to_owned();
        }
        escape(&self.path)
    }

    fn query_values(&self) -> Value<'static> {
        let mut entries: Vec<(String, Vec<Value<'static>>)> = Vec::new();
        for pair in self.query.iter().flat_map(|query| query.split('&')) {
            if pair.is_empty() || pair.contains(';') {
                continue;
            }
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let decoded = |text: &str| {
                let bytes = unescape(&text.replace('+', " ")).ok()?;
                Some(String::from_utf8_lossy(&bytes).into_owned())
            };
            let (Some(key), Some(value)) = (decoded(key), decoded(value)) else {
                continue;
            };
            let value = Value::owned_text(value);
            match entries.iter_mut().find(|(known, _)| *known == key) {
                Some((_, values)) => values.push(value),
                None => entries.push((key, vec![value])),
            }
        }
        let entries: Entries<'static> = entries
            .into_iter()
            .map(|(key, values)| (Key::String(key.into()), Value::list(values)))
            .collect();
        Value::Map(Map::Owned(Arc::new(entries)))
    }
}

impl fmt::Display for Url {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.scheme.is_empty() {
            write!(out, "{}:", self.scheme)?;
        }
        if !self.opaque.is_empty() {
            out.write_str(&self.opaque)?;
        } else {
            if !self.host.is_empty() || self.user.is_some() {
                out.write_str("//")?;
            }
            if let Some(user) = &self.user {
                write!(out, "{user}@")?;
            }
            write!(out, "{}{}", self.host, self.escaped_path())?;
        }
        if let Some(query) = &self.query {
            write!(out, "?{query}")?;
        }
        match &self.fragment {
            Some(fragment) => write!(out, "#{fragment}"),
            None => Ok(()),
        }
    }
}

fn read(text: &str, is_request: bool) -> Result<Url, String> {
    if text.bytes().any(|it| it < 0x20 || it == 0x7f) {
        return Err("net/url: invalid control character in URL".to_owned());
    }
    if text.is_empty() && is_request {
        return Err("empty url".to_owned());
    }
    let (scheme, rest) = split_scheme(text)?;
    let mut url = Url {
        scheme: scheme.to_ascii_lowercase(),
        opaque: String::new(),
        user: None,
        host: String::new(),
        path: Vec::new(),
        raw_path: String::new(),
        query: None,
        fragment: None,
    };
    let (mut rest, query) = match rest.split_once('?') {
        Some((rest, query)) => (rest, Some(query.to_owned())),
        None => (rest, None),
    };
    url.query = query;
    if text == "*" {
        url.path = b"*".to_vec();
        url.raw_path = "*".to_owned();
        return Ok(url);
    }
    if !rest.starts_with('/') {
        if !url.scheme.is_empty() {
            url.opaque = rest.to_owned();
            return Ok(url);
        }
        if is_request {
            return Err("invalid URI for request".to_owned());
        }
        if rest
            .split('/')
            .next()
            .is_some_and(|first| first.contains(':'))
        {
            return Err("first path segment in URL cannot contain colon".to_owned());
        }
    }
    let authority = !url.scheme.is_empty() || (!is_request && !rest.starts_with("///"));
    if authority && let Some(after) = rest.strip_prefix("//") {
        let end = after.find('/').unwrap_or(after.len());
        read_authority(&after[..end], &mut url)?;
        rest = &after[end..];
    }
    url.path = unescape(rest)?;
    url.raw_path = rest.to_owned();
    Ok(url)
}

fn split_scheme(text: &str) -> Result<(&str, &str), String> {
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if at > 0 => {}
            b':' if at == 0 => return Err("missing protocol scheme".to_owned()),
            b':' => return Ok((&text[..at], &text[at + 1..])),
            _ => break,
        }
    }
    Ok(("", text))
}

fn read_authority(text: &str, url: &mut Url) -> Result<(), String> {
    let (user, host) = match text.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, text),
    };
    check_host(host)?;
    url.host = host.to_owned();
    if let Some(user) = user {
        let valid = |it: u8| it.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&it);
        if !user.bytes().all(valid) {
            return Err("net/url: invalid userinfo".to_owned());
        }
        url.user = Some(user.to_owned());
    }
    Ok(())
}

fn check_host(host: &str) -> Result<(), String> {
    let port = match host.starts_with('[') {
        true => {
            let end = host.rfind(']').ok_or("missing ']' in host")?;
            &host[end + 1..]
        }
        false => host.rfind(':').map_or("", |at| &host[at..]),
    };
    let digits = port.strip_prefix(':').unwrap_or(port);
    let valid = port.is_empty() || (port.starts_with(':'));
    if !valid || !digits.bytes().all(|it| it.is_ascii_digit()) {
        return Err(format!("invalid port {} after host", quoted(port)));
    }
    let allowed = |it: char| {
        !it.is_ascii() || it.is_ascii_alphanumeric() || "-_.~!$&'()*+,;=:[]<>\"%".contains(it)
    };
    if let Some(bad) = host.chars().find(|it| !allowed(*it)) {
        return Err(format!(
            "invalid character {} in host name",
            quoted(&bad.to_string())
        ));
    }
    if let Some(at) = host.find('%') {
        let escape: String = host[at..].chars().take(3).collect();
        return Err(format!("invalid URL escape {}", quoted(&escape)));
    }
    Ok(())
}

fn unescape(text: &str) -> Result<Vec<u8>, String> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] != b'%' {
            out.push(bytes[at]);
            at += 1;
            continue;
        }
        let digits = bytes
            .get(at + 1..at + 3)
            .and_then(|it| std::str::from_utf8(it).ok());
        let decoded = digits
            .filter(|it| it.bytes().all(|digit| digit.is_ascii_hexdigit()))
            .and_then(|it| u8::from_str_radix(it, 16).ok());
        let Some(decoded) = decoded else {
            let shown: String = text[at..].chars().take(3).collect();
            return Err(format!("invalid URL escape {}", quoted(&shown)));
        };
        out.push(decoded);
        at += 3;
    }
    Ok(out)
}

fn must_escape(byte: u8) -> bool {
    !(byte.is_ascii_alphanumeric() || b"-_.~$&+,/:;=@".contains(&byte))
}

fn escape(path: &[u8]) -> String {
    let mut out = String::with_capacity(path.len());
    for byte in path {
        match must_escape(*byte) {
            true => out.push_str(&format!("%{byte:02X}")),
            false => out.push(char::from(*byte)),
        }
    }
    out
}
