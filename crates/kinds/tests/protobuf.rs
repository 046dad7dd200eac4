//! Every built-in kind in protobuf: what is written is read back, and is what upstream writes.

mod objects;
mod wire;

use object::{Map, Value, json};
use proptest::prelude::*;
use schema::decode::{Blank, Unknown, decode as decode_json, normalize};
use schema::protobuf::{decode, encode};
use schema::{Form, TypeId, Types};
use windlass_kinds::{Catalogue, Kind};

use self::objects::Objects;

/// Writes an object and reads it back.
fn check_round_trip(types: &Types, root: TypeId, object: Value, name: &str) {
    let (mut printed, unknown) = decode_json(types, root, object, Unknown::Report)
        .unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(unknown, Vec::<String>::new(), "{name}");
    normalize(types, root, &mut printed, Blank::AsStored);
    let mut bytes = Vec::new();
    encode(types, root, &printed, &mut bytes);
    let read = decode(types, root, &bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
    if read != printed {
        let (read, printed) = (json::to_vec(&read), json::to_vec(&printed));
        let at = read
            .iter()
            .zip(&printed)
            .position(|(left, right)| left != right)
            .unwrap_or_default()
            .saturating_sub(60);
        panic!(
            "{name}: read {}, wrote {}",
            String::from_utf8_lossy(&read[at..read.len().min(at + 160)]),
            String::from_utf8_lossy(&printed[at..printed.len().min(at + 160)]),
        );
    }
}

#[test]
fn every_field_of_every_kind_is_read_back() {
    for kind in Catalogue::builtin().kinds() {
        for salt in 0..3 {
            let object = Objects::full(&kind.types, salt).value(kind.root);
            check_round_trip(&kind.types, kind.root, object, &kind.kind);
        }
    }
}

#[test]
fn every_definition_is_read_back_empty_and_full() {
    let catalogue = Catalogue::builtin();
    for (name, _) in catalogue.published() {
        let root = catalogue.definition(&name).expect("it is published");
        let types = catalogue.types();
        if types.get(root).form != Form::Plain {
            continue;
        }
        check_round_trip(types, root, Value::Object(Map::new()), &name);
        let object = Objects::full(types, 0).value(root);
        check_round_trip(types, root, object, &name);
    }
}

proptest! {
    #[test]
    fn any_object_of_any_kind_is_read_back(choice in 0usize..1000, seed in any::<u64>()) {
        let kinds = Catalogue::builtin().kinds();
        let kind = &kinds[choice % kinds.len()];
        let object = Objects::some(&kind.types, seed).value(kind.root);
        check_round_trip(&kind.types, kind.root, object, &kind.kind);
    }

    #[test]
    fn damaged_messages_are_read_or_refused(
        choice in 0usize..1000,
        seed in any::<u64>(),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let kinds = Catalogue::builtin().kinds();
        let kind = &kinds[choice % kinds.len()];
        let object = Objects::some(&kind.types, seed).value(kind.root);
        let mut bytes = Vec::new();
        encode(&kind.types, kind.root, &object, &mut bytes);
        let at = at.index(bytes.len().max(1));
        if let Some(damaged) = bytes.get_mut(at) {
            *damaged = byte;
        }
        if let Ok(read) = decode(&kind.types, kind.root, &bytes) {
            bytes.clear();
            encode(&kind.types, kind.root, &read, &mut bytes);
            let mut printed = read.clone();
            normalize(&kind.types, kind.root, &mut printed, Blank::AsStored);
            prop_assert_eq!(&printed, &read);
            prop_assert_eq!(decode(&kind.types, kind.root, &bytes), Ok(read));
        }
    }
}

fn kind(group: &str, version: &str, resource: &str) -> &'static Kind {
    Catalogue::builtin()
        .resource(group, version, resource)
        .expect("the resource is served")
}

/// Compares the message of an object with the fields that upstream writes for it.
fn check_wire(kind: &Kind, object: &str, expected: &str) {
    let object = json::parse(object.as_bytes()).expect("the case is JSON");
    let (object, _) = decode_json(&kind.types, kind.root, object, Unknown::Report)
        .expect("the case is of this kind");
    let mut bytes = Vec::new();
    encode(&kind.types, kind.root, &object, &mut bytes);
    assert_eq!(wire::tree(&bytes).as_deref(), Some(expected));
}

