//! Results observed on the reference server, to the byte.

use apply::{
    ApplyError, FieldFilter, FieldSet, ManagedFields, OnConflict, Path, ReplicasPath, Style,
    Writer, from_scale, starting_managers, to_scale,
};
use object::{Value, json, value};

use crate::support::{types::Schema, world::World};

fn by(name: &str) -> Writer<'_> {
    Writer {
        name,
        api_version: "v1",
        subresource: "",
    }
}

fn text(managers: &ManagedFields, style: Style) -> String {
    let mut out = Vec::new();
    managers.write_json(style, &mut out);
    String::from_utf8(out).expect("JSON is text")
}

fn fields(world: &World, name: &str) -> String {
    world
        .set_of(name)
        .map(FieldSet::to_fields_v1)
        .unwrap_or_default()
}

fn parse(text: &str) -> Value {
    json::parse(text.as_bytes()).expect(text)
}

const META: &str = r#""apiVersion":"string","kind":"string","metadata":{"of":{"fields":{
    "name":"string","uid":"string","creationTimestamp":"scalar","resourceVersion":"string",
    "labels":{"map":"string"},"annotations":{"map":"string"},"finalizers":{"set":"string"},
    "ownerReferences":{"items":{"fields":{"uid":"string","name":"string"},"atomic":true},"keys":["uid"]}
}},"printed":true}"#;

