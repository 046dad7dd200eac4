//! Formats that text can be checked against.
//!
//! Contract: `k8s.io/apiserver/pkg/cel/library/format.go`.

use super::url::Url;
use crate::evaluate::{Fault, Meter};
use crate::function::Declaration;
use crate::value::{Library, Value, parse_date};
use object::names;

type Outcome<'v> = Result<Value<'v>, Fault>;

/// A format by name.
#[derive(Debug)]
pub struct Format {
    pub(crate) name: &'static str,
    /// How large upstream's pattern for it is, by which a check is charged.
    pub(crate) pattern_size: u64,
    /// All that is wrong with a text.
    check: fn(&str) -> Vec<String>,
}

macro_rules! formats {
    ($(($function:literal, $name:literal, $size:literal, $check:expr)),* $(,)?) => {
        static FORMATS: &[(&str, Format)] = &[$(
            ($function, Format { name: $name, pattern_size: $size, check: $check }),
        )*];

        pub(crate) const FUNCTIONS: &[Declaration] = &[
            $(Declaration {
                name: concat!("format.", $function),
                overloads: &[(concat!("format.", $function), "() -> Format")],
                native: |_, _| Ok(named($function).map_or(Value::Null, wrap)),
            },)*
            Declaration {
                name: "format.named",
                overloads: &[("format-named", "(string) -> optional(Format)")],
                native: |arguments, _| match arguments {
                    [Value::String(name)] => Ok(match named(name) {
                        Some(format) => Value::some(wrap(format)),
                        None => Value::Optional(None),
                    }),
                    _ => Err(Fault::no_overload()),
                },
            },
            Declaration {
                name: "validate",
                overloads: &[("format-validate", "Format.(string) -> optional(list(string))")],
                native: validate,
            },
        ];
    };
}

formats![
    ("dns1123Label", "DNS1123Label", 30, |text| {
        names::name_is_dns_label(text, false)
    }),
    ("dns1123Subdomain", "DNS1123Subdomain", 60, |text| {
        names::name_is_dns_subdomain(text, false)
    }),
    ("dns1035Label", "DNS1035Label", 30, |text| {
        names::name_is_dns1035_label(text, false)
    }),
    ("qualifiedName", "QualifiedName", 60, names::qualified_name),
    ("dns1123LabelPrefix", "DNS1123LabelPrefix", 30, |text| {
        names::name_is_dns_label(text, true)
    }),
    (
        "dns1123SubdomainPrefix",
        "DNS1123SubdomainPrefix",
        60,
        |text| { names::name_is_dns_subdomain(text, true) }
    ),
    ("dns1035LabelPrefix", "DNS1035LabelPrefix", 30, |text| {
        names::name_is_dns1035_label(text, true)
    }),
    ("labelValue", "LabelValue", 40, names::label_value),
    ("uri", "URI", 1103, |text| Url::parse_request(text)
        .err()
        .into_iter()
        .collect()),
    ("uuid", "uuid", 70, |text| complain(
        is_uuid(text),
        "does not match the UUID format"
    )),
    ("byte", "byte", 84, |text| complain(
        is_base64(text),
        "invalid base64"
    )),
    ("date", "date", 71, |text| complain(
        parse_date(text).is_some(),
        "invalid date"
    )),
    ("datetime", "datetime", 71, |text| complain(
        is_date_time(text),
        "invalid datetime"
    )),
];

fn named(name: &str) -> Option<&'static Format> {
    FORMATS
        .iter()
        .find(|(function, _)| *function == name)
        .map(|(_, format)| format)
}

fn wrap<'v>(format: &'static Format) -> Value<'v> {
    Value::Library(Library::Format(format))
}

fn validate<'v>(arguments: &[Value<'v>], _: &mut Meter) -> Outcome<'v> {
    let [Value::Library(Library::Format(format)), Value::String(text)] = arguments else {
        return Err(Fault::no_overload());
    };
    let complaints = (format.check)(text);
    if complaints.is_empty() {
        return Ok(Value::Optional(None));
    }
    let complaints = complaints.into_iter().map(Value::owned_text);
    Ok(Value::some(Value::list(complaints.collect())))
}

fn complain(is_valid: bool, complaint: &str) -> Vec<String> {
    match is_valid {
        true => Vec::new(),
        false => vec![complaint.to_owned()],
    }
}

/// 32 hexadecimal digits, with or without dashes after the 8th, 12th, 16th and 20th.
fn is_uuid(text: &str) -> bool {
    let mut rest = text;
    for (index, digits) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if index > 0 {
            rest = rest.strip_prefix('-').unwrap_or(rest);
        }
        let Some(part) = rest.get(..digits) else {
            return false;
        };
        if !part.bytes().all(|it| it.is_ascii_hexdigit()) {
            return false;
        }
        rest = &rest[digits..];
    }
    rest.is_empty()
}

fn is_base64(text: &str) -> bool {
    let digits = text.trim_end_matches('=');
    let padding = text.len() - digits.len();
    let plain = |it: u8| it.is_ascii_alphanumeric() || matches!(it, b'+' | b'/');
    !text.is_empty() && text.len().is_multiple_of(4) && padding <= 2 && digits.bytes().all(plain)
}

fn is_date_time(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let Some((date, rest)) = lower.split_once('t') else {
        return false;
    };
    let rest = rest.split('t').next().unwrap_or_default();
    let number = |from: usize| {
        rest.get(from..from + 2)
            .and_then(|it| it.parse::<u8>().ok())
    };
    let clock = rest.len() > 8
        && rest.as_bytes()[2] == b':'
        && rest.as_bytes()[5] == b':'
        && number(0).is_some_and(|it| it <= 23)
        && number(3).is_some_and(|it| it <= 59)
        && number(6).is_some_and(|it| it <= 59);
    clock && parse_date(date).is_some() && is_zone(&rest[8..])
}

/// An optional fraction and a zone.
fn is_zone(text: &str) -> bool {
    let mut rest = text;
    if let Some(fraction) = rest.strip_prefix('.') {
        let digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
        if digits == 0 {
            return false;
        }
        rest = &fraction[digits..];
    }
    match rest.as_bytes() {
        [b'z'] => true,
        [b'+' | b'-', a, b, b':', c, d] => [a, b, c, d].iter().all(|it| it.is_ascii_digit()),
        _ => false,
    }
}
