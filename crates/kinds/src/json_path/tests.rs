//! Paths, and the first value that each leads to.

use object::{Map, Value, value, yaml};

use super::{Found, JsonPath};

fn object() -> Map {
    let text = "
        spec: {size: 3, ratio: 0.5, 'on': true, title: ten, none: null, tags: [x, z], empty: []}
        metadata: {labels: {app.kubernetes.io/name: web, plain: p}}
        status:
          conditions:
          - {type: Ready, status: 'True', age: 1}
          - {type: Synced, status: 'False', age: 5, extra: {deep: d}}
          grid: [[1, 2], [3, 4]]
    ";
    let object = yaml::parse(text.as_bytes()).expect("YAML");
    object.as_object().expect("a map").clone()
}

#[test]
fn paths_lead_to_the_value_that_upstream_finds() {
    let cases = [
        (".spec.size", value!(3)),
        ("$.spec.size", value!(3)),
        ("@.spec.size", value!(3)),
        (".spec.none", Value::Null),
        (".spec['size']", value!(3)),
        (".spec.tags", value!(["x", "z"])),
        (".spec.tags[0]", value!("x")),
        (".spec.tags[]", value!("x")),
        (".spec.tags[-1]", value!("z")),
        (".spec.tags[-2]", value!("x")),
        (".spec.tags[-1:]", value!("z")),
        (".spec.tags[*]", value!("x")),
        (".spec.tags[1:2]", value!("z")),
        (".spec.tags[0:2:2]", value!("x")),
        (".spec.tags[1,0]", value!("z")),
        (".spec['title', 'size']", value!("ten")),
        (".metadata.labels.app\\.kubernetes\\.io/name", value!("web")),
        (
            ".metadata.labels['app\\.kubernetes\\.io/name']",
            value!("web"),
        ),
        (".metadata.labels.*", value!("web")),
        (".status.conditions[*].type", value!("Ready")),
        (
            ".status.conditions[?(@.type=='Synced')].status",
            value!("False"),
        ),
        (
            ".status.conditions[?(@.type==\"Synced\")].status",
            value!("False"),
        ),
        (
            ".status.conditions[?(@.type == \"Synced\")].status",
            value!("False"),
        ),
        (
            ".status.conditions[?(@.type!='Ready')].status",
            value!("False"),
        ),
        (".status.conditions[?(@.age>1)].type", value!("Synced")),
        (".status.conditions[?(@.age>=1)].type", value!("Ready")),
        (".status.conditions[?(@.age<5)].type", value!("Ready")),
        (".status.conditions[?(@.extra)].type", value!("Synced")),
        (
            ".status.conditions[?(@.extra.deep=='d')].type",
            value!("Synced"),
        ),
        ("..deep", value!("d")),
        (".status..status", value!("True")),
        (".status.grid[*][1]", value!(2)),
        (".spec.size}", value!(3)),
    ];
    let object = object();
    for (text, expected) in cases {
        let path = JsonPath::parse(text).expect(text);
        assert_eq!(
            path.first(&object),
            Some(Found::Inside(&expected)),
            "{text}"
        );
    }
}

#[test]
fn a_path_that_does_not_fit_the_object_finds_nothing() {
    let cases = [
        ".",
        ".spec.absent",
        ".spec.absent.deeper[0]",
        ".spec.size.deeper",
        ".spec.size[0]",
        ".spec.tags[2]",
        ".spec.tags[0:3]",
        ".spec.tags[0:0]",
        ".spec.empty[0]",
        ".spec.empty[*]",
        ".spec.none.deeper",
        ".spec.none[0]",
        ".spec[?(@.a=='b')]",
        ".metadata.labels['app.kubernetes.io/name']",
        ".status.conditions[?(@.age<=0)]",
        // A comparison across types is a mistake.
        ".status.conditions[?(@.age=='1')]",
        ".status.conditions[?(@.age<1.5)]",
        ".status.conditions[?(@.extra==1)]",
        ".status.conditions[?(@.age=<1)]",
        ".spec.size range",
    ];
    let object = object();
    for text in cases {
        let path = JsonPath::parse(text).expect(text);
        assert_eq!(path.first(&object), None, "{text}");
    }
}

#[test]
fn what_upstream_cannot_read_is_refused() {
    let cases = [
        ".spec.tags[0",
        ".spec.tags[a]",
        ".spec.tags[-]",
        ".spec.tags[+1]",
        ".spec.tags[1:2:3:4]",
        ".spec[\"size\"]",
        ".a[?(@.b=='c'].d",
        ".a[?(@.b=='c)]",
        ".a[?(@.b==)]",
        ".a[?(=='c')]",
        "....a",
        ".a 'b",
        ".a\n",
        ".a (b)",
        ".a 1.2.3",
    ];
    for text in cases {
        let error = JsonPath::parse(text).expect_err(text);
        assert_eq!(
            error.to_string(),
            format!("unrecognized column definition {text:?}")
        );
    }
}

/// Two descents visit each value once for every value above it.
#[test]
fn descents_that_multiply_end() {
    let mut deep = value!({"leaf": {"end": 1}});
    for _ in 0..300 {
        deep = value!({"a": deep});
    }
    let object = deep.as_object().expect("a map").clone();
    let twice = JsonPath::parse("..leaf..end").expect("a path");
    assert_eq!(twice.first(&object), Some(Found::Inside(&value!(1))));
    let often = JsonPath::parse(&"...*".repeat(20)).expect("a path");
    assert_eq!(often.first(&object), None);
}

/// Every short text over the characters that mean something, and one of two bytes.
#[test]
fn no_text_brings_the_parser_down() {
    const LETTERS: &[char] = &[
        '.', '[', ']', '?', '(', ')', '@', '\'', '"', '\\', '*', ':', '-', '1', ',', '=', 'a', 'é',
    ];
    const LENGTH: u32 = 4;
    let object = object();
    let mut followed = 0;
    for number in 0..LETTERS.len().pow(LENGTH) {
        let mut rest = number;
        let text: String = (0..LENGTH)
            .map(|_| {
                let letter = LETTERS[rest % LETTERS.len()];
                rest /= LETTERS.len();
                letter
            })
            .collect();
        for text in [format!(".spec.tags{text}"), format!(".spec[?({text})]")] {
            if let Ok(path) = JsonPath::parse(&text) {
                path.first(&object);
                followed += 1;
            }
        }
    }
    assert!(followed > 1000, "{followed} of them are paths");
}

#[test]
fn only_a_path_that_names_other_fields_keeps_away() {
    let cases = [
        (".spec.size", false),
        (".metadata.creationTimestamp", false),
        (".metadata['labels'].app", false),
        (".status.conditions[?(@.type==\"Ready\")].status", false),
        (".metadata", true),
        (".metadata.managedFields[0].manager", true),
        (".metadata[*]", true),
        ("..manager", true),
        ("$", true),
        ("['spec', 'metadata']", true),
    ];
    for (path, meets) in cases {
        let path = JsonPath::parse(path).expect("a path");
        let found = path.may_meet(&["metadata", "managedFields"]);
        assert_eq!(found, meets, "{}", path.text());
    }
}
