//! Cases against a small graph that has each sort of field once.

use object::{Value, value};
use proptest::prelude::*;

use super::*;
use crate::{ListTopology, ListType};

/// Builds types the way the catalogue does, with less ink.
struct Graph {
    types: Types,
}

impl Graph {
    fn form(&mut self, scalar: Scalar, form: Form) -> TypeId {
        self.types.add(Type {
            scalar: Some(scalar),
            form,
            ..Type::default()
        })
    }

    fn list(&mut self, element: TypeId) -> TypeId {
        let list = Some(ListType {
            element,
            topology: ListTopology::Atomic,
        });
        self.types.add(Type {
            list,
            ..Type::default()
        })
    }

    fn dictionary(&mut self, element: TypeId) -> TypeId {
        let map = Some(MapType {
            element: Some(element),
            ..MapType::default()
        });
        self.types.add(Type {
            map,
            ..Type::default()
        })
    }

    fn schema_or(&mut self, schema: TypeId, other: InsteadOfSchema) -> TypeId {
        let id = self.form(Scalar::Untyped, Form::AnyJson);
        self.types.set_schema_or(id, SchemaOr { schema, other });
        id
    }

    fn record(&mut self, fields: &[(&str, TypeId, Empty)]) -> TypeId {
        let id = self.types.add(Type::default());
        self.set_record(id, fields);
        id
    }

    fn set_record(&mut self, id: TypeId, fields: &[(&str, TypeId, Empty)]) {
        let mut fields: Vec<Field> = fields
            .iter()
            .map(|&(name, ty, empty)| Field {
                name: name.into(),
                ty,
                default: None,
                empty,
                patch: Default::default(),
                tag: 0,
            })
            .collect();
        fields.sort_by(|a, b| a.name.cmp(&b.name));
        let map = Some(MapType {
            fields: fields.into(),
            ..MapType::default()
        });
        self.types.set(
            id,
            Type {
                map,
                ..Type::default()
            },
        );
    }
}

fn sample() -> (Types, TypeId) {
    use Empty::{Drop, Keep, Print};
    let mut graph = Graph {
        types: Types::new(),
    };
    let string = graph.form(Scalar::String, Form::Plain);
    let boolean = graph.form(Scalar::Boolean, Form::Plain);
    let int32 = graph.form(Scalar::Numeric, Form::Int32);
    let int64 = graph.form(Scalar::Numeric, Form::Int64);
    let double = graph.form(Scalar::Numeric, Form::Double);
    let bytes = graph.form(Scalar::String, Form::Bytes);
    let time = graph.form(Scalar::String, Form::Time);
    let int_or_string = graph.form(Scalar::Untyped, Form::IntOrString);
    let raw = graph.form(Scalar::Untyped, Form::RawExtension);
    let quantity = graph.form(Scalar::Untyped, Form::Quantity);
    let strings = graph.list(string);
    let labels = graph.dictionary(string);
    let data = graph.dictionary(bytes);
    let limits = graph.dictionary(quantity);
    let item = graph.record(&[
        ("name", string, Print),
        ("port", int_or_string, Keep),
        ("ready", boolean, Drop),
        ("since", time, Print),
        ("args", strings, Drop),
        ("limits", limits, Drop),
    ]);
    let item_list = graph.list(item);
    let named = graph.dictionary(item);
    let schema = graph.record(&[]);
    let either = graph.schema_or(schema, InsteadOfSchema::Bool);
    let items = graph.schema_or(schema, InsteadOfSchema::Schemas);
    let needs = graph.schema_or(schema, InsteadOfSchema::Strings);
    graph.set_record(
        schema,
        &[
            ("additional", either, Keep),
            ("items", items, Keep),
            ("needs", needs, Keep),
            ("not", schema, Keep),
            ("type", string, Drop),
        ],
    );
    let spec = graph.record(&[
        ("count", int32, Drop),
        ("data", data, Drop),
        ("extra", raw, Print),
        ("items", item_list, Drop),
        ("named", named, Drop),
        ("replicas", int32, Keep),
        ("rules", strings, Print),
        ("schema", schema, Keep),
        ("secret", bytes, Drop),
        ("seconds", int64, Keep),
        ("sub", item, Keep),
        ("weight", double, Drop),
    ]);
    let metadata = graph.record(&[
        ("name", string, Drop),
        ("labels", labels, Drop),
        ("time", time, Drop),
    ]);
    let root = graph.record(&[
        ("kind", string, Drop),
        ("metadata", metadata, Print),
        ("spec", spec, Keep),
    ]);
    (graph.types, root)
}