fn schema(fields: &str) -> Schema {
    Schema::parse(&format!(r#"{{"fields":{{{META},{fields}}}}}"#))
}

fn config_map() -> World {
    World::new("v1", schema(r#""data":{"map":"string"}"#))
}

fn service() -> World {
    World::new(
        "v1",
        schema(
            r#""spec":{"of":{"fields":{
                "ports":{"items":{"fields":{"port":"number","name":"string",
                    "protocol":{"of":"string","default":"TCP"}}},"keys":["port","protocol"]},
                "selector":{"map":"string","atomic":true}}},"printed":true}"#,
        ),
    )
}

fn apply(world: &mut World, name: &str, object: &str) -> Result<bool, ApplyError> {
    world
        .apply(by(name), &parse(object), OnConflict::Refuse)
        .map(|applied| applied.changed())
}

#[test]
fn service_ports_are_owned_by_port_and_protocol() {
    let mut world = service();
    apply(
        &mut world,
        "m1",
        r#"{"spec":{"ports":[{"port":443,"name":"x"},{"port":80,"name":"y"},
            {"port":8080,"name":"z","protocol":"UDP"}],"selector":{"a":"b"}}}"#,
    )
    .expect("nobody else is there");
    assert_eq!(
        fields(&world, "m1"),
        r#"{"f:spec":{"f:ports":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:name":{},"f:port":{}},"k:{\"port\":443,\"protocol\":\"TCP\"}":{".":{},"f:name":{},"f:port":{}},"k:{\"port\":8080,\"protocol\":\"UDP\"}":{".":{},"f:name":{},"f:port":{},"f:protocol":{}}},"f:selector":{}}}"#
    );
    let error = apply(
        &mut world,
        "m2",
        r#"{"spec":{"ports":[{"port":443,"name":"other"}]}}"#,
    );
    let Err(ApplyError::Conflicts(conflicts)) = error else {
        panic!("{error:?}")
    };
    assert_eq!(
        conflicts.0[0].field(),
        r#".spec.ports[port=443,protocol="TCP"].name"#
    );
    assert_eq!(conflicts.0[0].live, Some("x".into()));
    assert_eq!(conflicts.0[0].wanted, Some("other".into()));
    apply(
        &mut world,
        "m1",
        r#"{"spec":{"ports":[{"port":8080,"protocol":"UDP"},{"port":443}],"selector":{"a":"b"}}}"#,
    )
    .expect("its own fields");
    let live = world
        .live
        .as_ref()
        .and_then(|live| live.at(&["spec", "ports"]));
    assert_eq!(
        live,
        Some(&parse(r#"[{"port":8080,"protocol":"UDP"},{"port":443}]"#))
    );
}

#[test]
fn custom_resources_own_fields_as_their_schema_says() {
    let mut world = World::new(
        "v1",
        schema(
            r#""spec":{"fields":{
                "set":{"set":"number"},
                "m":{"items":{"fields":{"p":"number","q":{"of":"string","default":"T"},"v":"string"}},
                    "keys":["p","q"]},
                "pu":{"fields":{"known":{"map":"string"}},"rest":"deduced"},
                "er":{"fields":{"apiVersion":"string","kind":"string",
                    "metadata":{"fields":{"name":"string","labels":{"map":"string"}}}},"rest":"deduced"},
                "ios":{"any":["scalar",{"list":"scalar"},{"map":"deduced"}]},
                "amap":{"map":"string","atomic":true},"atom":{"list":"string"},"nul":{"map":"string"}}}"#,
        ),
    );
    apply(
        &mut world,
        "a",
        r#"{"spec":{"set":[10,9,100],"m":[{"p":443,"v":"x"},{"p":80,"q":"U"}],
            "pu":{"known":{"a":"b"},"un":{"k":[1],"d":{"e":"f"}}},
            "er":{"apiVersion":"v1","kind":"K","metadata":{"labels":{"a":"b"},"name":"n"},"spec":{"z":1}},
            "ios":1,"amap":{"a":"b"},"atom":["a"]}}"#,
    )
    .expect("nobody else is there");
    let written = text(&world.managers, Style::Custom);
    for part in [
        r#""f:m":{"k:{\"p\":443,\"q\":\"T\"}":{".":{},"f:p":{},"f:v":{}},"k:{\"p\":80,\"q\":\"U\"}":{".":{},"f:p":{},"f:q":{}}}"#,
        r#""f:set":{"v:10":{},"v:100":{},"v:9":{}}"#,
        r#""f:pu":{"f:known":{"f:a":{}},"f:un":{".":{},"f:d":{".":{},"f:e":{}},"f:k":{}}}"#,
        r#""f:er":{"f:apiVersion":{},"f:kind":{},"f:metadata":{"f:labels":{"f:a":{}},"f:name":{}},"f:spec":{".":{},"f:z":{}}}"#,
        r#""f:ios":{}"#,
        r#""f:amap":{}"#,
        r#""f:atom":{}"#,
    ] {
        assert!(written.contains(part), "{part} is not in {written}");
    }
    assert!(written.starts_with(r#"[{"apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"#));
    assert!(
        written.ends_with(r#","manager":"a","operation":"Apply","time":"1970-01-01T00:00:01Z"}]"#)
    );
}

#[test]
fn empty_values_are_stored_and_only_some_are_owned() {
    let mut world = World::new(
        "v1",
        schema(
            r#""spec":{"fields":{"set":{"set":"string"},"atom":{"list":"string"},
                "amap":{"map":"string","atomic":true},"m":{"items":{"map":"string"},"keys":["k"]},
                "pu":{"map":"deduced"},"nul":{"map":"string"}}}"#,
        ),
    );
    let object = r#"{"spec":{"set":[],"atom":[],"amap":{},"m":[],"pu":{},"nul":{}}}"#;
    apply(&mut world, "a", object).expect("nobody else is there");
    let owned = r#"{"f:spec":{"f:amap":{},"f:atom":{},"f:nul":{},"f:pu":{}}}"#;
    assert_eq!(fields(&world, "a"), owned);
    assert_eq!(
        world.live.as_ref().and_then(|live| live.get("spec")),
        parse(object).get("spec")
    );
}

