//! Patterns over text.
//!
//! Contract: `matches` of the standard library and `k8s.io/apiserver/pkg/cel/library/regex.go`.

use crate::evaluate::{Fault, Meter};
use crate::function::Declaration;
use crate::value::{Text, Value};
use crate::work::Work;
use regex::Regex;

type Outcome<'v> = Result<Value<'v>, Fault>;

pub(crate) const FUNCTIONS: &[Declaration] = &[
    Declaration {
        name: "matches",
        overloads: &[
            ("matches", "(string, string) -> bool"),
            ("matches_string", "string.(string) -> bool"),
        ],
        native: |arguments, meter| dynamic("matches", arguments, meter),
    },
    Declaration {
        name: "find",
        overloads: &[("string_find_string", "string.(string) -> string")],
        native: |arguments, meter| dynamic("find", arguments, meter),
    },
    Declaration {
        name: "findAll",
        overloads: &[
            ("string_find_all_string", "string.(string) -> list(string)"),
            (
                "string_find_all_string_int",
                "string.(string, int) -> list(string)",
            ),
        ],
        native: |arguments, meter| dynamic("findAll", arguments, meter),
    },
];

fn dynamic<'v>(function: &'static str, arguments: &[Value<'v>], meter: &mut Meter) -> Outcome<'v> {
    let [Value::String(_), Value::String(pattern), ..] = arguments else {
        return Err(Fault::no_overload());
    };
    let pattern = match (meter.pattern(pattern), function) {
        (Ok(pattern), _) => pattern.clone(),
        (Err(Fault::Message(message)), "find" | "findAll") => {
            return Err(Fault::from(format!("Illegal regex: {message}")));
        }
        (Err(fault), _) => return Err(fault),
    };
    run(function, &pattern, arguments, &meter.work)
}

/// What one match of a pattern takes, in nanoseconds.
const MATCH: u64 = 100;

/// Runs one of the functions with a compiled pattern.
pub(crate) fn run<'v>(
    function: &str,
    pattern: &Regex,
    arguments: &[Value<'v>],
    work: &Work,
) -> Outcome<'v> {
    let [Value::String(text), _, rest @ ..] = arguments else {
        return Err(Fault::no_overload());
    };
    match function {
        "matches" => Ok(Value::Bool(pattern.is_match(text))),
        "find" => Ok(match pattern.find(text) {
            Some(found) => part(text, found.start(), found.end()),
            None => Value::text(""),
        }),
        _ => {
            let most = match rest {
                [] => usize::MAX,
                [Value::Int(most)] => usize::try_from(*most).unwrap_or(usize::MAX),
                _ => return Err(Fault::no_overload()),
            };
            let found = pattern.find_iter(text).take(most);
            let parts = found.map(|it| {
                work.spend(MATCH)?;
                Ok(part(text, it.start(), it.end()))
            });
            Ok(Value::list(parts.collect::<Result<_, Fault>>()?))
        }
    }
}

fn part<'v>(text: &Text<'v>, from: usize, to: usize) -> Value<'v> {
    match text {
        Text::Borrowed(text) => Value::text(&text[from..to]),
        Text::Owned(text) => Value::owned_text(&text[from..to]),
    }
}
