//! Advice about policies: do their expressions fit the kinds that they are about?
//!
//! A policy is compiled without types, because it may match many kinds; here it is compiled once
//! more for each kind that it names. Contract: upstream's
//! `admission/plugin/policy/validating/typechecking.go`. Quantities have no type here: upstream
//! hides them, and complains about expressions that work.

use std::collections::BTreeSet;
use std::sync::Arc;

use cel::{Environment, ListKind, Property, Shape, Type};
use object::Map;
use schema::{Form, ListTopology, Scalar, TypeId, Types};

use crate::validation::read::{Read, maps, texts};
use crate::{Catalogue, Kind, expressions};

/// Of so many kinds that one rule names, the first are checked.
const KINDS_MAX: usize = 10;
/// A type that holds itself is open from this depth on.
const DEPTH_MAX: usize = 24;

/// An expression that may not do what its author thinks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpressionWarning {
    /// Where the expression stands.
    pub field: String,
    /// What is wrong with it, for each kind.
    pub warning: String,
}

/// Checks the expressions of a validating policy against the kinds that it names.
pub fn check(catalogue: &Catalogue, policy: &Map) -> Vec<ExpressionWarning> {
    let spec = policy.object_or_empty("spec");
    let kinds = kinds_of(catalogue, spec);
    if kinds.is_empty() {
        return Vec::new();
    }
    let environments: Vec<(String, Environment)> = kinds
        .iter()
        .map(|kind| (shown(kind), environment(catalogue, spec, kind)))
        .collect();
    let mut warnings = Vec::new();
    for (index, validation) in maps(spec.list("validations")) {
        for field in ["expression", "messageExpression"] {
            let text = validation.text(field);
            if field == "messageExpression" && text.is_empty() {
                continue;
            }
            let warning = complaints(&environments, text);
            if !warning.is_empty() {
                warnings.push(ExpressionWarning {
                    field: format!("spec.validations[{index}].{field}"),
                    warning,
                });
            }
        }
    }
    warnings
}

fn complaints(environments: &[(String, Environment)], text: &str) -> String {
    let complaints = environments.iter().filter_map(|(kind, environment)| {
        let issues = environment.compile(text).err()?;
        Some(format!("{kind}: {issues}\n"))
    });
    let complaints: Vec<String> = complaints.collect();
    complaints.join("\n")
}

fn shown(kind: &Kind) -> String {
    format!("{}/{}, Kind={}", kind.group, kind.version, kind.kind)
}

/// The kinds that the rules of a policy name, without wildcards and subresources.
fn kinds_of<'a>(catalogue: &'a Catalogue, spec: &Map) -> Vec<&'a Arc<Kind>> {
    let rules = spec.object_or_empty("matchConstraints");
    let mut found = Vec::new();
    for (_, rule) in maps(rules.list("resourceRules")) {
        let words = |field: &str| -> BTreeSet<&str> {
            let words = texts(rule.list(field)).map(|(_, text)| text);
            words.collect()
        };
        let (groups, versions) = (words("apiGroups"), words("apiVersions"));
        let is_open = |words: &BTreeSet<&str>| words.iter().any(|it| it.contains('*'));
        if is_open(&groups) || is_open(&versions) {
            continue;
        }
        let mut resources = words("resources");
        resources.retain(|it| !it.contains(['*', '/']));
        let mut served = Vec::new();
        for (group, version) in pairs(&groups, &versions) {
            let kinds = resources.iter();
            served.extend(kinds.filter_map(|it| catalogue.resource(group, version, it)));
        }
        found.extend(served.into_iter().take(KINDS_MAX));
    }
    let order = |kind: &&Arc<Kind>| (kind.group.clone(), kind.version.clone(), kind.kind.clone());
    found.sort_by_key(order);
    found.dedup_by_key(|kind| order(kind));
    found
}

fn pairs<'a>(groups: &BTreeSet<&'a str>, versions: &BTreeSet<&'a str>) -> Vec<(&'a str, &'a str)> {
    let with_group = |group: &&'a str| -> Vec<(&'a str, &'a str)> {
        versions.iter().map(|version| (*group, *version)).collect()
    };
    groups.iter().flat_map(with_group).collect()
}

/// What expressions of the policy may name when it is about this kind.
fn environment(catalogue: &Catalogue, spec: &Map, kind: &Kind) -> Environment {
    let mut environment = expressions::base();
    let typed = |environment: Environment, name: &str, shape: &Option<Arc<Shape>>| match shape {
        Some(shape) => environment.with_data(name, shape),
        None => environment.with_variable(name, Type::Dyn),
    };
    let object = shape_of(kind);
    environment = typed(environment, "object", &object);
    environment = typed(environment, "oldObject", &object);
    environment = environment.with_variable("authorizer", Type::authorizer());
    if let Some(wanted) = spec.object("paramKind") {
        let version = wanted.text("apiVersion");
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        let kind = catalogue.by_kind(group, version, wanted.text("kind"));
        environment = typed(environment, "params", &kind.and_then(|kind| shape_of(kind)));
    }
    let mut variables: Vec<(String, Type)> = Vec::new();
    for (_, variable) in maps(spec.list("variables")) {
        let known = environment
            .clone()
            .with_fields("variables", variables.clone());
        let program = known.compile(variable.text("expression")).ok();
        let of = program.map_or(Type::Dyn, |it| it.output_type().clone());
        variables.push((variable.text("name").to_owned(), of));
    }
    environment.with_fields("variables", variables)
}

