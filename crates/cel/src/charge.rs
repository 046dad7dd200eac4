//! What a call costs when it runs.
//!
//! Contract: cel-go `interpreter/runtimecost.go`, `ext/sets.go`, `ext/lists.go` and
//! `k8s.io/apiserver/pkg/cel/library/cost.go`. The rule is chosen when a program is planned; it
//! needs only the sizes of arguments and result then.

use crate::value::{Library, Map, Value};

/// The rule by which a call is charged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Charge {
    /// The same always.
    Fixed(u64),
    /// By the whole content of the first argument.
    Traversal,
    /// By the size of the first argument.
    First(f64),
    /// By the size of the second argument, for a selector that is parsed.
    Selector,
    /// By the size of the result.
    Result(f64),
    /// By the sizes of text and pattern.
    Pattern,
    /// By the sizes of text and part.
    Contains,
    /// By the size of the second argument.
    Second,
    /// By the smaller of both arguments.
    Smaller,
    /// By both arguments.
    Both,
    /// By both arguments, each with each.
    Sets(f64),
    /// By the network, and by the text of what it should contain.
    Network { is_text: bool, is_network: bool },
    /// By the text and the format's longest pattern.
    Format,
    /// By the length of the list that comes out.
    NewList,
    /// By the length of the list and how deep it is flattened.
    Flatten,
    /// By each element compared with each.
    SelfCompare(usize),
}

/// What walking one character costs.
const CHARACTER: f64 = 0.1;
/// What one character of a pattern costs.
const PATTERN_CHARACTER: f64 = 0.25;
/// What a new list costs.
pub(crate) const LIST: u64 = 10;
/// What a new map costs.
pub(crate) const MAP: u64 = 30;
/// What a new object costs.
pub(crate) const OBJECT: u64 = 40;
/// What asking an authorizer costs.
pub(crate) const AUTHORIZATION: u64 = 350_000;

impl Charge {
    /// The rule for a function, and the overload if it is known to be the only one.
    pub(crate) fn of(function: &str, overload: &str) -> Charge {
        match function {
            "check" => return Charge::Fixed(AUTHORIZATION),
            "fieldSelector" | "labelSelector" => return Charge::Selector,
            "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" => {
                return Charge::Traversal;
            }
            "url"
            | "lowerAscii"
            | "upperAscii"
            | "substring"
            | "trim"
            | "jsonpatch.escapeKey"
            | "cidr"
            | "isIP"
            | "isCIDR"
            | "quantity"
            | "isQuantity"
            | "semver"
            | "isSemver" => {
                return Charge::First(CHARACTER);
            }
            "ip" if overload == "cidr_ip" => return Charge::Fixed(1),
            "ip" => return Charge::First(CHARACTER),
            "replace" | "split" | "ip.isCanonical" => return Charge::First(2.0 * CHARACTER),
            "join" => return Charge::Result(2.0 * CHARACTER),
            "find" | "findAll" => return Charge::Pattern,
            "containsIP" | "containsCIDR" => {
                return Charge::Network {
                    is_text: overload.ends_with("_string"),
                    is_network: function == "containsCIDR",
                };
            }
            "validate" => return Charge::Format,
            _ => {}
        }
        Charge::of_overload(overload)
    }

    fn of_overload(overload: &str) -> Charge {
        match overload {
            "starts_with_string" | "ends_with_string" | "string_to_bytes" | "bytes_to_string"
            | "strings_quote" | "string_format" => Charge::First(CHARACTER),
            "in_list" => Charge::Second,
            "less_string"
            | "greater_string"
            | "less_equals_string"
            | "greater_equals_string"
            | "less_bytes"
            | "greater_bytes"
            | "less_equals_bytes"
            | "greater_equals_bytes" => Charge::Smaller,
            "add_string" | "add_bytes" => Charge::Both,
            "matches_string" => Charge::Pattern,
            "contains_string" => Charge::Contains,
            "list_sets_contains_list" | "list_sets_intersects_list" => Charge::Sets(1.0),
            "list_sets_equivalent_list" => Charge::Sets(2.0),
            "list_slice" | "lists_range" | "list_reverse" => Charge::NewList,
            "list_flatten" | "list_flatten_int" => Charge::Flatten,
            "list_distinct" => Charge::SelfCompare(0),
            other if other.ends_with("_sort") => Charge::SelfCompare(0),
            other if other.ends_with("_sortByAssociatedKeys") => Charge::SelfCompare(1),
            _ => Charge::Fixed(1),
        }
    }

