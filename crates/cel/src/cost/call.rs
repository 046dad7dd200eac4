//! What a call can cost, and how large its result can be.
//!
//! Contract: `functionCost` of cel-go `checker/cost.go`, the estimators of `ext/sets.go` and
//! `ext/lists.go`, and `EstimateCallCost` of `k8s.io/apiserver/pkg/cel/library/cost.go`.

use super::{Coster, Path, Range};
use crate::ast::{ACCUMULATOR, Expr, Kind, Literal};
use crate::charge;
use crate::types::{self, Type};

const CHARACTER: f64 = 0.1;
const PATTERN_CHARACTER: f64 = 0.25;
/// The size that every format's pattern is taken for.
const FORMAT_PATTERN: f64 = 128.0;
/// The bytes of an address.
const ADDRESS: Range = Range { min: 4, max: 16 };

/// An argument and what is known of it.
struct Argument<'a> {
    expr: &'a Expr,
    of: &'a Type,
    path: Path,
    size: Option<Range>,
    cost: Range,
}

impl Argument<'_> {
    fn size(&self) -> Range {
        self.size.unwrap_or(Range::UNKNOWN)
    }

    /// The integer, if it is one that stands in the text.
    fn literal(&self) -> Option<i64> {
        match &self.expr.kind {
            Kind::Literal(Literal::Int(number)) => Some(*number),
            _ => None,
        }
    }

    fn literal_or(&self, default: u64) -> u64 {
        self.literal()
            .map_or(default, |number| u64::try_from(number).unwrap_or(0))
    }
}

/// The cost of a call without that of its arguments, and the size of its result.
type Costed = (Range, Option<Range>);