/// What expressions see of an object of the kind, if anything is declared.
fn shape_of(kind: &Kind) -> Option<Arc<Shape>> {
    let name = format!("{}0", kind.kind);
    if let Some(custom) = &kind.custom {
        return Some(custom.schema.shape().shared(&name));
    }
    let shape = built_in(&kind.types, kind.root, 0);
    Some(shape.shared(&name))
}

fn built_in(types: &Types, id: TypeId, depth: usize) -> Shape {
    let any = || Shape::clone(Shape::any());
    if depth > DEPTH_MAX {
        return any();
    }
    let of = types.get(id);
    match of.form {
        Form::Int32 | Form::Int64 => return Shape::int(),
        Form::Double => return Shape::double(),
        Form::Bytes => return Shape::string("byte", None, None),
        Form::Time | Form::MicroTime => return Shape::string("date-time", None, None),
        Form::Duration => return Shape::string("", None, None),
        Form::IntOrString => return Shape::int_or_string(None),
        Form::Quantity | Form::RawExtension | Form::AnyJson | Form::FieldsV1 => return any(),
        Form::Plain => {}
    }
    if let Some(list) = &of.list {
        let kind = match &list.topology {
            ListTopology::Atomic => ListKind::Atomic,
            ListTopology::Set => ListKind::Set,
            ListTopology::Map(keys) => {
                ListKind::Map(keys.iter().map(ToString::to_string).collect())
            }
        };
        let item = built_in(types, list.element, depth + 1);
        return Shape::list(Arc::new(item), kind, None);
    }
    match (&of.map, of.scalar) {
        (Some(map), _) => match map.element {
            Some(element) if map.fields.is_empty() => {
                Shape::map(Arc::new(built_in(types, element, depth + 1)), None)
            }
            _ => Shape::object(
                map.fields
                    .iter()
                    .map(|field| Property {
                        name: field.name.to_string(),
                        shape: Arc::new(built_in(types, field.ty, depth + 1)),
                        required: false,
                    })
                    .collect(),
            ),
        },
        (None, Some(Scalar::String)) => Shape::string("", None, None),
        (None, Some(Scalar::Boolean)) => Shape::bool(),
        (None, Some(Scalar::Numeric)) => Shape::double(),
        (None, _) => any(),
    }
}

#[cfg(test)]
mod tests {
    use object::value;

    use super::*;

    fn warnings(resource: &str, group: &str, expression: &str) -> Vec<String> {
        let policy = value!({"spec": {
            "matchConstraints": {"resourceRules": [{
                "apiGroups": [group], "apiVersions": ["v1"], "operations": ["CREATE"],
                "resources": [resource],
            }]},
            "variables": [{"name": "name", "expression": "object.metadata.name"}],
            "validations": [{"expression": expression}],
        }});
        let policy = policy.as_object().expect("a policy");
        let found = check(Catalogue::builtin(), policy);
        found.into_iter().map(|it| it.warning).collect()
    }

    #[test]
    fn which_expressions_do_not_fit_the_kinds_of_a_policy() {
        let deployment = "apps/v1, Kind=Deployment: ERROR: <input>:1:";
        let cases = [
            ("deployments", "apps", "object.spec.replicas > 1", ""),
            (
                "deployments",
                "apps",
                "object.spec.template.spec.containers.all(c, c.image.startsWith('a'))",
                "",
            ),
            (
                "deployments",
                "apps",
                "object.metadata.labels['a'] == 'b'",
                "",
            ),
            ("deployments", "apps", "variables.name == 'a'", ""),
            (
                "pods",
                "",
                "object.spec.containers[0].resources.limits.cpu == '1'",
                "",
            ),
            ("*", "apps", "object.nothing == 1", ""),
            ("nothings", "apps", "object.nothing == 1", ""),
            (
                "deployments",
                "apps",
                "object.spec.replicas == 'x'",
                "found no matching overload for '_==_' applied to '(int, string)'",
            ),
            (
                "deployments",
                "apps",
                "object.spec.nothing",
                "undefined field 'nothing'",
            ),
            (
                "deployments",
                "apps",
                "variables.name == 1",
                "'(string, int)'",
            ),
        ];
        for (resource, group, expression, expected) in cases {
            let found = warnings(resource, group, expression);
            match expected {
                "" => assert_eq!(found, Vec::<String>::new(), "{expression}"),
                _ => {
                    assert!(found[0].starts_with(deployment), "{found:?}");
                    assert!(found[0].contains(expected), "{found:?}");
                    assert!(found[0].ends_with("^\n"), "{found:?}");
                }
            }
        }
    }
}
