//! The formats that schemas can ask of a value.
//!
//! Contract: `apiextensions-apiserver/pkg/apiserver/validation/formats.go` for which there are, and
//! kube-openapi `pkg/validation/strfmt` for what they take. Dashes in a name mean nothing.

mod address;
mod number;
mod time;

use std::sync::LazyLock;

use object::addresses;
use regex::Regex;

use super::{Structural, ValueType};

/// The format that is asked of the value; empty if there is none or it is not known.
pub(super) fn of(schema: &Structural) -> &str {
    let Some(format) = schema.checks.as_ref().map(|checks| checks.format.as_str()) else {
        return "";
    };
    match effective_type(schema) {
        None | Some(ValueType::String) if is_for_text(format) => format,
        Some(ValueType::Integer) if matches!(format, "int32" | "int64") => format,
        Some(ValueType::Number) if matches!(format, "float" | "double") => format,
        _ => "",
    }
}

/// Whether a format is none that the server knows for its type, so that it asks nothing.
pub fn is_unrecognized(schema: &Structural) -> bool {
    let format = schema.checks.as_ref().map(|checks| checks.format.as_str());
    format.is_some_and(|format| !format.is_empty()) && of(schema).is_empty()
}

/// An integer or a string is of no single type.
fn effective_type(schema: &Structural) -> Option<ValueType> {
    match schema.int_or_string {
        true => None,
        false => schema.value_type,
    }
}

/// Whether a format is one of strings.
pub(super) fn is_for_text(format: &str) -> bool {
    checker(format).is_some()
}

/// Whether a text is of a format of strings.
pub(super) fn matches(format: &str, text: &str) -> bool {
    checker(format).is_none_or(|check| check(text))
}

fn checker(format: &str) -> Option<fn(&str) -> bool> {
    let dashed;
    let name = if format.contains('-') {
        dashed = format.replace('-', "");
        &dashed
    } else {
        format
    };
    Some(match name {
        "bsonobjectid" => |text| text.len() == 24 && is_hex(text),
        "uri" => address::is_request_uri,
        "email" => address::is_email,
        "hostname" => is_hostname,
        "ipv4" => |text| text.contains('.') && addresses::parse_sloppy(text).is_some(),
        "ipv6" => |text| text.contains(':') && text.parse::<std::net::Ipv6Addr>().is_ok(),
        "cidr" => |text| addresses::parse_cidr_sloppy(text).is_some(),
        "mac" => address::is_mac,
        "uuid" => |text| is_uuid(text, None),
        "uuid3" => |text| is_uuid(text, Some(b'3')),
        "uuid4" => |text| is_uuid(text, Some(b'4')),
        "uuid5" => |text| is_uuid(text, Some(b'5')),
        "isbn" => |text| number::is_isbn10(text) || number::is_isbn13(text),
        "isbn10" => number::is_isbn10,
        "isbn13" => number::is_isbn13,
        "creditcard" => number::is_credit_card,
        "ssn" => number::is_social_security_number,
        "hexcolor" => is_hex_color,
        "rgbcolor" => |text| RGB_COLOR.is_match(text),
        "byte" => is_base64,
        "password" => |_| true,
        "date" => time::is_date,
        "duration" => time::is_duration,
        "datetime" => time::is_date_time,
        "k8sshortname" => |text| text.len() <= 63 && is_name_part(text),
        "k8slongname" => |text| text.len() <= 253 && text.split('.').all(is_name_part),
        _ => return None,
    })
}

fn expression(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the pattern is a constant")
}

static RGB_COLOR: LazyLock<Regex> = LazyLock::new(|| {
    let part = r"[\t\n\x0C\r ]*(0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])[\t\n\x0C\r ]*";
    expression(&format!(r"^rgb\({part},{part},{part}\)$"))
});

static HOSTNAME: LazyLock<Regex> = LazyLock::new(|| {
    let plain = r"a-zA-Z0-9\p{S}\p{L}";
    let single = format!("[{plain}]((-?[{plain}]{{0,62}})?)");
    let label = format!(r"[{plain}](([{plain}-]{{0,61}}[{plain}])?)(\.)");
    let domain = format!(r"({label}){{1,}}([a-zA-Z\p{{L}}]){{2,63}}");
    expression(&format!("^({single}|{domain})$"))
});

fn is_hostname(text: &str) -> bool {
    text.len() <= 255 && text.split('.').all(|label| label.len() <= 63) && HOSTNAME.is_match(text)
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn is_hex_color(text: &str) -> bool {
    let digits = text.strip_prefix('#').unwrap_or(text);
    matches!(digits.len(), 3 | 6) && is_hex(digits)
}

fn is_name_part(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    text.bytes().all(|byte| plain(byte) || byte == b'-')
        && text.bytes().next().is_some_and(plain)
        && text.bytes().last().is_some_and(plain)
}

/// Groups of 8, 4, 4, 4 and 12 digits, with a dash between any of them.
fn is_uuid(text: &str, version: Option<u8>) -> bool {
    let mut rest = text.as_bytes();
    let mut groups = [&[][..]; 5];
    for (place, length) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if place > 0
            && let Some(after) = rest.strip_prefix(b"-")
        {
            rest = after;
        }
        let Some((group, after)) = rest.split_at_checked(length) else {
            return false;
        };
        if !group.iter().all(u8::is_ascii_hexdigit) {
            return false;
        }
        groups[place] = group;
        rest = after;
    }
    let variant = groups[3].first().copied().unwrap_or_default();
    let right_version = match version {
        None => true,
        Some(version) => groups[2].first() == Some(&version),
    };
    let right_variant = match version {
        None | Some(b'3') => true,
        Some(_) => matches!(variant, b'8' | b'9' | b'a' | b'b' | b'A' | b'B'),
    };
    rest.is_empty() && right_version && right_variant
}

/// Standard base64 with its padding, of at least one group.
fn is_base64(text: &str) -> bool {
    let body = text.trim_end_matches('=');
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    !text.is_empty()
        && text.len().is_multiple_of(4)
        && text.len() - body.len() <= 2
        && body.bytes().all(plain)
}
