//! Properties: what holds for every schema and every value.

use proptest::prelude::*;

use super::*;

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        (-5_i64..5).prop_map(Value::Int),
        (-2.0_f64..2.0).prop_map(Value::Float),
        "[a-c]{0,3}".prop_map(|text| Value::from(text.as_str())),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::vec(("[a-d]", inner), 0..4).prop_map(|entries| {
                let entries = entries.into_iter().map(|(key, value)| (key.into(), value));
                Value::Object(entries.collect())
            }),
        ]
    })
}

fn node(kind: &'static str, extra: Value) -> Value {
    let mut node = map(extra);
    node.insert("type", kind.into());
    Value::Object(node)
}

/// Schemas whose defaults fit them, as the check of a definition makes sure.
fn any_schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(node("string", value!({"maxLength": 2}))),
        Just(node("string", value!({"default": "a"}))),
        Just(node("integer", value!({"minimum": 0, "default": 1}))),
        Just(node("number", value!({"nullable": true}))),
        Just(node("boolean", value!({}))),
        Just(value!({"x-kubernetes-int-or-string": true})),
        Just(value!({"x-kubernetes-preserve-unknown-fields": true})),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let fields = prop::collection::vec(("[a-d]", inner.clone()), 0..4);
        prop_oneof![
            inner
                .clone()
                .prop_map(|items| node("array", value!({"items": items}))),
            inner.clone().prop_map(|items| node(
                "array",
                value!({"items": items, "x-kubernetes-list-type": "set"})
            )),
            inner.prop_map(|below| node("object", value!({"additionalProperties": below}))),
            (fields, any::<bool>()).prop_map(|(fields, keep)| {
                let fields = fields.into_iter().map(|(key, value)| (key.into(), value));
                let fields: Map = fields.collect();
                let mut extra = map(value!({"properties": (Value::Object(fields))}));
                if keep {
                    extra.insert("x-kubernetes-preserve-unknown-fields", true.into());
                }
                node("object", Value::Object(extra))
            }),
        ]
    })
}

/// What a write does with an object.
fn settle(parsed: &Structural, object: &mut Map) {
    prune(parsed, object, Unknown::Report);
    prune_nulls(parsed, object);
    fill_defaults(parsed, object);
}

proptest! {
    #[test]
    fn reading_twice_is_reading_once(spec in any_schema(), value in any_value()) {
        let parsed = schema(value!({"type": "object", "properties": {"spec": spec}}));
        let mut once = map(value!({"spec": value}));
        settle(&parsed, &mut once);
        let mut twice = once.clone();
        settle(&parsed, &mut twice);
        prop_assert_eq!(&twice, &once);
        let first = printed(&validate_object(&parsed, &once, None));
        prop_assert_eq!(printed(&validate_object(&parsed, &twice, None)), first);
    }

    #[test]
    fn an_object_that_did_not_change_is_never_refused(spec in any_schema(), value in any_value()) {
        let parsed = schema(value!({"type": "object", "properties": {"spec": spec}}));
        let mut object = map(value!({"spec": value}));
        settle(&parsed, &mut object);
        let errors = validate_object(&parsed, &object, Some(&object));
        // Undeclared fields that are preserved keep an object from counting as unchanged.
        let fresh = validate_object(&parsed, &object, None);
        prop_assert!(errors.len() <= fresh.len());
    }

    #[test]
    fn any_text_is_a_pattern_or_a_mistake(pattern in "\\PC{0,12}", text in "\\PC{0,8}") {
        if Pattern::check(&pattern).is_ok() {
            Pattern::new(&pattern).matches(&text);
        }
    }

    #[test]
    fn any_json_is_read_as_a_schema(value in any_value()) {
        if let Value::Object(object) = value {
            let parsed = Structural::parse(&object);
            validate(&parsed, &Value::Object(object));
        }
    }
}