#[test]
fn a_pod_has_the_fields_that_upstream_writes() {
    check_wire(
        kind("", "v1", "pods"),
        r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"one","namespace":"ns","uid":"u",
            "resourceVersion":"7","generation":1,"creationTimestamp":"2026-01-02T03:04:05Z"},
            "spec":{"containers":[{"name":"main","image":"app:1","resources":{},
            "terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File",
            "imagePullPolicy":"IfNotPresent"}],"restartPolicy":"Always",
            "terminationGracePeriodSeconds":30,"dnsPolicy":"ClusterFirst","securityContext":{},
            "schedulerName":"default-scheduler","tolerations":[{"key":"node/not-ready",
            "operator":"Exists","effect":"NoExecute","tolerationSeconds":300}],"priority":0,
            "enableServiceLinks":true,"preemptionPolicy":"PreemptLowerPriority"},
            "status":{"phase":"Pending","qosClass":"BestEffort"}}"#,
        concat!(
            r#"[[1,[[1,"one"],[2,""],[3,"ns"],[4,""],[5,"u"],[6,"7"],[7,1],"#,
            r#"[8,[[1,1767323045],[2,0]]]]],"#,
            r#"[2,[[2,[[1,"main"],[2,"app:1"],[5,""],[8,""],[13,"/dev/termination-log"],"#,
            r#"[14,"IfNotPresent"],[16,0],[17,0],[18,0],[20,"File"]]],[3,"Always"],[4,30],"#,
            r#"[6,"ClusterFirst"],[8,""],[9,""],[10,""],[11,0],[12,0],[13,0],[14,""],[16,""],"#,
            r#"[17,""],[19,"default-scheduler"],[22,[[1,"node/not-ready"],[2,"Exists"],[3,""],"#,
            r#"[4,"NoExecute"],[5,300]]],[24,""],[25,0],[30,1],[31,"PreemptLowerPriority"]]],"#,
            r#"[3,[[1,"Pending"],[3,""],[4,""],[5,""],[6,""],[9,"BestEffort"],[11,""],[14,""],"#,
            r#"[17,0]]]]"#
        ),
    );
}

#[test]
fn a_deployment_has_the_fields_that_upstream_writes() {
    check_wire(
        kind("apps", "v1", "deployments"),
        r#"{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"name":"one","namespace":"ns",
            "managedFields":[{"manager":"m","operation":"Update","apiVersion":"apps/v1",
            "time":"2026-01-02T03:04:05Z","fieldsType":"FieldsV1",
            "fieldsV1":{"f:spec":{"f:replicas":{}}}}]},"spec":{"replicas":1,
            "selector":{"matchLabels":{"app":"demo"}},"template":{"metadata":{"labels":
            {"app":"demo"}},"spec":{"containers":[]}},"strategy":{"type":"RollingUpdate",
            "rollingUpdate":{"maxUnavailable":"25%","maxSurge":1}},"revisionHistoryLimit":10,
            "progressDeadlineSeconds":600},"status":{}}"#,
        concat!(
            r#"[[1,[[1,"one"],[2,""],[3,"ns"],[4,""],[5,""],[6,""],[7,0],[8,""],"#,
            r#"[17,[[1,"m"],[2,"Update"],[3,"apps/v1"],[4,[[1,1767323045],[2,0]]],"#,
            r#"[6,"FieldsV1"],[7,[[1,"{\"f:spec\":{\"f:replicas\":{}}}"]]],[8,""]]]]],"#,
            r#"[2,[[1,1],[2,[[1,[[1,"app"],[2,"demo"]]]]],"#,
            r#"[3,[[1,[[1,""],[2,""],[3,""],[4,""],[5,""],[6,""],[7,0],[8,""],"#,
            r#"[11,[[1,"app"],[2,"demo"]]]]],[2,[[3,""],[6,""],[8,""],[9,""],[10,""],[11,0],"#,
            r#"[12,0],[13,0],[16,""],[17,""],[19,""],[24,""]]]]],"#,
            r#"[4,[[1,"RollingUpdate"],[2,[[1,[[1,1],[2,0],[3,"25%"]]],"#,
            r#"[2,[[1,0],[2,1],[3,""]]]]]]],[5,0],[6,10],[7,0],[9,600]]],"#,
            r#"[3,[[1,0],[2,0],[3,0],[4,0],[5,0],[7,0]]]]"#
        ),
    );
}
