//! Addresses: of resources, of mailboxes and of network cards.

/// What Go's `url.ParseRequestURI` reads: an absolute URI or an absolute path.
pub(super) fn is_request_uri(text: &str) -> bool {
    if text.is_empty() || text.bytes().any(|byte| byte < 0x20 || byte == 0x7f) {
        return false;
    }
    if text == "*" {
        return true;
    }
    let Some((scheme, rest)) = split_scheme(text) else {
        return false;
    };
    let rest = rest.split('?').next().unwrap_or_default();
    if !rest.starts_with('/') {
        return !scheme.is_empty();
    }
    let Some(authority) = rest.strip_prefix("//").filter(|_| !scheme.is_empty()) else {
        return is_escaped(rest);
    };
    let end = authority.find('/').unwrap_or(authority.len());
    let (authority, path) = authority.split_at(end);
    is_authority(authority) && is_escaped(path)
}

/// The scheme, which may be empty, and the rest; `None` if a colon comes first.
fn split_scheme(text: &str) -> Option<(&str, &str)> {
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if at > 0 => {}
            b':' if at == 0 => return None,
            b':' => return Some((&text[..at], &text[at + 1..])),
            _ => break,
        }
    }
    Some(("", text))
}

fn is_authority(text: &str) -> bool {
    let (user, host) = match text.rsplit_once('@') {
        Some((user, host)) => (user, host),
        None => ("", text),
    };
    let user_part =
        |byte: u8| byte.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&byte);
    is_escaped(user) && user.bytes().all(user_part) && is_host(host)
}

fn is_host(text: &str) -> bool {
    if let Some(inner) = text.strip_prefix('[') {
        let Some((address, port)) = inner.rsplit_once(']') else {
            return false;
        };
        return is_optional_port(port) && is_host_text(address);
    }
    match text.rfind(':') {
        Some(at) => is_optional_port(&text[at..]) && is_host_text(&text[..at]),
        None => is_host_text(text),
    }
}

fn is_optional_port(text: &str) -> bool {
    text.is_empty()
        || text
            .strip_prefix(':')
            .is_some_and(|port| port.bytes().all(|byte| byte.is_ascii_digit()))
}

fn is_host_text(text: &str) -> bool {
    let allowed = |byte: u8| {
        byte >= 0x80 || byte.is_ascii_alphanumeric() || b"-_.~!$&'()*+,;=:[]<>\"%".contains(&byte)
    };
    // Only bytes beyond ASCII may be escaped in a host, and the percent sign itself.
    let escapes = text.split('%').skip(1);
    let fine = |part: &str| part.starts_with("25") || !part.starts_with(|it| it < '8');
    text.bytes().all(allowed) && is_escaped(text) && escapes.into_iter().all(fine)
}

/// Whether every percent sign begins an escape.
fn is_escaped(text: &str) -> bool {
    let mut parts = text.split('%');
    parts.next();
    parts.all(|part| {
        let digits = part.as_bytes().get(..2);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    })
}

/// What Go's `mail.ParseAddress` reads: `a@b` or `Name <a@b>`.
pub(super) fn is_email(text: &str) -> bool {
    let text = text.trim_matches([' ', '\t']);
    let address = match (text.strip_suffix('>'), text.rfind('<')) {
        (Some(inside), Some(at)) if is_phrase(&text[..at]) => &inside[at + 1..],
        (None, _) => text,
        _ => return false,
    };
    let Some((local, domain)) = address.rsplit_once('@') else {
        return false;
    };
    let literal = domain.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
    let good_domain = match literal {
        Some(literal) => literal.parse::<std::net::IpAddr>().is_ok(),
        None => is_dot_atom(domain),
    };
    (is_dot_atom(local) || is_quoted(local)) && good_domain
}

fn is_phrase(text: &str) -> bool {
    let text = text.trim_matches([' ', '\t']);
    is_quoted(text)
        || text
            .split([' ', '\t'])
            .all(|word| word.is_empty() || is_dot_atom(word))
}

fn is_quoted(text: &str) -> bool {
    let inner = text.strip_prefix('"').and_then(|it| it.strip_suffix('"'));
    inner.is_some_and(|inner| {
        let mut escaped = false;
        let fine = inner.chars().all(|it| {
            let fine = escaped || it != '"';
            escaped = !escaped && it == '\\';
            fine && !it.is_control()
        });
        fine && !escaped
    })
}

fn is_dot_atom(text: &str) -> bool {
    let part = |it: char| {
        !it.is_ascii() || it.is_ascii_alphanumeric() || "!#$%&'*+-/=?^_`{|}~".contains(it)
    };
    text.split('.')
        .all(|atom| !atom.is_empty() && atom.chars().all(part))
}

/// Six, eight or twenty octets: pairs between colons or dashes, or groups of four between dots.
pub(super) fn is_mac(text: &str) -> bool {
    let grouped = |separator: char, digits: usize, counts: [usize; 3]| {
        let groups: Vec<&str> = text.split(separator).collect();
        counts.contains(&groups.len())
            && groups
                .iter()
                .all(|group| group.len() == digits && super::is_hex(group))
    };
    grouped(':', 2, [6, 8, 20]) || grouped('-', 2, [6, 8, 20]) || grouped('.', 4, [3, 4, 10])
}