impl<'a> Coster<'a> {
    fn argument(&mut self, expr: &'a Expr) -> Argument<'a> {
        let cost = self.cost(expr);
        let mut path = self.path(expr);
        if is_accumulated(&path) {
            path.clear();
        }
        Argument {
            expr,
            of: self.checked.type_of(expr),
            path,
            size: self.size(expr),
            cost,
        }
    }

    pub(super) fn call(&mut self, expr: &'a Expr) -> Range {
        let Kind::Call {
            function,
            target,
            arguments,
        } = &expr.kind
        else {
            return Range::fixed(0);
        };
        if function == "dyn" && arguments.len() == 1 {
            let cost = self.cost(&arguments[0]);
            let (size, entry) = (self.size(&arguments[0]), self.entry(&arguments[0]));
            self.set_size(expr, size);
            self.set_entry(expr, entry);
            return cost.plus(Range::fixed(1));
        }
        let checked = self.checked;
        let arguments: Vec<Argument<'_>> = arguments.iter().map(|it| self.argument(it)).collect();
        let overloads = &checked.overloads[expr.id as usize];
        if overloads.is_empty() {
            return Range::fixed(0);
        }
        let target = target.as_deref().map(|it| self.argument(it));
        let target_cost = target.as_ref().map_or(Range::fixed(0), |it| it.cost);
        let mut cost = Range::EMPTY;
        let mut size: Option<Range> = None;
        for overload in overloads {
            let (one, result) =
                self.overload(expr, function, overload, target.as_ref(), &arguments);
            cost = cost.union(one);
            size = match (size, result) {
                (Some(before), Some(result)) => Some(before.union(result)),
                (before, result) => before.or(result),
            };
            let element = match *overload {
                "index_list" => Some("@items"),
                "index_map" => Some("@values"),
                _ => None,
            };
            if let (Some(step), Some(container)) = (element, arguments.first()) {
                size = self.entry(container.expr).map(|it| it.value);
                let path = self.path(container.expr);
                self.set_path(expr, path, step);
            }
            size = size.or_else(|| self.size(expr));
        }
        self.set_size(expr, size);
        target_cost.plus(cost)
    }

    /// The cost of one overload with that of the arguments.
    fn overload(
        &mut self,
        expr: &Expr,
        function: &str,
        overload: &str,
        target: Option<&Argument<'_>>,
        arguments: &[Argument<'_>],
    ) -> Costed {
        let costs = || {
            let costs = arguments.iter().map(|it| it.cost);
            costs.fold(Range::fixed(0), Range::plus)
        };
        let known = lists_and_sets(overload, target, arguments)
            .or_else(|| self.kubernetes(function, overload, target, arguments))
            .or_else(|| text(overload, target, arguments));
        if let Some((cost, size)) = known {
            return (cost.plus(costs()), size);
        }
        match (overload, arguments) {
            ("logical_or" | "logical_and", [left, right]) => {
                let cost = Range {
                    min: left.cost.min,
                    max: left.cost.plus(right.cost).max,
                };
                (cost, None)
            }
            ("conditional", [condition, truthy, falsy]) => {
                let size = truthy.size().union(falsy.size());
                let entries = (self.entry(truthy.expr), self.entry(falsy.expr));
                if let (Some(truthy), Some(falsy)) = entries {
                    self.set_entry(expr, Some(truthy.union(falsy)));
                }
                let cost = condition.cost.plus(truthy.cost.union(falsy.cost));
                (cost, Some(size))
            }
            ("add_string" | "add_bytes" | "add_list", [left, right]) => {
                let size = left.size().plus(right.size());
                let entries = (self.entry(left.expr), self.entry(right.expr));
                if let (Some(left), Some(right)) = entries {
                    self.set_entry(expr, Some(left.union(right)));
                }
                let cost = match overload {
                    "add_list" => Range::fixed(1),
                    _ => size.scaled(CHARACTER),
                };
                (cost.plus(costs()), Some(size))
            }
            _ => (Range::fixed(1).plus(costs()), None),
        }
    }

    /// Functions that Kubernetes charges by a rule of its own; the others cost one.
    fn kubernetes(
        &mut self,
        function: &str,
        overload: &str,
        target: Option<&Argument<'_>>,
        arguments: &[Argument<'_>],
    ) -> Option<Costed> {
        match (function, target, arguments) {
            ("check", _, _) => Some((Range::fixed(charge::AUTHORIZATION), None)),
            ("fieldSelector" | "labelSelector", _, [selector]) => {
                let parse = selector.size().scaled(CHARACTER);
                let requirements = selector.size().scaled(0.5);
                let each = (charge::LIST + charge::OBJECT) as f64;
                let cost = Range::fixed(charge::LIST)
                    .plus(parse)
                    .plus(requirements.scaled(each));
                Some((cost, None))
            }
            ("isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf", Some(target), _) => {
                Some((self.walk(target), None))
            }
            ("url" | "jsonpatch.escapeKey", _, [text]) => {
                Some((text.size().scaled(CHARACTER), Some(text.size())))
            }
            ("lowerAscii" | "upperAscii" | "substring" | "trim", Some(target), _) => {
                Some((target.size().scaled(CHARACTER), Some(target.size())))
            }
            ("replace", Some(target), [old, new, ..]) => Some(replace(target, old, new)),
            ("split", Some(target), _) => {
                let limit = arguments.get(1).and_then(Argument::literal);
                let max = limit.map_or(target.size().max, |it| it as u64);
                let cost = target.size().scaled(2.0 * CHARACTER);
                Some((cost, Some(Range { min: 0, max })))
            }
            ("join", Some(target), _) => Some(self.join(target, arguments.first())),
            ("find" | "findAll", Some(target), [pattern, ..]) => {
                let text = target.size().plus(Range::fixed(1)).scaled(CHARACTER);
                let cost = text.times(pattern.size().scaled(PATTERN_CHARACTER));
                let max = target.size().max;
                Some((cost, Some(Range { min: 0, max })))
            }
            ("validate", _, [text]) => {
                let pattern = FORMAT_PATTERN * PATTERN_CHARACTER;
                Some((text.size().scaled(CHARACTER).scaled(pattern), None))
            }
            ("_==_", _, [left, right]) if left.of == right.of => equality(left, right),
            _ => parsed_text(function, overload, arguments),
        }
    }

    /// The cost of walking a list with its elements, or a text.
    fn walk(&self, target: &Argument<'_>) -> Range {
        let Some(element) = target.of.parameters().first().copied() else {
            return target.size().scaled(CHARACTER);
        };
        let mut cost = Range::fixed(1);
        if matches!(element, Type::String | Type::Bytes) {
            cost = cost.plus(self.element_size(target).scaled(CHARACTER));
        }
        target.size().times(cost)
    }

    fn element_size(&self, target: &Argument<'_>) -> Range {
        if target.path.is_empty() {
            return Range::UNKNOWN;
        }
        let mut path = target.path.clone();
        path.push("@items".to_owned());
        self.declared_size(&path).unwrap_or(Range::UNKNOWN)
    }

    fn join(&self, target: &Argument<'_>, separator: Option<&Argument<'_>>) -> Costed {
        let count = target.size();
        let mut size = Range::fixed(0);
        if !target.of.parameters().is_empty() {
            size = count.times(self.element_size(target));
        }
        if let Some(separator) = separator {
            let between = Range {
                min: count.min.saturating_sub(1),
                max: count.max.saturating_sub(1),
            };
            size = size.plus(separator.size().times(between));
        }
        (size.scaled(CHARACTER), Some(size))
    }
}

/// Functions that read addresses, networks, amounts and versions out of text.
fn parsed_text(function: &str, overload: &str, arguments: &[Argument<'_>]) -> Option<Costed> {
    let cost = match (function, arguments) {
        ("ip", _) if overload == "cidr_ip" => Range::fixed(1),
        (
            "cidr" | "isIP" | "isCIDR" | "ip" | "quantity" | "isQuantity" | "semver" | "isSemver",
            [text, ..],
        ) => text.size().scaled(CHARACTER),
        ("ip.isCanonical", [text]) => text.size().scaled(2.0 * CHARACTER),
        ("containsIP" | "containsCIDR", [other]) => {
            let mut cost = ADDRESS.plus(ADDRESS).scaled(CHARACTER);
            if function == "containsCIDR" {
                cost = cost.plus(ADDRESS.scaled(CHARACTER)).plus(Range::fixed(1));
            }
            if overload.ends_with("_string") {
                cost = cost.plus(other.size().scaled(CHARACTER));
            }
            cost
        }
        _ => return None,
    };
    Some((cost, None))
}

fn equality(left: &Argument<'_>, right: &Argument<'_>) -> Option<Costed> {
    let unit = Some((Range::fixed(1), None));
    match left.of {
        Type::Opaque(types::IP | types::CIDR, _) => unit,
        Type::Object(name) => match &**name {
            types::QUANTITY
            | types::AUTHORIZER
            | types::PATH_CHECK
            | types::GROUP_CHECK
            | types::RESOURCE_CHECK
            | types::DECISION
            | types::SEMVER => unit,
            types::NAMED_FORMAT => Some((Range { min: 1, max: 64 }.scaled(CHARACTER), None)),
            types::URL => {
                let max = right.size.map_or(1, |it| it.max);
                Some((Range { min: 1, max }.scaled(CHARACTER), None))
            }
            _ => None,
        },
        _ => None,
    }
}

fn replace(target: &Argument<'_>, old: &Argument<'_>, new: &Argument<'_>) -> Costed {
    let (text, old, new) = (target.size(), old.size(), new.size());
    let (mut count, mut kept) = (Range::fixed(0), Range::fixed(0));
    if old.min == 0 {
        count.max = text.max.saturating_add(1);
        kept.max = text.max;
    } else if new.max <= old.min {
        kept.max = text.max;
    } else {
        count.max = (text.max as f64 / old.min as f64).ceil() as u64;
    }
    if old.max == 0 {
        count.min = text.min.saturating_add(1);
        kept.min = text.min;
    } else if old.max <= new.min {
        kept.min = text.min;
    } else {
        count.min = (text.min as f64 / old.max as f64).ceil() as u64;
    }
    let size = count.times(new).plus(kept);
    (text.scaled(2.0 * CHARACTER), Some(size))
}

/// Functions of the extended lists and sets.
fn lists_and_sets(
    overload: &str,
    target: Option<&Argument<'_>>,
    arguments: &[Argument<'_>],
) -> Option<Costed> {
    let made = |factor: f64, size: Range| {
        let cost = size.scaled(factor).plus(Range::fixed(1 + charge::LIST));
        Some((cost, Some(size)))
    };
    let compared = |list: &Argument<'_>| {
        let is_text = overload.contains("_string_") || overload.contains("_bytes_");
        let factor = if is_text { 2.0 + CHARACTER } else { 2.0 };
        made(factor, list.size().times(list.size()))
    };
    match (overload, target, arguments) {
        ("list_sets_contains_list" | "list_sets_intersects_list", _, [a, b]) => {
            Some((a.size().times(b.size()).plus(Range::fixed(1)), None))
        }
        ("list_sets_equivalent_list", _, [a, b]) => {
            let cost = a.size().times(b.size()).scaled(2.0);
            Some((cost.plus(Range::fixed(1)), None))
        }
        ("list_slice", Some(list), [start, end]) => {
            let start = start.literal_or(0);
            let end = end.literal_or(list.size().max);
            made(1.0, Range::fixed(end.wrapping_sub(start)))
        }
        ("list_flatten" | "list_flatten_int", Some(list), arguments) => {
            let depth = arguments.first().map_or(1, |it| it.literal_or(u64::MAX));
            made(depth as f64, list.size())
        }
        ("lists_range", None, [end]) => made(1.0, Range::fixed(end.literal_or(u64::MAX))),
        ("list_reverse", Some(list), []) => made(1.0, list.size()),
        ("list_distinct", Some(list), []) => made(2.0, list.size().times(list.size())),
        (other, Some(list), []) if other.ends_with("_sort") => compared(list),
        (other, Some(_), [keys]) if other.ends_with("_sortByAssociatedKeys") => compared(keys),
        _ => None,
    }
}

/// Functions of the standard library over text, and comparisons.
fn text(
    overload: &str,
    target: Option<&Argument<'_>>,
    arguments: &[Argument<'_>],
) -> Option<Costed> {
    let walked = |size: Range| size.scaled(CHARACTER);
    match (overload, target, arguments) {
        ("string_format", Some(target), _) => Some((walked(target.size()), None)),
        ("string_to_bytes", _, [text]) => {
            let size = text.size();
            let most = size.max.saturating_mul(4);
            let result = Range {
                min: size.min,
                max: most,
            };
            Some((walked(size), Some(result)))
        }
        ("bytes_to_string", _, [bytes]) => {
            let size = bytes.size();
            let result = Range {
                min: size.min / 4,
                max: size.max,
            };
            Some((walked(size), Some(result)))
        }
        ("strings_quote", _, [text]) => {
            let size = text.size();
            let result = Range {
                min: size.min.saturating_add(2),
                max: size.max.saturating_mul(2).saturating_add(2),
            };
            Some((walked(size), Some(result)))
        }
        ("starts_with_string" | "ends_with_string", _, [part]) => Some((walked(part.size()), None)),
        ("in_list", _, [_, list]) => Some((list.size(), None)),
        ("matches_string", Some(target), [pattern]) => {
            let text = walked(target.size().plus(Range::fixed(1)));
            let cost = text.times(pattern.size().scaled(PATTERN_CHARACTER));
            Some((cost, None))
        }
        ("contains_string", Some(target), [part]) => {
            Some((walked(target.size()).times(walked(part.size())), None))
        }
        (
            "less_string"
            | "greater_string"
            | "less_equals_string"
            | "greater_equals_string"
            | "less_bytes"
            | "greater_bytes"
            | "less_equals_bytes"
            | "greater_equals_bytes"
            | "equals"
            | "not_equals",
            _,
            [left, right],
        ) => {
            let max = left.size().max.min(right.size().max);
            let min = u64::from(max > 0);
            Some((walked(Range { min, max }), None))
        }
        _ => None,
    }
}

/// Whether a path starts at the result of a loop, which says nothing about sizes.
fn is_accumulated(path: &[String]) -> bool {
    path.first()
        .is_some_and(|first| first == ACCUMULATOR || first == "__result__")
}
