//! The entries themselves: reading, printing, order, times, limits.

use apply::{
    ConvertError, DecodeError, FieldSet, ManagedFields, Manager, OnConflict, Operation, Style,
    Typing, Versions, Writer, starting_managers,
};
use object::{Value, json, value};

use crate::support::{types::Schema, world::World};

fn parse(text: &str) -> Value {
    json::parse(text.as_bytes()).expect(text)
}

fn by(name: &str) -> Writer<'_> {
    Writer {
        name,
        api_version: "v1",
        subresource: "",
    }
}

fn world() -> World {
    World::new(
        "v1",
        Schema::parse(r#"{"fields":{"data":{"map":"string"},"set":{"set":"string"}}}"#),
    )
}

fn set(text: &str) -> FieldSet {
    FieldSet::from_fields_v1(text.as_bytes()).expect(text)
}

fn manager(name: &str, operation: Operation, version: &str, time: Option<i64>) -> Manager {
    Manager {
        name: name.into(),
        operation,
        api_version: version.into(),
        subresource: Default::default(),
        time,
        set: set(r#"{"f:a":{}}"#),
    }
}

#[test]
fn entries_that_cannot_be_read_say_why() {
    let cases = [
        (value!([{}]), DecodeError::Operation),
        (value!([{"operation": "apply"}]), DecodeError::Operation),
        (value!([{"operation": "Apply"}]), DecodeError::ApiVersion),
        (
            value!([{"operation": "Apply", "apiVersion": "v1"}]),
            DecodeError::FieldsTypeMissing(0),
        ),
        (
            value!([{"operation": "Apply", "apiVersion": "v1", "fieldsType": "V2"}]),
            DecodeError::FieldsType {
                fields_type: "V2".to_owned(),
                entry: 0,
            },
        ),
        (
            value!([{"operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "time": "x"}]),
            DecodeError::Type {
                entry: 0,
                field: "time",
            },
        ),
        (value!("x"), DecodeError::NotAList),
    ];
    for (list, error) in cases {
        assert_eq!(ManagedFields::decode(&list), Err(error));
    }
    let fields = value!([{"operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1",
        "fieldsV1": {"bad": {}}}]);
    let error = ManagedFields::decode(&fields).expect_err("no element");
    assert!(error.to_string().contains("missing colon"), "{error}");
    let texts = [
        "operation must be `Apply` or `Update`",
        "apiVersion must not be empty",
    ];
    for (error, text) in [DecodeError::Operation, DecodeError::ApiVersion]
        .iter()
        .zip(texts)
    {
        assert_eq!(error.to_string(), text);
    }
    assert_eq!(
        DecodeError::FieldsType {
            fields_type: "V2".to_owned(),
            entry: 3
        }
        .to_string(),
        r#"invalid fieldsType "V2" in managed fields entry 3"#
    );
}

#[test]
fn entries_survive_both_styles_and_the_tree() {
    let text = r#"[{"manager":"a","operation":"Apply","apiVersion":"apps/v1","time":"2024-02-03T04:05:06Z","fieldsType":"FieldsV1","fieldsV1":{"f:data":{".":{},"f:x":{}},"k:{\"p\":80}":{},"v:\"\\u003c\"":{}},"subresource":"status"},{"operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{}}]"#;
    let managers = ManagedFields::parse(text.as_bytes()).expect("valid");
    let mut typed = Vec::new();
    managers.write_json(Style::Typed, &mut typed);
    assert_eq!(String::from_utf8_lossy(&typed), text);
    let mut custom = Vec::new();
    managers.write_json(Style::Custom, &mut custom);
    assert_eq!(ManagedFields::parse(&custom).as_ref(), Ok(&managers));
    let tree = managers.encode().expect("there are managers");
    assert_eq!(ManagedFields::decode(&tree).as_ref(), Ok(&managers));
    assert_eq!(json::to_vec(&tree), custom);
    let spaced = text
        .replace(',', " , ")
        .replace(':', ": ")
        .replace("f: ", "f:");
    let spaced = spaced
        .replace("k: ", "k:")
        .replace("v: ", "v:")
        .replace("04: 05: 06", "04:05:06");
    let spaced = spaced.replace(r#"\"p\": 80"#, r#"\"p\":80"#);
    assert_eq!(
        ManagedFields::parse(spaced.as_bytes()).as_ref(),
        Ok(&managers)
    );
    assert_eq!(ManagedFields::new().encode(), None);
}

#[test]
fn entries_come_by_operation_time_name_version_and_subresource() {
    use Operation::{Apply, Update};
    let sorted = [
        manager("z", Apply, "v1", None),
        manager("b", Apply, "v1", Some(1)),
        manager("a", Apply, "v1", Some(2)),
        manager("u", Update, "v1", None),
        manager("a", Update, "v1", Some(1)),
        manager("a", Update, "v2", Some(1)),
        Manager {
            subresource: "status".into(),
            ..manager("a", Update, "v2", Some(1))
        },
        manager("b", Update, "v1", Some(1)),
    ];
    let mixed = ManagedFields::from_managers(sorted.iter().rev().cloned());
    assert_eq!(mixed.managers(), sorted);
}

#[test]
fn of_equal_identities_the_last_entry_stays() {
    use Operation::{Apply, Update};
    let last = manager("a", Apply, "v2", Some(2));
    let managers = ManagedFields::from_managers([
        manager("a", Apply, "v1", Some(1)),
        manager("a", Update, "v1", None),
        last.clone(),
    ]);
    assert_eq!(managers.managers()[0], last);
    assert_eq!(managers.len(), 2);
}

#[test]
fn identities_name_the_version_of_updaters_only() {
    use Operation::{Apply, Update};
    let applier = manager("a<b", Apply, "v1", Some(1)).identity();
    assert_eq!(
        applier.to_json(),
        r#"{"manager":"a\u003cb","operation":"Apply"}"#
    );
    assert_eq!(applier.to_string(), r#""a<b""#);
    let updater = Manager {
        subresource: "scale".into(),
        ..manager("u", Update, "v1", None)
    };
    let updater = updater.identity();
    assert_eq!(
        updater.to_json(),
        r#"{"manager":"u","operation":"Update","apiVersion":"v1","subresource":"scale"}"#
    );
    assert_eq!(
        updater.to_string(),
        r#""u" with subresource "scale" using v1"#
    );
}

#[test]
fn only_a_gain_or_a_change_moves_the_time() {
    let mut world = world();
    world
        .apply(
            by("a"),
            &parse(r#"{"data":{"x":"1","y":"1"}}"#),
            OnConflict::Refuse,
        )
        .expect("new");
    let time = |world: &World, name: &str| {
        let mut managers = world.managers.managers().iter();
        managers
            .find(|manager| manager.name == name)
            .and_then(|manager| manager.time)
    };
    assert_eq!(time(&world, "a"), Some(1));
    // The same again changes nothing, nor does an update without change.
    world
        .apply(
            by("a"),
            &parse(r#"{"data":{"x":"1","y":"1"}}"#),
            OnConflict::Refuse,
        )
        .expect("same");
    world.update(by("u"), &parse(r#"{"data":{"x":"1","y":"1"}}"#));
    assert_eq!((time(&world, "a"), world.managers.len()), (Some(1), 1));
    // Another's change does not move mine, even if it takes a field.
    world.update(by("u"), &parse(r#"{"data":{"x":"2","y":"1"}}"#));
    assert_eq!((time(&world, "a"), time(&world, "u")), (Some(1), Some(4)));
    // Dropping a field that another owns shrinks the set and changes no value.
    let applied = world.apply(by("a"), &parse(r#"{"data":{"y":"1"}}"#), OnConflict::Refuse);
    assert!(!applied.expect("no conflict").changed());
    assert_eq!(time(&world, "a"), Some(1));
    world
        .apply(by("a"), &parse(r#"{"data":{"y":"2"}}"#), OnConflict::Refuse)
        .expect("its own");
    assert_eq!((time(&world, "a"), time(&world, "u")), (Some(6), Some(4)));
}

#[test]
fn a_write_that_changes_nothing_but_times_keeps_the_old_ones() {
    use Operation::Update;
    let old = ManagedFields::from_managers([
        manager("a", Update, "v1", Some(1)),
        manager("b", Update, "v1", Some(2)),
    ]);
    // The first one wrote again: it now comes last, which must not hide that nothing changed.
    let new = ManagedFields::from_managers([
        manager("a", Update, "v1", Some(9)),
        manager("b", Update, "v1", Some(2)),
    ]);
    assert_eq!(new.managers()[0].name, "b");
    assert!(new.same_owners(&old));
    assert_eq!(new.without_new_times(&old), old);
    let more = ManagedFields::from_managers([
        Manager {
            set: set(r#"{"f:b":{}}"#),
            ..manager("a", Update, "v1", Some(9))
        },
        manager("b", Update, "v1", Some(2)),
    ]);
    assert_eq!(more.clone().without_new_times(&old), more);
    let other_version =
        ManagedFields::from_managers([manager("a", Operation::Apply, "v2", Some(9))]);
    let one = ManagedFields::from_managers([manager("a", Operation::Apply, "v1", Some(1))]);
    assert!(!other_version.same_owners(&one));
}

#[test]
fn supplied_entries_reset_replace_or_are_ignored() {
    let live = ManagedFields::from_managers([manager("a", Operation::Apply, "v1", Some(1))]);
    let good = parse(
        r#"[{"manager":"b","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:x":{}}}]"#,
    );
    let cases = [
        (None, "", "a"),
        (Some(value!(null)), "", "a"),
        (Some(value!([])), "", ""),
        (Some(value!([{}])), "", ""),
        (Some(value!([{}, {}])), "", "a"),
        (Some(value!([{"operation": "Nonsense"}])), "", "a"),
        (Some(good.clone()), "", "b"),
        (Some(good), "status", "a"),
        (Some(value!([])), "status", "a"),
    ];
    for (supplied, subresource, expected) in cases {
        let managers = starting_managers(live.clone(), supplied.as_ref(), subresource);
        let names: Vec<&str> = managers
            .managers()
            .iter()
            .map(|it| it.name.as_str())
            .collect();
        assert_eq!(names.join(" "), expected, "{supplied:?} {subresource}");
    }
}

fn updaters(world: &World) -> Vec<&str> {
    world
        .managers
        .managers()
        .iter()
        .map(|manager| manager.name.as_str())
        .collect()
}

#[test]
fn the_oldest_updaters_are_folded_by_version() {
    use Operation::Update;
    let mut world = world();
    world.kind.versions.insert(
        "v2".into(),
        Schema::parse(r#"{"fields":{"data":{"map":"string"}}}"#),
    );
    let entry = |at: i64, version: &str| Manager {
        set: set(&format!(r#"{{"f:data":{{"f:k{at}":{{}}}}}}"#)),
        ..manager(&format!("u{at}"), Update, version, Some(at))
    };
    // Alternating versions: the first of each version is remembered, later ones are folded.
    world.managers = ManagedFields::from_managers(
        (0..10).map(|at| entry(at, if at % 2 == 0 { "v1" } else { "v2" })),
    );
    world.now = 100;
    let data: String = (0..10).map(|at| format!(r#""k{at}":"1","#)).collect();
    world.live = Some(parse(&format!(r#"{{"data":{{{}"x":"1"}}}}"#, data)));
    world.update(
        by("new"),
        &parse(&format!(r#"{{"data":{{{}"x":"2"}}}}"#, data)),
    );
    assert_eq!(
        updaters(&world),
        [
            "u1",
            "ancient-changes",
            "u3",
            "u4",
            "u5",
            "u6",
            "u7",
            "u8",
            "u9",
            "new"
        ]
    );
    assert_eq!(
        world
            .set_of("ancient-changes/update")
            .map(FieldSet::to_fields_v1)
            .as_deref(),
        Some(r#"{"f:data":{"f:k0":{},"f:k2":{}}}"#)
    );
    assert_eq!(world.managers.managers()[1].time, Some(2));
    // The next one is folded into a bucket of its own version.
    world.update(
        by("newer"),
        &parse(&format!(r#"{{"data":{{{data}"x":"2","y":"1"}}}}"#)),
    );
    let buckets = world.managers.managers().iter();
    let buckets = buckets.filter(|manager| manager.name == "ancient-changes");
    let buckets: Vec<(&str, String)> = buckets
        .map(|bucket| (bucket.api_version.as_str(), bucket.set.to_fields_v1()))
        .collect();
    let expected = [
        ("v1", r#"{"f:data":{"f:k0":{},"f:k2":{}}}"#.to_owned()),
        ("v2", r#"{"f:data":{"f:k1":{},"f:k3":{}}}"#.to_owned()),
    ];
    assert_eq!(buckets, expected);
    assert_eq!(updaters(&world).len(), 10);
}

#[test]
fn a_bucket_is_never_folded_into_itself() {
    use Operation::Update;
    let mut world = world();
    let entry = |name: &str, key: &str, time: Option<i64>| Manager {
        set: set(&format!(r#"{{"f:data":{{"f:{key}":{{}}}}}}"#)),
        ..manager(name, Update, "v1", time)
    };
    // An entry without time, as a scale leaves it, is older than the bucket.
    let mut entries = vec![
        entry("scaler", "s", None),
        entry("ancient-changes", "old", Some(1)),
    ];
    entries.extend((0..8).map(|at| entry(&format!("u{at}"), &format!("k{at}"), Some(10 + at))));
    world.managers = ManagedFields::from_managers(entries);
    world.now = 100;
    let data: String = (0..8).map(|at| format!(r#""k{at}":"1","#)).collect();
    world.live = Some(parse(&format!(r#"{{"data":{{{data}"s":"1","old":"1"}}}}"#)));
    world.update(
        by("new"),
        &parse(&format!(
            r#"{{"data":{{{data}"s":"1","old":"1","x":"1"}}}}"#
        )),
    );
    assert_eq!(
        world
            .set_of("ancient-changes/update")
            .map(FieldSet::to_fields_v1)
            .as_deref(),
        Some(r#"{"f:data":{"f:old":{},"f:s":{}}}"#)
    );
}

#[test]
fn what_the_server_decides_is_never_owned() {
    let schema = Schema::parse(
        r#"{"fields":{"apiVersion":"string","kind":"string","metadata":{"rest":"scalar"}}}"#,
    );
    let mut world = World::new("v1", schema);
    let object = parse(
        r#"{"apiVersion":"v1","kind":"K","metadata":{"name":"n","namespace":"s","uid":"u",
            "creationTimestamp":"t","selfLink":"l","clusterName":"c","generation":1,"resourceVersion":"1"}}"#,
    );
    world
        .apply(by("a"), &object, OnConflict::Refuse)
        .expect("new");
    assert!(world.managers.is_empty());
    let mut more = object;
    more.as_object_mut()
        .expect("a map")
        .object_at("metadata")
        .insert("generateName", "g-".into());
    world
        .apply(by("a"), &more, OnConflict::Refuse)
        .expect("new");
    assert_eq!(
        world.set_of("a").map(FieldSet::to_fields_v1).as_deref(),
        Some(r#"{"f:metadata":{"f:generateName":{}}}"#)
    );
}

/// A kind with a second version that cannot be reached.
struct Unreachable(Schema);

impl Versions for Unreachable {
    fn typing(&self, _api_version: &str) -> Option<Typing<'_>> {
        Some(self.0.typing())
    }

    fn convert(&self, _object: &Value, from: &str, to: &str) -> Result<Value, ConvertError> {
        Err(ConvertError {
            message: format!("no way from {from} to {to}"),
        })
    }
}

#[test]
fn a_failing_conversion_costs_an_updater_nothing_and_fails_an_apply() {
    let versions = Unreachable(Schema::parse(r#"{"fields":{"data":{"map":"string"}}}"#));
    let other = ManagedFields::from_managers([Manager {
        set: set(r#"{"f:data":{"f:x":{}}}"#),
        ..manager("other", Operation::Apply, "v2", Some(1))
    }]);
    let live = parse(r#"{"data":{"x":"1"}}"#);
    let new = parse(r#"{"data":{"x":"2"}}"#);
    let managers = apply::update(Some(&live), &new, other.clone(), by("u"), 2, &versions);
    let names: Vec<&str> = managers
        .managers()
        .iter()
        .map(|it| it.name.as_str())
        .collect();
    assert_eq!(names, ["other", "u"]);
    let refused = apply::apply(
        Some(&live),
        new,
        other,
        by("a"),
        2,
        OnConflict::Force,
        &versions,
    );
    assert_eq!(
        refused.map_err(|error| error.to_string()),
        Err("no way from v1 to v2".to_owned())
    );
}

#[test]
fn a_nameless_writer_is_called_unknown() {
    let mut world = world();
    world.update(by(""), &parse(r#"{"data":{"x":"1"}}"#));
    assert_eq!(updaters(&world), ["unknown"]);
}