fn read(body: Value) -> Result<(Value, Vec<String>), TypeError> {
    let (types, root) = sample();
    decode(&types, root, body, Unknown::Report)
}

/// Decodes a `spec` and gives back what is left of it, without the fields that are always printed.
fn spec(body: Value) -> Value {
    let (mut value, _) = read(value!({"spec": body})).expect("the body fits the type");
    let map = value
        .get_mut("spec")
        .and_then(Value::as_object_mut)
        .expect("spec was given");
    assert_eq!(map.remove("extra"), Some(Value::Null));
    assert_eq!(map.remove("rules"), Some(Value::Null));
    Value::Object(std::mem::take(map))
}

#[test]
fn what_does_an_empty_body_print() {
    let (value, reports) = read(value!({})).expect("an empty body fits");
    assert_eq!(value, value!({"metadata": {}}));
    assert!(reports.is_empty());
    assert_eq!(
        read(Value::Null).expect("null is the zero value").0,
        value!({"metadata": {}})
    );
}

#[test]
fn which_values_are_printed_back() {
    for (given, printed) in [
        (value!({}), value!({})),
        (value!({"count": 0, "replicas": 0}), value!({"replicas": 0})),
        (value!({"count": null, "replicas": null}), value!({})),
        (value!({"weight": 0.0}), value!({})),
        (
            value!({"weight": 9007199254740993i64}),
            value!({"weight": 9007199254740992.0}),
        ),
        (
            value!({"seconds": (i64::MAX)}),
            value!({"seconds": (i64::MAX)}),
        ),
        (value!({"items": []}), value!({"items": []})),
        (
            value!({"items": [{}]}),
            value!({"items": [{"name": "", "since": null}]}),
        ),
        (
            value!({"items": [null]}),
            value!({"items": [{"name": "", "since": null}]}),
        ),
        (
            value!({"named": {"a": null}}),
            value!({"named": {"a": {"name": "", "since": null}}}),
        ),
        (value!({"sub": null}), value!({})),
        (
            value!({"sub": {"ready": false, "port": 0, "args": [null, "b"]}}),
            value!({"sub": {"name": "", "since": null, "port": 0, "args": ["", "b"]}}),
        ),
        (
            value!({"sub": {"name": "n", "port": "web", "limits": {"cpu": null}}}),
            value!({"sub": {"name": "n", "since": null, "port": "web", "limits": {"cpu": "0"}}}),
        ),
        (value!({"secret": ""}), value!({"secret": ""})),
        (value!({"secret": "YR=="}), value!({"secret": "YQ=="})),
        (value!({"secret": [97, 98]}), value!({"secret": "YWI="})),
        (
            value!({"data": {"a": null, "b": "Yg=="}}),
            value!({"data": {"a": "", "b": "Yg=="}}),
        ),
        (value!({"data": {}}), value!({"data": {}})),
        (
            value!({"schema": {"not": {"not": {}}}}),
            value!({"schema": {"not": {"not": {}}}}),
        ),
    ] {
        assert_eq!(spec(given.clone()), printed, "{given:?}");
    }
}

