//! Rules as definitions carry them, over objects as users write them.

use object::field::Path;
use object::{Map, Value, value};

use super::{Rules, check_definition};
use crate::structural::Structural;

/// An object schema whose `spec` has this schema.
fn schema(spec: Value) -> Structural {
    let root = value!({"type": "object", "properties": {"spec": spec}});
    Structural::parse(root.as_object().expect("a schema"))
}

fn object(spec: Value) -> Map {
    let object = value!({"apiVersion": "example.com/v1", "kind": "Widget",
        "metadata": {"name": "one"}, "spec": spec});
    match object {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

/// What the rules say of a new object, or of one that replaces another.
fn said(schema: &Structural, new: Value, old: Option<Value>) -> (Vec<String>, Vec<String>) {
    let rules = Rules::compile(schema).expect("there are rules");
    let old = old.map(object);
    let verdict = rules.check(schema, &object(new), old.as_ref());
    let errors = verdict.errors.iter().map(ToString::to_string);
    (errors.collect(), verdict.warnings)
}

fn errors(schema: &Structural, new: Value) -> Vec<String> {
    said(schema, new, None).0
}

#[test]
fn a_broken_rule_is_told_with_the_best_message_there_is() {
    let schema = schema(value!({
        "type": "object",
        "properties": {
            "plain": {"type": "integer", "x-kubernetes-validations": [{"rule": "self < 3"}]},
            "told": {"type": "integer",
                "x-kubernetes-validations": [{"rule": "self < 3", "message": " too much "}]},
            "made": {"type": "integer", "x-kubernetes-validations": [{"rule": "self < 3",
                "message": "unused", "messageExpression": "'%d is too much'.format([self])"}]},
            "empty": {"type": "integer", "x-kubernetes-validations": [{"rule": "self < 3",
                "messageExpression": "''"}]},
            "failed": {"type": "integer",
                "x-kubernetes-validations": [{"rule": "10 / (self - self) > 0"}]},
            "mixed": {"x-kubernetes-int-or-string": true,
                "x-kubernetes-validations": [{"rule": "self < 3"}]}
        }
    }));
    let spec = value!({"plain": 3, "told": 3, "made": 3, "empty": 3, "failed": 3, "mixed": "a"});
    let expected = [
        "spec.empty: Invalid value: 3: failed rule: self < 3",
        "spec.failed: Invalid value: \"integer\": division by zero evaluating rule: 10 / (self - \
         self) > 0",
        "spec.made: Invalid value: 3: 3 is too much",
        "spec.mixed: Invalid value: \"\": 'no such overload': call arguments did not match a \
         supported operator, function or macro signature for rule: self < 3",
        "spec.plain: Invalid value: 3: failed rule: self < 3",
        "spec.told: Invalid value: 3: too much",
    ];
    assert_eq!(errors(&schema, spec), expected);
}

#[test]
fn a_rule_blames_the_field_and_the_reason_it_names() {
    let rule = |reason: &str, path: &str| {
        let (rule, message) = ("false", "no");
        value!({"rule": rule, "message": message, "reason": reason, "fieldPath": path})
    };
    let schema = schema(value!({
        "type": "object",
        "x-kubernetes-validations": [
            (rule("FieldValueForbidden", ".a")),
            (rule("FieldValueRequired", ".a")),
            (rule("FieldValueDuplicate", ".a")),
            (rule("FieldValueInvalid", ".m['x']")),
            {"rule": "false", "message": "no"}
        ],
        "properties": {
            "a": {"type": "string"},
            "m": {"type": "object", "additionalProperties": {"type": "string"}}
        }
    }));
    let expected = [
        "spec.a: Forbidden: no",
        "spec.a: Required value: no",
        "spec.a: Duplicate value",
        "spec.m[x]: Invalid value: no",
        "spec: Invalid value: no",
    ];
    assert_eq!(errors(&schema, value!({})), expected);
}

#[test]
fn rules_stand_at_lists_maps_and_the_root() {
    let root = value!({
        "type": "object",
        "x-kubernetes-validations": [
            {"rule": "self.metadata.name.startsWith('w')", "message": "name must start with w"},
            {"rule": "self.kind == 'Widget' && self.apiVersion == 'example.com/v1'"}
        ],
        "properties": {"spec": {"type": "object", "properties": {
            "list": {"type": "array", "items": {"type": "integer",
                "x-kubernetes-validations": [{"rule": "self > 0"}]}},
            "map": {"type": "object", "additionalProperties": {"type": "string",
                "x-kubernetes-validations": [{"rule": "self != 'bad'"}]}},
            "none": {"type": "string", "nullable": true,
                "x-kubernetes-validations": [{"rule": "false"}]}
        }}}
    });
    let schema = Structural::parse(root.as_object().expect("a schema"));
    let spec = value!({"list": [1, 0], "map": {"k": "bad"}, "none": null});
    let expected = [
        "<nil>: Invalid value: name must start with w",
        "spec.list[1]: Invalid value: 0: failed rule: self > 0",
        "spec.map[k]: Invalid value: \"bad\": failed rule: self != 'bad'",
    ];
    assert_eq!(errors(&schema, spec), expected);
}

#[test]
fn transition_rules_run_where_the_old_value_can_be_found() {
    let schema = schema(value!({
        "type": "object",
        "properties": {
            "id": {"type": "string",
                "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "fixed"}]},
            "start": {"type": "integer", "x-kubernetes-validations": [{"optionalOldSelf": true,
                "rule": "oldSelf.hasValue() || self == 0", "message": "starts at 0"}]},
            "items": {"type": "array", "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
                "items": {"type": "object", "properties": {
                    "name": {"type": "string"},
                    "n": {"type": "integer", "x-kubernetes-validations": [
                        {"rule": "self >= oldSelf",
                         "messageExpression": "'sank from %d'.format([oldSelf])"}]}
                }}}
        }
    }));
    assert_eq!(
        errors(&schema, value!({"id": "a", "start": 1})),
        ["spec.start: Invalid value: 1: starts at 0"]
    );
    let old =
        value!({"id": "a", "start": 3, "items": [{"name": "x", "n": 5}, {"name": "y", "n": 1}]});
    let new = value!({"id": "b", "start": 3, "items": [{"name": "y", "n": 2}, {"name": "x", "n": 4},
        {"name": "z", "n": 0}]});
    let expected = [
        "spec.id: Invalid value: \"b\": fixed",
        "spec.items[1].n: Invalid value: 4: sank from 5",
    ];
    assert_eq!(said(&schema, new, Some(old)).0, expected);
}

#[test]
fn what_was_broken_before_and_did_not_change_is_a_warning() {
    let schema = schema(value!({
        "type": "object",
        "properties": {
            "a": {"type": "integer", "x-kubernetes-validations": [{"rule": "self < 3"}]},
            "b": {"type": "integer", "x-kubernetes-validations": [{"rule": "self < 3"}]},
            "list": {"type": "array", "items": {"type": "integer",
                "x-kubernetes-validations": [{"rule": "self < 3"}]}}
        }
    }));
    let old = value!({"a": 5, "b": 5, "list": [7]});
    let (errors, warnings) = said(
        &schema,
        value!({"a": 5, "b": 6, "list": [7]}),
        Some(old.clone()),
    );
    assert_eq!(errors, ["spec.b: Invalid value: 6: failed rule: self < 3"]);
    let forgiven = [
        "spec.a: Invalid value: 5: failed rule: self < 3",
        "spec.list[0]: Invalid value: 7: failed rule: self < 3",
    ];
    assert_eq!(warnings, forgiven);
    let (errors, _) = said(&schema, value!({"a": 5, "b": 5, "list": [7, 1]}), Some(old));
    assert_eq!(
        errors,
        ["spec.list[0]: Invalid value: 7: failed rule: self < 3"]
    );
}

#[test]
fn rules_of_all_branches_run_too() {
    let schema = schema(value!({
        "type": "object",
        "properties": {"n": {"type": "integer"}},
        "allOf": [{"x-kubernetes-validations": [{"rule": "self.n < 3"}],
            "properties": {"n": {"x-kubernetes-validations": [{"rule": "self > 0"}]}}}]
    }));
    assert_eq!(
        errors(&schema, value!({"n": 5})),
        ["spec: Invalid value: failed rule: self.n < 3"]
    );
    assert_eq!(
        errors(&schema, value!({"n": 0})),
        ["spec.n: Invalid value: 0: failed rule: self > 0"]
    );
}

#[test]
fn an_object_has_one_budget_for_all_its_rules() {
    let schema = schema(value!({
        "type": "object",
        "properties": {"list": {"type": "array", "items": {"type": "string",
            "x-kubernetes-validations": [{"rule": "self.contains(self)"}]}}}
    }));
    // One check costs a tenth of the length, squared: 4 million, then 90,000 for each of 150.
    let expected = [
        "spec.list[0]: Invalid value: \"string\": 'operation cancelled: actual cost limit \
         exceeded': no further validation rules will be run due to call cost exceeds limit for \
         rule: self.contains(self)",
    ];
    let long = "a".repeat(20_000);
    let found = errors(&schema, value!({"list": [long, "a"]}));
    assert_eq!(found, expected);
    let items = vec![Value::from("a".repeat(3_000)); 150];
    let expected = [
        "spec.list[111]: Invalid value: \"string\": validation failed due to running out of cost \
         budget, no further validation rules will be run",
    ];
    assert_eq!(errors(&schema, value!({"list": items})), expected);
}

fn refused(spec: Value) -> Vec<String> {
    let root = Path::root();
    let path = root.field("schema");
    let errors = check_definition(&schema(spec), &path, false, &|_| false);
    let texts = errors.iter().map(|error| {
        let text = error.to_string();
        text.replace(
            "schema.properties[spec].x-kubernetes-validations[0]",
            "RULE",
        )
    });
    texts.collect()
}

#[test]
fn definitions_with_wrong_rules_are_refused() {
    let cases = [
        (
            value!({"rule": "self.x"}),
            vec![
                "RULE.rule: Invalid value: {\"Rule\":\"self.x\",\"Message\":\"\",\
                 \"MessageExpression\":\"\",\"Reason\":null,\"FieldPath\":\"\",\
                 \"OptionalOldSelf\":null}: compilation failed: ERROR: <input>:1:5: undefined \
                 field 'x'\n | self.x\n | ....^",
            ],
        ),
        (
            value!({"rule": "true", "messageExpression": "1", "reason": "FieldValueInvalid"}),
            vec![
                "RULE.messageExpression: Invalid value: {\"Rule\":\"true\",\"Message\":\"\",\
                 \"MessageExpression\":\"1\",\"Reason\":\"FieldValueInvalid\",\"FieldPath\":\"\",\
                 \"OptionalOldSelf\":null}: messageExpression must evaluate to a string",
            ],
        ),
        (
            value!({"rule": "true", "optionalOldSelf": true}),
            vec![
                "RULE.optionalOldSelf: Invalid value: true: may not be set if oldSelf is not used \
                 in rule",
            ],
        ),
        (value!({"rule": "self.n > 0"}), vec![]),
    ];
    for (rule, expected) in cases {
        let found = refused(
            value!({"type": "object", "properties": {"n": {"type": "integer"}},
            "x-kubernetes-validations": [rule]}),
        );
        assert_eq!(found, expected);
    }
}

#[test]
fn old_values_of_items_without_keys_cannot_be_used() {
    let found = refused(value!({"type": "array", "items": {"type": "integer",
        "x-kubernetes-validations": [{"rule": "self >= oldSelf"}]}}));
    let expected = "schema.properties[spec].items.x-kubernetes-validations[0].rule: Invalid value: \
                    \"self >= oldSelf\": oldSelf cannot be used on the uncorrelatable portion of \
                    the schema within schema.properties[spec]";
    assert_eq!(found, [expected]);
}

#[test]
fn what_a_rule_could_cost_counts_where_it_stands() {
    let hint = "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where \
                arrays, maps, and strings are declared)";
    let rule = value!([{"rule": "self.all(x, x.contains('a'))"}]);
    let texts = value!({"type": "array", "maxItems": 100, "items": {"type": "string",
        "maxLength": 1000}, "x-kubernetes-validations": (rule.clone())});
    assert_eq!(refused(texts.clone()), Vec::<String>::new());
    let bounded = value!({"type": "array", "maxItems": 1000, "items": (texts.clone())});
    let at = "schema.properties[spec].items.x-kubernetes-validations[0].rule";
    assert_eq!(
        refused(bounded),
        [format!(
            "{at}: Forbidden: estimated rule cost exceeds budget by factor of 4.0x {hint}"
        )]
    );
    let unbounded = refused(value!({"type": "array", "items": texts}));
    let expected = [
        format!(
            "{at}: Forbidden: estimated rule cost exceeds budget by factor of more than 100x {hint}"
        ),
        format!(
            "{at}: Forbidden: contributed to estimated rule cost total exceeding cost limit for \
             entire OpenAPIv3 schema"
        ),
        format!(
            "schema: Forbidden: x-kubernetes-validations estimated rule cost total for entire \
             OpenAPIv3 schema exceeds budget by factor of more than 100x {hint}"
        ),
    ];
    assert_eq!(unbounded, expected);
}