#[test]
fn a_new_co_owner_has_no_time_and_force_leaves_one_owner() {
    let mut world = config_map();
    assert_eq!(apply(&mut world, "m1", r#"{"data":{"x":"1"}}"#), Ok(true));
    assert_eq!(apply(&mut world, "m2", r#"{"data":{"x":"1"}}"#), Ok(false));
    assert_eq!(
        text(&world.managers, Style::Typed),
        r#"[{"manager":"m2","operation":"Apply","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:data":{"f:x":{}}}},{"manager":"m1","operation":"Apply","apiVersion":"v1","time":"1970-01-01T00:00:01Z","fieldsType":"FieldsV1","fieldsV1":{"f:data":{"f:x":{}}}}]"#
    );
    let error = apply(&mut world, "m3", r#"{"data":{"x":"2"}}"#).map_err(|error| error.to_string());
    let message = "Apply failed with 2 conflicts: conflicts with \"m1\":\n- .data.x\n\
                   conflicts with \"m2\":\n- .data.x";
    assert_eq!(error, Err(message.to_owned()));
    world
        .apply(by("m3"), &parse(r#"{"data":{"x":"2"}}"#), OnConflict::Force)
        .expect("force takes over");
    assert_eq!(world.managers.len(), 1);
    assert_eq!(fields(&world, "m3"), r#"{"f:data":{"f:x":{}}}"#);
}

#[test]
fn an_updater_owns_containers_it_made_and_keeps_its_time_when_it_loses() {
    let mut world = config_map();
    world.update(
        by("c"),
        &parse(r#"{"metadata":{"labels":{"l":"1"}},"data":{"x":"1"}}"#),
    );
    let owned = r#"{"f:data":{".":{},"f:x":{}},"f:metadata":{"f:labels":{".":{},"f:l":{}}}}"#;
    assert_eq!(fields(&world, "c/update"), owned);
    let before = world.managers.clone();
    world.update(
        by("d"),
        &parse(r#"{"metadata":{"labels":{"l":"1"}},"data":{"x":"1"}}"#),
    );
    assert_eq!(world.managers, before);
    world.update(by("d"), &parse(r#"{"metadata":{},"data":{"x":"1"}}"#));
    assert_eq!(
        fields(&world, "c/update"),
        r#"{"f:data":{".":{},"f:x":{}}}"#
    );
    assert_eq!(world.set_of("d/update"), None);
    assert_eq!(world.managers.managers()[0].time, Some(1));
    world.update(by("d"), &parse(r#"{"metadata":{},"data":{"x":"2"}}"#));
    assert_eq!(fields(&world, "c/update"), r#"{"f:data":{}}"#);
    assert_eq!(fields(&world, "d/update"), r#"{"f:data":{"f:x":{}}}"#);
}

#[test]
fn an_unmanaged_object_is_attributed_before_its_first_apply() {
    let mut world = config_map();
    world.update(by("c"), &parse(r#"{"data":{"x":"1"}}"#));
    world.managers = starting_managers(world.managers.clone(), Some(&value!([])), "");
    world.update(by("c"), &parse(r#"{"data":{"x":"1"}}"#));
    assert!(world.managers.is_empty(), "an unmanaged object stays so");
    assert_eq!(apply(&mut world, "m9", r#"{"data":{"x":"1"}}"#), Ok(false));
    assert_eq!(
        text(&world.managers, Style::Typed),
        r#"[{"manager":"m9","operation":"Apply","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:data":{"f:x":{}}}},{"manager":"before-first-apply","operation":"Update","apiVersion":"v1","time":"1970-01-01T00:00:03Z","fieldsType":"FieldsV1","fieldsV1":{"f:data":{".":{},"f:x":{}}}}]"#
    );
}

fn replicas_path(version: &str) -> ReplicasPath {
    match version {
        "apps/v1" => ReplicasPath::At(Path::fields(["spec", "replicas"])),
        "none/v1" => ReplicasPath::NoScale,
        _ => ReplicasPath::NoVersion,
    }
}

fn managed(text: &str) -> ManagedFields {
    ManagedFields::parse(text.as_bytes()).expect(text)
}

#[test]
fn a_scaler_takes_replicas_from_the_parent() {
    let parent = managed(
        r#"[{"manager":"m1","operation":"Apply","apiVersion":"apps/v1","time":"2024-01-01T00:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:replicas":{},"f:selector":{}}}},
            {"manager":"old","operation":"Update","apiVersion":"gone/v1","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:replicas":{}}}},
            {"manager":"no","operation":"Update","apiVersion":"none/v1","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:replicas":{}}}}]"#,
    );
    let scale = to_scale(&parent, replicas_path);
    assert_eq!(
        text(&scale, Style::Typed),
        r#"[{"manager":"m1","operation":"Apply","apiVersion":"autoscaling/v1","time":"2024-01-01T00:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:replicas":{}}}}]"#
    );
    assert_eq!(
        text(
            &from_scale(parent.clone(), &scale, "apps/v1", replicas_path),
            Style::Typed
        ),
        r#"[{"manager":"m1","operation":"Apply","apiVersion":"apps/v1","time":"2024-01-01T00:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:replicas":{},"f:selector":{}}}},{"manager":"no","operation":"Update","apiVersion":"none/v1","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:replicas":{}}}}]"#
    );
    let stolen = managed(
        r#"[{"manager":"sc","operation":"Update","apiVersion":"autoscaling/v1","time":"2025-01-01T00:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:replicas":{}}},"subresource":"scale"}]"#,
    );
    assert_eq!(
        text(
            &from_scale(parent, &stolen, "apps/v1", replicas_path),
            Style::Typed
        ),
        r#"[{"manager":"m1","operation":"Apply","apiVersion":"apps/v1","time":"2024-01-01T00:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:selector":{}}}},{"manager":"no","operation":"Update","apiVersion":"none/v1","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:replicas":{}}}},{"manager":"sc","operation":"Update","apiVersion":"apps/v1","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:replicas":{}}},"subresource":"scale"}]"#
    );
}

#[test]
fn a_status_endpoint_owns_no_spec() {
    let mut world = World::new(
        "v1",
        schema(r#""spec":{"map":"string"},"status":{"map":"string"}"#),
    );
    let excluded = parse(r#"{"f:spec":{},"f:metadata":{"f:labels":{}}}"#);
    let excluded = FieldSet::from_value(&excluded).expect("a set");
    world
        .kind
        .filters
        .insert("v1".into(), FieldFilter::Exclude(excluded));
    let writer = Writer {
        subresource: "status",
        ..by("s")
    };
    let object = parse(
        r#"{"metadata":{"labels":{"a":"b"},"annotations":{"a":"b"}},"spec":{"a":"b"},"status":{"a":"b"}}"#,
    );
    world
        .apply(writer, &object, OnConflict::Refuse)
        .expect("nobody else is there");
    assert_eq!(
        fields(&world, "s"),
        r#"{"f:metadata":{"f:annotations":{"f:a":{}}},"f:status":{"f:a":{}}}"#
    );
}

#[test]
fn the_twelfth_updater_folds_the_oldest_three() {
    let mut world = config_map();
    apply(&mut world, "applier", r#"{"data":{"mine":"1"}}"#).expect("nobody else is there");
    let mut object = parse(r#"{"data":{"mine":"1"}}"#);
    for at in 0..12 {
        let data = object
            .get_mut("data")
            .and_then(Value::as_object_mut)
            .expect("data");
        data.insert(format!("k{at:02}"), "x".into());
        world.update(by(&format!("u{at:02}")), &object);
    }
    let names: Vec<&str> = world
        .managers
        .managers()
        .iter()
        .map(|manager| manager.name.as_str())
        .collect();
    assert_eq!(
        names,
        [
            "applier",
            "ancient-changes",
            "u03",
            "u04",
            "u05",
            "u06",
            "u07",
            "u08",
            "u09",
            "u10",
            "u11"
        ]
    );
    assert_eq!(
        fields(&world, "ancient-changes/update"),
        r#"{"f:data":{"f:k00":{},"f:k01":{},"f:k02":{}}}"#
    );
}

#[test]
fn supplied_entries_replace_the_live_ones_and_unknown_parts_are_dropped() {
    let mut world = config_map();
    apply(&mut world, "a", r#"{"data":{"x":"1"}}"#).expect("nobody else is there");
    let supplied = parse(
        r#"[{"operation":"Update","apiVersion":"gone/v9","fieldsType":"FieldsV1","fieldsV1":{"f:data":{"f:x":{}}}},
            {"operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:data":{"f:x":{},"z:y":{}}}}]"#,
    );
    world.managers = starting_managers(world.managers.clone(), Some(&supplied), "");
    world.update(by("u"), &parse(r#"{"data":{"x":"1","y":"2"}}"#));
    assert_eq!(
        text(&world.managers, Style::Typed),
        r#"[{"operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:data":{"f:x":{}}}},{"manager":"u","operation":"Update","apiVersion":"v1","time":"1970-01-01T00:00:02Z","fieldsType":"FieldsV1","fieldsV1":{"f:data":{"f:y":{}}}}]"#
    );
}

#[test]
fn conflicts_are_listed_by_manager() {
    let mut world = config_map();
    apply(&mut world, "a", r#"{"data":{"x":"1"}}"#).expect("nobody else is there");
    world.update(by("u1"), &parse(r#"{"data":{"x":"1","a":"1","b":"1"}}"#));
    let error = apply(&mut world, "m", r#"{"data":{"x":"2","a":"2","b":"2"}}"#);
    assert_eq!(
        error.map_err(|error| error.to_string()),
        Err(
            "Apply failed with 3 conflicts: conflicts with \"a\":\n- .data.x\n\
             conflicts with \"u1\" using v1:\n- .data.a\n- .data.b"
                .to_owned()
        )
    );
    let error = apply(&mut world, "m", r#"{"data":{"a":"2"}}"#);
    assert_eq!(
        error.map_err(|error| error.to_string()),
        Err("Apply failed with 1 conflict: conflict with \"u1\" using v1: .data.a".to_owned())
    );
}
