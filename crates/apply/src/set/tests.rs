//! The algebra against small examples, and the wire form to the byte.

use object::{json, value};

use super::*;

fn field(name: &str) -> PathElement {
    PathElement::Field(name.into())
}

fn fields(text: &str) -> FieldSet {
    FieldSet::from_fields_v1(text.as_bytes()).expect("a test writes valid sets")
}

fn wire(set: &FieldSet) -> String {
    set.to_fields_v1()
}

#[test]
fn parents_are_not_implied_and_size_counts_members() {
    let set = FieldSet::from_paths([Path::fields(["a", "b"]), Path::fields(["c"])]);
    assert_eq!(set.len(), 2);
    assert!(set.contains(&Path::fields(["a", "b"])));
    assert!(!set.contains(&Path::fields(["a"])));
    assert!(!set.contains(&Path::default()));
    assert_eq!(FieldSet::from_paths([Path::default()]), FieldSet::new());
}

#[test]
fn differences_leave_or_take_what_lies_beneath() {
    let all = fields(r#"{"f:a":{".":{},"f:b":{}},"f:c":{"k:{\"k\":1}":{"f:d":{}}}}"#);
    let parent = fields(r#"{"f:a":{}}"#);
    let below = fields(r#"{"f:c":{"k:{\"k\":1}":{"f:d":{}}}}"#);
    assert_eq!(
        wire(&all.difference(&parent)),
        r#"{"f:a":{"f:b":{}},"f:c":{"k:{\"k\":1}":{"f:d":{}}}}"#
    );
    assert_eq!(all.recursive_difference(&parent), below);
    let only_child = fields(r#"{"f:a":{"f:b":{}}}"#);
    assert_eq!(
        wire(&all.difference(&only_child)),
        r#"{"f:a":{},"f:c":{"k:{\"k\":1}":{"f:d":{}}}}"#
    );
    assert_eq!(all.difference(&all), FieldSet::new());
}

#[test]
fn intersection_and_difference_part_a_set() {
    let left = fields(r#"{"f:a":{".":{},"f:b":{}},"f:c":{},"v:1":{},"k:{\"n\":2}":{}}"#);
    let right = fields(r#"{"f:a":{},"f:c":{"f:d":{}},"v:1":{},"i:4":{}}"#);
    let (both, rest) = (left.intersection(&right), left.difference(&right));
    assert_eq!(wire(&both), r#"{"f:a":{},"v:1":{}}"#);
    assert_eq!(both.union(&rest), left);
    assert!(both.is_subset(&left) && both.is_subset(&right));
    assert!(rest.is_subset(&left) && !left.is_subset(&rest));
}

#[test]
fn a_known_set_is_shared_and_keeps_its_texts_until_it_is_changed() {
    let known = KnownSets::new();
    let text = r#"{"f:a":{},"k:{\"n\":10}":{},"k:{\"n\":9}":{}}"#;
    let get = |text: &str| known.get(text, || Some(fields(text))).expect("it is read");
    let (first, mut second) = (get(text), get(text));
    assert!(first.is_shared_with(&second));
    let written = |set: &FieldSet, form| {
        let mut out = Vec::new();
        set.write_fields_v1(form, &mut out);
        String::from_utf8(out).expect("a test writes text")
    };
    for form in [Form::Typed, Form::Custom] {
        let anew = written(&fields(text), form);
        assert_eq!(written(&first, form), anew);
        assert_eq!(written(&first, form), anew, "from the text that was kept");
    }
    second.remove(&fields(r#"{"f:a":{}}"#));
    assert!(!written(&second, Form::Typed).contains("f:a"));
    assert!(written(&first, Form::Typed).contains("f:a"));
    assert!(get(text).is_shared_with(&first));
    known.clear();
    assert!(!get(text).is_shared_with(&first));
}

#[test]
fn leaves_have_nothing_beneath_them() {
    let set = fields(r#"{"f:a":{".":{},"f:b":{".":{},"f:c":{}}},"f:d":{}}"#);
    assert_eq!(
        wire(&set.leaves()),
        r#"{"f:a":{"f:b":{"f:c":{}}},"f:d":{}}"#
    );
}

#[test]
fn members_come_before_what_lies_beneath() {
    let set = fields(r#"{"f:a":{".":{},"f:b":{}},"f:c":{}}"#);
    let paths: Vec<String> = set.paths().iter().map(Path::to_string).collect();
    assert_eq!(paths, [".a", ".c", ".a.b"]);
}

#[test]
fn elements_survive_the_wire() {
    let texts = [
        "f:",
        "f:a b",
        "f:é",
        "i:0",
        "i:1234",
        "v:null",
        "v:1",
        "v:1.5",
        "v:\"a\"",
        "v:true",
        "k:{}",
        r#"k:{"port":80,"protocol":"TCP"}"#,
        r#"k:{"nested":{"a":[1]}}"#,
    ];
    for text in texts {
        let element = PathElement::parse(text).expect(text).expect(text);
        assert_eq!(element.to_wire(), text);
    }
}

#[test]
fn what_is_no_element_is_refused_and_unknown_kinds_are_dropped() {
    for text in [
        "", "f", "fx", "i:x", "i:", "v:", "v:{", "k:[]", "k:{", "k:1",
    ] {
        assert!(PathElement::parse(text).is_err(), "{text}");
    }
    assert_eq!(PathElement::parse("r:Hello"), Ok(None));
    assert_eq!(
        wire(&fields(r#"{"z:x":{"f:a":{}},"f:b":{"z:y":{}}}"#)),
        r#"{"f:b":{}}"#
    );
    assert!(FieldSet::from_fields_v1(b"[]").is_err());
    assert!(FieldSet::from_fields_v1(b"{\"f:a\":1}").is_err());
    assert!(FieldSet::from_fields_v1(b"{\"f:a\":{}").is_err());
}

#[test]
fn unsorted_text_is_brought_into_order() {
    let text = r#"{"v:10":{},"v:9":{},"k:{\"port\":443}":{},"k:{\"port\":80}":{"f:x":{},".":{}},"f:b":null,"f:a":{}}"#;
    let sorted = r#"{"f:a":{},"f:b":{},"k:{\"port\":80}":{".":{},"f:x":{}},"k:{\"port\":443}":{},"v:9":{},"v:10":{}}"#;
    assert_eq!(wire(&fields(text)), sorted);
    assert_eq!(wire(&fields(sorted)), sorted);
    assert_eq!(wire(&fields("null")), "{}");
}

#[test]
fn keys_are_escaped_in_three_layers() {
    let uid = PathElement::key([("uid", value!("b<\"é\u{2028}>"))]);
    let name = field("a\"b<c>&é/\t\\\u{2028}");
    let set = FieldSet::from_paths([Path(vec![name]), Path(vec![uid])]);
    assert_eq!(
        wire(&set),
        "{\"f:a\\\"b<c>&é/\\t\\\\\u{2028}\":{},\
         \"k:{\\\"uid\\\":\\\"b\\\\u003c\\\\\\\"é\\\\u2028\\\\u003e\\\"}\":{}}"
    );
    let mut typed = Vec::new();
    set.write_fields_v1(Form::Typed, &mut typed);
    assert_eq!(
        String::from_utf8_lossy(&typed),
        r#"{"f:a\"b\u003cc\u003e\u0026é/\t\\\u2028":{},"k:{\"uid\":\"b\\u003c\\\"é\\u2028\\u003e\"}":{}}"#
    );
    assert_eq!(FieldSet::from_fields_v1(&typed), Ok(set));
}

#[test]
fn custom_resources_sort_keys_as_text() {
    let set = fields(r#"{"v:9":{},"v:10":{},"v:100":{},"k:{\"p\":80}":{},"k:{\"p\":443}":{}}"#);
    let mut custom = Vec::new();
    set.write_fields_v1(Form::Custom, &mut custom);
    assert_eq!(
        String::from_utf8_lossy(&custom),
        r#"{"k:{\"p\":443}":{},"k:{\"p\":80}":{},"v:10":{},"v:100":{},"v:9":{}}"#
    );
    assert_eq!(json::to_vec(&set.to_value()), custom);
}

#[test]
fn patterns_keep_what_they_match_and_what_leads_there() {
    let set = fields(
        r#"{"f:metadata":{"f:labels":{}},"f:spec":{".":{},"f:containers":{".":{},"k:{\"name\":\"a\"}":{".":{},"f:image":{},"f:resources":{".":{},"f:limits":{}}}}}}"#,
    );
    let pattern = vec![
        Some(field("spec")),
        Some(field("containers")),
        None,
        Some(field("resources")),
    ];
    assert_eq!(
        wire(&FieldFilter::Include(vec![pattern]).filter(&set)),
        r#"{"f:spec":{".":{},"f:containers":{".":{},"k:{\"name\":\"a\"}":{".":{},"f:resources":{".":{},"f:limits":{}}}}}}"#
    );
    assert_eq!(
        FieldFilter::Include(Vec::new()).filter(&set),
        FieldSet::new()
    );
    let status = fields(r#"{"f:spec":{}}"#);
    assert_eq!(
        wire(&FieldFilter::Exclude(status).filter(&set)),
        r#"{"f:metadata":{"f:labels":{}}}"#
    );
}

#[test]
fn ten_thousand_levels_and_items_need_no_stack() {
    let deep = Path::fields(std::iter::repeat_n("a", 10_000));
    let set = FieldSet::from_paths([deep.clone()]);
    let tree = set.to_value();
    assert_eq!(FieldSet::from_value(&tree).as_ref(), Ok(&set));
    assert_eq!(set.union(&set).intersection(&set), set);
    assert!(set.contains(&deep) && set.difference(&set).is_empty());
    assert_eq!(set.paths().len(), 1);
    let wide = FieldSet::from_paths((0..10_000).map(|at| Path(vec![PathElement::Index(at)])));
    assert_eq!(wide.len(), 10_000);
    assert_eq!(fields(&wire(&wide)), wide);
}