    /// Whether the cost is known only after the call.
    pub(crate) fn is_by_result(self) -> bool {
        matches!(self, Charge::Result(_) | Charge::NewList)
    }

    /// What a call costs; `None` stands for an argument or result that failed.
    pub(crate) fn cost(self, arguments: &[Option<&Value<'_>>], result: Option<&Value<'_>>) -> u64 {
        let size = |at: usize| argument_size(arguments.get(at).copied().flatten());
        match self {
            Charge::Fixed(cost) => cost,
            Charge::Traversal => arguments.first().copied().flatten().map_or(1, traversal),
            Charge::First(factor) => scaled(size(0), factor),
            Charge::Selector => {
                let requirements = scaled(size(1), 0.5);
                LIST + scaled(size(1), CHARACTER) + requirements * (LIST + OBJECT)
            }
            Charge::Result(factor) => scaled(argument_size(result), factor),
            Charge::Pattern => {
                let text = scaled(size(0) + 1, CHARACTER);
                text.saturating_mul(scaled(size(1), PATTERN_CHARACTER))
            }
            Charge::Contains => {
                scaled(size(0), CHARACTER).saturating_mul(scaled(size(1), CHARACTER))
            }
            Charge::Second => size(1),
            Charge::Smaller => scaled(size(0).min(size(1)), CHARACTER),
            Charge::Both => scaled(size(0).saturating_add(size(1)), CHARACTER),
            Charge::Sets(factor) => 1 + (size(0).saturating_mul(size(1)) as f64 * factor) as u64,
            Charge::Network {
                is_text,
                is_network,
            } => {
                let text = if is_text {
                    scaled(size(1), CHARACTER)
                } else {
                    0
                };
                let network = match is_network {
                    true => scaled(size(0), CHARACTER) + 1,
                    false => 0,
                };
                scaled(2 * size(0), CHARACTER) + network + text
            }
            Charge::Format => match arguments.first().copied().flatten() {
                Some(Value::Library(Library::Format(format))) => {
                    let pattern = scaled(format.pattern_size, PATTERN_CHARACTER);
                    scaled(size(1) + 1, CHARACTER) * pattern
                }
                _ => 1,
            },
            Charge::NewList => argument_size(result).saturating_add(1 + LIST),
            Charge::Flatten => {
                let depth = match arguments.get(1).copied().flatten() {
                    Some(Value::Int(depth)) => *depth as f64,
                    _ => 1.0,
                };
                (size(0) as f64 * depth) as u64 + 1 + LIST
            }
            Charge::SelfCompare(at) => self_compare(arguments.get(at).copied().flatten()),
        }
    }
}

/// What a comparison for equality costs.
pub(crate) fn equality(a: Option<&Value<'_>>, b: Option<&Value<'_>>, is_equal: bool) -> u64 {
    match a {
        Some(Value::Library(_)) if is_equal => 1,
        _ => scaled(argument_size(a).min(argument_size(b)), CHARACTER),
    }
}

pub(crate) fn scaled(size: u64, factor: f64) -> u64 {
    (size as f64 * factor).ceil() as u64
}

fn argument_size(value: Option<&Value<'_>>) -> u64 {
    match value {
        Some(Value::Optional(Some(inner))) => argument_size(Some(inner)),
        Some(value) => value.size().unwrap_or(1),
        None => 1,
    }
}

fn self_compare(list: Option<&Value<'_>>) -> u64 {
    let Some(Value::List(list)) = list else {
        return 1;
    };
    let len = list.len();
    let is_text = matches!(list.get(0), Ok(Some(Value::String(_) | Value::Bytes(_))));
    let factor = if is_text && len > 0 { 2.1 } else { 2.0 };
    (len.saturating_mul(len) as f64 * factor) as u64 + 1 + LIST
}

/// The cost of walking all of a value. Walks without recursion: data may be nested deep.
fn traversal(value: &Value<'_>) -> u64 {
    let mut cost: u64 = 0;
    let mut open = vec![value.clone()];
    while let Some(value) = open.pop() {
        match value {
            Value::String(text) => cost += (text.len() as f64 * CHARACTER) as u64,
            Value::Bytes(bytes) => cost += (bytes.len() as f64 * CHARACTER) as u64,
            Value::List(list) => {
                open.extend(list.iter().flatten());
            }
            Value::Map(map @ (Map::Data(..) | Map::Owned(_))) => {
                for key in map.keys() {
                    open.extend(map.find(&key).ok().flatten());
                    open.push(key);
                }
            }
            _ => cost += 1,
        }
    }
    cost
}
