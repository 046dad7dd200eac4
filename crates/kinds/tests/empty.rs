//! Lists that are sent empty.

use object::{Value, value};
use schema::decode::Unknown;
use windlass_kinds::Catalogue;

#[test]
fn an_empty_list_that_always_prints_is_kept_until_it_is_printed() {
    let group = "rbac.authorization.k8s.io";
    let kind = Catalogue::builtin().resource(group, "v1", "clusterroles");
    let kind = kind.expect("cluster roles are built in");
    let empty = Value::Array(Vec::new());
    // Who sends an empty list of rules owns it; who sends none, or null, does not.
    for (sent, read) in [
        (value!({"rules": []}), &empty),
        (value!({"rules": null}), &Value::Null),
        (value!({}), &Value::Null),
    ] {
        let sent = sent.as_object().expect("a map").clone();
        let (object, _) = kind.read(sent, Unknown::Drop).expect("it can be read");
        assert_eq!(object.get("rules"), Some(read));
        let printed = kind.print(object);
        assert_eq!(printed.get("rules"), Some(&Value::Null));
    }
}