#[test]
fn free_form_json_is_kept_and_an_empty_printed_list_is_null_once_stored() {
    let extra = value!({"a": null, "b": [{}], "c": 1.5});
    let (mut value, reports) = read(value!({"spec": {"extra": (extra.clone()), "rules": []}}))
        .expect("free-form JSON takes anything");
    assert_eq!(value.at(&["spec", "extra"]), Some(&extra));
    assert_eq!(value.at(&["spec", "rules"]), Some(&value!([])));
    let (types, root) = sample();
    normalize(&types, root, &mut value, Blank::AsStored);
    assert_eq!(value.at(&["spec", "rules"]), Some(&Value::Null));
    assert!(reports.is_empty());
    let (empty, _) = read(value!({"spec": {"extra": {}}})).expect("an empty map is JSON");
    assert_eq!(empty.at(&["spec", "extra"]), Some(&value!({})));
}

#[test]
fn unknown_fields_vanish_and_are_reported_with_their_path() {
    let body = value!({
        "Kind": "Sample",
        "metadata": {"colour": 1, "labels": {"any": "thing"}},
        "spec": {
            "foo": {"deep": [1]},
            "items": [{"name": "a"}, {"nmae": "b"}],
            "named": {"x.y/z": {"bar": "\u{7}"}},
        },
    });
    let (value, reports) = read(body.clone()).expect("unknown fields are no error");
    assert_eq!(
        reports,
        [
            r#"unknown field "Kind""#,
            r#"unknown field "metadata.colour""#,
            r#"unknown field "spec.foo""#,
            r#"unknown field "spec.items[1].nmae""#,
            r#"unknown field "spec.named.x.y/z.bar""#,
        ]
    );
    assert_eq!(
        value.at(&["metadata"]),
        Some(&value!({"labels": {"any": "thing"}}))
    );
    let (types, root) = sample();
    let silent = decode(&types, root, body, Unknown::Drop).expect("unknown fields are no error");
    assert_eq!(silent, (value, Vec::new()));
}

#[test]
fn a_place_for_a_schema_takes_what_may_stand_instead() {
    for (given, printed) in [
        (value!({"additional": true}), value!({"additional": true})),
        (
            value!({"additional": {"type": "", "x": 1}}),
            value!({"additional": {}}),
        ),
        (
            value!({"items": [{"type": "a", "x": 1}, null], "needs": ["a", null]}),
            value!({"items": [{"type": "a"}, {}], "needs": ["a", ""]}),
        ),
        (
            value!({"items": {"items": {"x": 1}}}),
            value!({"items": {"items": {}}}),
        ),
        (value!({"items": [], "needs": 5}), value!({})),
    ] {
        let (value, reports) =
            read(value!({"spec": {"schema": (given.clone())}})).expect("the schema fits");
        assert_eq!(value.at(&["spec", "schema"]), Some(&printed), "{given:?}");
        assert!(reports.is_empty());
        let (types, root) = sample();
        let mut normal = value.clone();
        normalize(&types, root, &mut normal, Blank::AsStored);
        assert_eq!(normal, value);
    }
    for (schema, message) in [
        (value!({"additional": 1}), "boolean or JSON schema expected"),
        (
            value!({"needs": [1]}),
            "json: cannot unmarshal number into Go value of type string",
        ),
    ] {
        let error = read(value!({"spec": {"schema": schema}})).expect_err(message);
        assert_eq!(error.to_string(), message);
    }
}

#[test]
fn times_quantities_and_durations_are_printed_in_canonical_form() {
    for (given, printed) in [
        (
            value!({"since": "2026-01-02T03:04:05.9+02:00"}),
            value!("2026-01-02T01:04:05Z"),
        ),
        (value!({"since": "0001-01-01T00:00:00Z"}), Value::Null),
    ] {
        let read = spec(value!({"sub": given}));
        assert_eq!(read.at(&["sub", "since"]), Some(&printed));
    }
    let limits = value!({"a": "1000m", "b": 2, "c": 0.5, "d": " 1Gi ", "e": "0.1Ki"});
    let read = spec(value!({"sub": {"limits": limits}}));
    let printed = value!({"a": "1", "b": "2", "c": "500m", "d": "1Gi", "e": "102400m"});
    assert_eq!(read.at(&["sub", "limits"]), Some(&printed));
}

