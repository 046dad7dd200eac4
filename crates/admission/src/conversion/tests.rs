//! Reviews of conversions: what is asked, and which answers are taken.

use super::*;
use object::value;

const OF: &str = "example.com/v1, Kind=Widget";

fn widget(version: &str, name: &str) -> Map {
    let widget = value!({
        "apiVersion": (format!("example.com/{version}")),
        "kind": "Widget",
        "metadata": {
            "name": name, "uid": "u", "resourceVersion": "7", "labels": {"a": "b"},
        },
    });
    widget.as_object().cloned().unwrap()
}

fn converted(change: impl Fn(&mut Map)) -> Result<Vec<Map>, String> {
    let mut answer = widget("v2", "one");
    change(&mut answer);
    let objects = vec![widget("v1", "one")];
    take_in(OF, objects, vec![Value::Object(answer)], "example.com/v2")
        .map_err(|error| error.to_string())
}

#[test]
fn the_review_is_written_as_upstream_writes_it() {
    let object = widget("v1", "one");
    let text = write(
        "apiextensions.k8s.io/v1",
        "u-1",
        &[&object],
        "example.com/v2",
    );
    let expected = concat!(
        r#"{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","request":{"#,
        r#""uid":"u-1","desiredAPIVersion":"example.com/v2","objects":[{"kind":"Widget","#,
        r#""apiVersion":"example.com/v1","metadata":{"labels":{"a":"b"},"name":"one","#,
        r#""uid":"u"}}]},"response":{"uid":"","convertedObjects":null,"#,
        r#""result":{"metadata":{}}}}"#,
    );
    assert_eq!(String::from_utf8(text).unwrap(), expected);
}

#[test]
fn of_the_metadata_only_labels_and_annotations_change() {
    let objects = converted(|object| {
        let metadata = object.object_at("metadata");
        metadata.insert("resourceVersion", Value::from("99"));
        metadata.insert("generation", Value::Int(5));
        metadata.insert("labels", value!({"c": "d"}));
        object.insert("spec", value!({"size": 3}));
    });
    let mut expected = widget("v2", "one");
    expected
        .object_at("metadata")
        .insert("labels", value!({"c": "d"}));
    expected.insert("spec", value!({"size": 3}));
    assert_eq!(objects, Ok(vec![expected]));
}

#[test]
fn another_object_is_refused() {
    let object = |text: &str| format!("conversion webhook for {OF} returned invalid object{text}");
    let metadata =
        |text: &str| format!("conversion webhook for {OF} returned invalid metadata: {text}");
    type Change = fn(&mut Map);
    let cases: [(Change, String); 6] = [
        (
            |it| _ = it.object_at("metadata").insert("name", Value::from("two")),
            object(": must have the same name: one != two"),
        ),
        (
            |it| _ = it.object_at("metadata").insert("uid", Value::from("v")),
            object(": must have the same UID: u != v"),
        ),
        (
            |it| _ = it.insert("kind", Value::from("Gadget")),
            object(" at index 0: invalid kind (expected Widget, received Gadget)"),
        ),
        (
            |it| _ = it.insert("apiVersion", Value::from("example.com/v3")),
            object(
                " at index 0: invalid groupVersion (expected example.com/v2, received example.com/v3)",
            ),
        ),
        (
            |it| _ = it.object_at("metadata").insert("labels", value!({"a": 1})),
            metadata("metadata.labels[a] must be a string in converted object"),
        ),
        (
            |it| _ = it.object_at("metadata").insert("labels", value!([])),
            metadata("invalid metadata.labels in converted object"),
        ),
    ];
    for (change, expected) in cases {
        assert_eq!(converted(change), Err(expected));
    }
}

#[test]
fn objects_of_the_wanted_version_stay_where_they_are() {
    let objects = vec![
        widget("v2", "zero"),
        widget("v1", "one"),
        widget("v2", "two"),
    ];
    let answer = vec![Value::Object(widget("v2", "one"))];
    let names: Vec<String> = take_in(OF, objects, answer, "example.com/v2")
        .unwrap()
        .iter()
        .map(|object| meta_text(object, "name").to_owned())
        .collect();
    assert_eq!(names, ["zero", "one", "two"]);
}

#[test]
fn an_answer_must_be_of_success_and_for_this_review() {
    let answer = |response: &str| {
        let head = "\"kind\":\"ConversionReview\",\"apiVersion\":\"apiextensions.k8s.io/v1\"";
        let text = format!("{{{head},\"response\":{response}}}");
        read("apiextensions.k8s.io/v1", "u-1", text.as_bytes())
    };
    let cases = [
        (
            r#"{"uid":"u-2"}"#,
            r#"expected response.uid="u-1", got "u-2""#,
        ),
        (
            r#"{"uid":"u-1","result":{"status":"Failure"}}"#,
            "response.result.status was 'Failure', not 'Success'",
        ),
        (
            r#"{"uid":"u-1","result":{"status":"Failure","message":"not today"}}"#,
            "not today",
        ),
        ("null", "no response provided"),
    ];
    for (response, expected) in cases {
        assert_eq!(answer(response), Err(expected.to_owned()));
    }
    let good = answer(r#"{"uid":"u-1","result":{"status":"Success"},"convertedObjects":[{}]}"#);
    assert_eq!(good.map(|objects| objects.len()), Ok(1));
}