#[test]
fn how_many_unknown_fields_are_reported() {
    let many: Map = (0..REPORTS_MAX + 50)
        .map(|at| (format!("x{at}").into(), 1.into()))
        .collect();
    let (value, reports) = read(Value::Object(many)).expect("unknown fields are no error");
    assert_eq!(reports.len(), REPORTS_MAX);
    assert_eq!(value, value!({"metadata": {}}));
}

#[test]
fn wrong_types_name_the_field_and_both_types() {
    for (body, message) in [
        (
            value!({"kind": "Sample", "spec": {"replicas": "three"}}),
            "json: cannot unmarshal string into Go struct field SampleSpec.spec.replicas of type int32",
        ),
        (
            value!({"kind": "Sample", "metadata": {"labels": {"a": true}}}),
            "json: cannot unmarshal bool into Go struct field ObjectMeta.metadata.labels of type string",
        ),
        (
            value!({"spec": {"items": [{"args": "one"}]}}),
            "json: cannot unmarshal string into Go struct field spec.items.args of type []string",
        ),
        (
            value!({"kind": "Sample", "metadata": 1}),
            "json: cannot unmarshal number into Go struct field Sample.metadata of type struct",
        ),
        (
            value!({"spec": {"named": []}}),
            "json: cannot unmarshal array into Go struct field spec.named of type map[string]struct",
        ),
        (
            value!({"spec": {"sub": {"since": 5}}}),
            "json: cannot unmarshal number into Go struct field spec.sub.since of type string",
        ),
        (
            value!({"spec": {"sub": {"port": true}}}),
            "json: cannot unmarshal bool into Go struct field spec.sub.port of type int32",
        ),
        (
            value!({"spec": {"data": {"a": "%"}}}),
            "illegal base64 data at input byte 0",
        ),
        (
            value!([]),
            "json: cannot unmarshal array into Go value of type struct",
        ),
    ] {
        let error = read(body).expect_err(message);
        assert_eq!(error.to_string(), message);
    }
}

/// Go remembers the first value of a wrong type and reads on; one that fails to read itself ends
/// the reading.
#[test]
fn a_value_that_fails_to_read_itself_is_told_before_wrong_types() {
    for (body, message) in [
        (
            value!({"kind": 1, "metadata": {"name": [], "time": "x"}}),
            "parsing time \"x\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"x\" as \"2006\"",
        ),
        (
            value!({"kind": 1, "spec": {"sub": {"args": [1], "port": true}}}),
            "json: cannot unmarshal bool into Go struct field spec.sub.port of type int32",
        ),
        (
            value!({"spec": {"count": "x", "data": {"a": "%"}, "sub": {"since": null}}}),
            "json: cannot unmarshal string into Go struct field spec.count of type int32",
        ),
    ] {
        let error = read(body).expect_err(message);
        assert_eq!(error.to_string(), message);
    }
}

#[test]
fn integers_take_neither_fractions_nor_numbers_out_of_range() {
    for (field, number) in [
        ("replicas", value!(1.5)),
        ("replicas", value!(1.0)),
        ("replicas", value!(2147483648i64)),
        ("replicas", value!(-2147483649i64)),
        ("seconds", value!(1e300)),
    ] {
        let body = Map::from_entries(vec![(field.into(), number.clone())]);
        let error = read(value!({"spec": body})).expect_err("the number does not fit");
        let TypeError::Mismatch { fields, wanted, .. } = error else {
            panic!("{error}")
        };
        assert_eq!(fields, ["spec", field]);
        assert_eq!(wanted, if field == "seconds" { "int64" } else { "int32" });
    }
}

#[test]
fn a_recursive_type_nested_too_deeply_is_refused() {
    let nested = |levels: usize| {
        let mut schema = value!({});
        for _ in 0..levels {
            schema = value!({"not": schema});
        }
        value!({"spec": {"schema": schema}})
    };
    assert!(read(nested(DECODE_DEPTH_MAX - 2)).is_ok());
    let error = read(nested(DECODE_DEPTH_MAX)).expect_err("one level too many");
    assert_eq!(
        error,
        TypeError::TooDeep {
            limit: DECODE_DEPTH_MAX
        }
    );
}

#[test]
fn what_becomes_of_what_has_no_entries() {
    let (types, root) = sample();
    let held = value!({"data": {}, "rules": [], "secret": "", "sub": {"args": [], "limits": {}}});
    let (value, _) = read(value!({"spec": (held.clone())})).expect("the body fits the type");
    let sub = |value: &Value| {
        let keys = value.at(&["spec", "sub"]).and_then(Value::as_object);
        let keys = keys.into_iter().flat_map(Map::iter);
        keys.map(|(key, _)| key.to_string()).collect::<Vec<_>>()
    };
    for (blank, data, rules, fields) in [
        (
            Blank::AsRead,
            Some(value!({})),
            value!([]),
            "args limits name since",
        ),
        (Blank::AsShown, None, value!([]), "name since"),
        (Blank::AsStored, None, value!(null), "name since"),
    ] {
        let mut printed = value.clone();
        let kept = normalize(&types, root, &mut printed, blank);
        assert_eq!(kept, blank != Blank::AsStored, "{blank:?}");
        assert_eq!(printed.at(&["spec", "data"]), data.as_ref(), "{blank:?}");
        assert_eq!(printed.at(&["spec", "secret"]).is_some(), data.is_some());
        assert_eq!(printed.at(&["spec", "rules"]), Some(&rules), "{blank:?}");
        assert_eq!(sub(&printed).join(" "), fields, "{blank:?}");
    }
}

#[test]
fn normalize_prints_what_decode_prints() {
    let (types, root) = sample();
    for body in [
        value!({}),
        value!({"metadata": null, "spec": {"items": [null, {"ready": false}], "rules": []}}),
        value!({"metadata": {"time": null}, "spec": {"sub": {"args": [], "port": 0}}}),
    ] {
        let (decoded, _) =
            decode(&types, root, body.clone(), Unknown::Drop).expect("the body fits the type");
        let mut normal = body;
        normalize(&types, root, &mut normal, Blank::AsRead);
        assert_eq!(normal, decoded);
        normalize(&types, root, &mut normal, Blank::AsRead);
        assert_eq!(normal, decoded);
    }
}

/// Bodies with the fields of the sample and values that fit often.
fn body() -> impl Strategy<Value = Value> {
    let key = proptest::sample::select(vec![
        "metadata",
        "spec",
        "items",
        "named",
        "sub",
        "rules",
        "args",
        "data",
        "limits",
        "port",
        "name",
        "ready",
        "since",
        "replicas",
        "count",
        "weight",
        "secret",
        "schema",
        "additional",
        "not",
        "needs",
        "extra",
        "labels",
        "unknown",
    ]);
    let text = proptest::sample::select(vec![
        "",
        "YQ==",
        "YR==",
        "1000m",
        "2026-01-01T01:00:00+01:00",
    ]);
    let scalar = prop_oneof![
        2 => Just(Value::Null),
        2 => text.prop_map(Value::from),
        1 => (0..2i64).prop_map(Value::Int),
        1 => any::<bool>().prop_map(Value::Bool),
    ];
    let inner = scalar.prop_recursive(4, 24, 4, move |inner| {
        let entry = (key.clone().prop_map(object::Text::from), inner.clone());
        prop_oneof![
            1 => proptest::collection::vec(inner, 0..3).prop_map(Value::Array),
            3 => proptest::collection::vec(entry, 0..4)
                .prop_map(|entries| Value::Object(Map::from_entries(entries))),
        ]
    });
    inner.prop_map(|spec| value!({"spec": spec}))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn what_is_printed_reads_back_as_the_same(body in body()) {
        let (types, root) = sample();
        if let Ok((printed, _)) = decode(&types, root, body, Unknown::Report) {
            let again = decode(&types, root, printed.clone(), Unknown::Report);
            prop_assert_eq!(again, Ok((printed.clone(), Vec::new())));
            let mut normal = printed.clone();
            normalize(&types, root, &mut normal, Blank::AsRead);
            prop_assert_eq!(normal, printed);
        }
    }
}
