//! Documents say what trees say, whatever is written and however it is spelled.

use apply::{ApplyError, Document, ManagedFields, OnConflict, OneVersion, Reader, Style, Writer};
use object::{Value, json, value};
use proptest::{collection, prelude::*, sample};

use crate::support::types::Schema;

const SCHEMA: &str = r#"{"fields":{
    "leaf":"scalar","text":"string","map":{"map":"string"},"any":"deduced","whole":"anything",
    "list":{"list":{"fields":{"a":"string","b":"number","c":{"list":"boolean"},"d":{"map":"scalar"}}}},
    "sets":{"list":{"fields":{"s":{"set":"scalar"},"t":"scalar"}}},
    "amap":{"map":"scalar","atomic":true},
    "astruct":{"of":{"fields":{"x":{"of":"string","printed":true},"y":{"map":"scalar"}},"atomic":true},
        "printed":true},
    "items":{"items":{"fields":{"k":"string","l":{"list":"scalar"}}},"keys":["k"]},
    "refs":{"items":{"fields":{"k":"string","l":{"list":"scalar"}},"atomic":true},"keys":["k"]},
    "either":{"any":["string",{"list":"string"}]}}}"#;

fn scalar() -> impl Strategy<Value = Value> {
    let texts = vec![
        "",
        "a",
        "b",
        "é",
        "<&>",
        "quote \" and \\",
        "\u{2028}",
        "two\nlines",
        "a text that is too long to be kept where it stands",
    ];
    prop_oneof![
        4 => sample::select(texts).prop_map(Value::from),
        2 => (-3..3i64).prop_map(Value::from),
        1 => sample::select(vec![0.5, 1e30, -2.0]).prop_map(Value::from),
        1 => sample::select(vec![i64::MAX, i64::MIN]).prop_map(Value::from),
        2 => any::<bool>().prop_map(Value::from),
        1 => Just(Value::Null),
    ]
}

/// Mostly what the schema allows: its names at random depths.
fn tree() -> impl Strategy<Value = Value> {
    let names = vec!["a", "b", "c", "d", "s", "t", "x", "y", "k", "l"];
    scalar().prop_recursive(3, 12, 3, move |inner| {
        prop_oneof![
            collection::vec(inner.clone(), 0..3).prop_map(Value::Array),
            collection::btree_map(sample::select(names.clone()), inner, 0..3).prop_map(|entries| {
                let entry = |(key, value): (&str, Value)| (key.into(), value);
                Value::Object(entries.into_iter().map(entry).collect())
            }),
        ]
    })
}

/// Values that fit their fields.
fn fitting(field: &'static str) -> BoxedStrategy<Value> {
    let text = || sample::select(vec!["a", "b", "<", "long enough for the heap, surely"]);
    let number = || 0..3i64;
    match field {
        "text" => text().prop_map(Value::from).boxed(),
        "map" | "amap" => collection::btree_map(sample::select(vec!["p", "q", "z"]), text(), 0..3)
            .prop_map(|entries| {
                let entry = |(key, value): (&str, &str)| (key.into(), Value::from(value));
                Value::Object(entries.into_iter().map(entry).collect())
            })
            .boxed(),
        "list" => collection::vec((text(), number(), any::<bool>()), 0..4)
            .prop_map(|items| {
                let item = |(a, b, c)| value!({"c": [c, false], "a": a, "d": {"n": a}, "b": b});
                Value::Array(items.into_iter().map(item).collect())
            })
            .boxed(),
        "sets" => number()
            .prop_map(|n| value!([{"s": [n, 7]}, {"t": n}]))
            .boxed(),
        "astruct" => (text(), number())
            .prop_map(|(x, n)| value!({"x": x, "y": {"n": n}}))
            .boxed(),
        "items" | "refs" => (text(), number())
            .prop_map(|(k, n)| value!([{"k": k, "l": [n, 1]}, {"k": "other", "l": []}]))
            .boxed(),
        "either" => prop_oneof![
            text().prop_map(Value::from),
            text().prop_map(|it| value!([it])),
        ]
        .boxed(),
        _ => tree().boxed(),
    }
}

const FIELDS: [&str; 12] = [
    "leaf", "text", "map", "any", "whole", "list", "sets", "amap", "astruct", "items", "refs",
    "either",
];

/// An object as text, mostly valid.
fn text() -> impl Strategy<Value = String> {
    let field = sample::select(FIELDS.to_vec()).prop_flat_map(|name| {
        let value = prop_oneof![15 => fitting(name), 1 => tree().boxed()];
        (Just(name), value)
    });
    let fields = collection::vec(field, 0..7);
    (fields, any::<u64>(), prop::bool::weighted(0.5)).prop_map(|(fields, seed, usual)| {
        let mut spelling = Spelling { seed, usual };
        let fields = fields.into_iter().map(|(name, value)| (name.into(), value));
        let mut out = String::new();
        spelling.fields(fields.collect(), &mut out);
        out
    })
}

/// Spells values in one of the ways that mean the same.
struct Spelling {
    seed: u64,
    /// Compact, without escapes that need not be; keys come in any order all the same.
    usual: bool,
}

impl Spelling {
    fn chance(&mut self, of: u64) -> bool {
        self.seed ^= self.seed << 13;
        self.seed ^= self.seed >> 7;
        self.seed ^= self.seed << 17;
        self.seed.is_multiple_of(of)
    }

    fn space(&mut self, out: &mut String) {
        if !self.usual && self.chance(4) {
            out.push_str(if self.chance(2) { " " } else { "\n\t" });
        }
    }

    fn string(&mut self, text: &str, out: &mut String) {
        let mut written = Vec::new();
        json::write_string(text, &mut written);
        let written = String::from_utf8(written).expect("JSON is text");
        match !self.usual && self.chance(8) {
            true => out.push_str(&written.replace('a', "\\u0061")),
            false if self.chance(2) => {
                let plain = written.replace("\\u003c", "<").replace("\\u003e", ">");
                out.push_str(&plain.replace("\\u0026", "&").replace("\\u2028", "\u{2028}"));
            }
            false => out.push_str(&written),
        }
    }

    fn fields(&mut self, mut fields: Vec<(String, Value)>, out: &mut String) {
        for at in 1..fields.len() {
            if self.chance(2) {
                fields.swap(at - 1, at);
            }
        }
        out.push('{');
        for (at, (name, value)) in fields.iter().enumerate() {
            if at > 0 {
                out.push(',');
            }
            self.space(out);
            self.string(name, out);
            self.space(out);
            out.push(':');
            self.value(value, out);
        }
        out.push('}');
    }

    fn value(&mut self, value: &Value, out: &mut String) {
        self.space(out);
        match value {
            Value::String(text) => self.string(text, out),
            Value::Int(1) if !self.usual && self.chance(4) => out.push_str("1.0"),
            Value::Array(items) => {
                out.push('[');
                for (at, item) in items.iter().enumerate() {
                    if at > 0 {
                        out.push(',');
                    }
                    self.value(item, out);
                }
                self.space(out);
                out.push(']');
            }
            Value::Object(map) => {
                let fields = map.iter().map(|(key, it)| (key.to_string(), it.clone()));
                self.fields(fields.collect(), out);
            }
            other => out.push_str(&printed(other)),
        }
        self.space(out);
    }
}

fn printed(value: &Value) -> String {
    String::from_utf8(json::to_vec(value)).expect("JSON is text")
}

fn written(document: &Document<'_>) -> String {
    let mut out = Vec::new();
    document.write(&mut out);
    String::from_utf8(out).expect("JSON is text")
}

fn managers_text(managers: &ManagedFields) -> String {
    let mut out = Vec::new();
    managers.write_json(Style::Typed, &mut out);
    String::from_utf8(out).expect("JSON is text")
}

/// All that an error says, values included.
fn told(error: &ApplyError) -> String {
    let mut told = error.to_string();
    if let ApplyError::Conflicts(conflicts) = error {
        for conflict in &conflicts.0 {
            for value in [&conflict.live, &conflict.wanted] {
                told += "\n";
                told += &value.as_ref().map(printed).unwrap_or_default();
            }
        }
    }
    told
}

#[derive(Clone, Debug)]
struct Write {
    by: &'static str,
    text: String,
    kind: Kind,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Apply(OnConflict),
    Update,
}

fn writes() -> impl Strategy<Value = Vec<Write>> {
    let by = sample::select(vec!["one", "two", "kubectl"]);
    let kind = sample::select(vec![
        Kind::Apply(OnConflict::Refuse),
        Kind::Apply(OnConflict::Force),
        Kind::Update,
    ]);
    let write = (by, text(), kind).prop_map(|(by, text, kind)| Write { by, text, kind });
    collection::vec(write, 1..6)
}

proptest! {
    #[test]
    fn a_document_is_what_its_text_says(texts in collection::vec(text(), 1..4)) {
        let schema = Schema::parse(SCHEMA);
        let mut reader = Reader::new();
        for text in texts {
            let tree = json::parse(text.as_bytes()).unwrap();
            let document = reader.read(text.as_bytes(), schema.typing()).unwrap();
            prop_assert_eq!(written(&document), printed(&tree), "{}", text);
            prop_assert_eq!(printed(&document.clone().into_value()), printed(&tree), "{}", text);
            reader.recycle(document);
        }
    }

    #[test]
    fn writes_of_documents_and_of_trees_come_to_the_same(writes in writes()) {
        let schema = Schema::parse(SCHEMA);
        let versions = OneVersion::new("v1", schema.typing());
        let mut reader = Reader::new();
        let (mut tree, mut document): (Option<Value>, Option<Document<'_>>) = (None, None);
        let mut managers = ManagedFields::new();
        for (now, Write { by, text, kind }) in (0..).zip(writes) {
            let by = Writer { name: by, api_version: "v1", subresource: "" };
            let new_tree = json::parse(text.as_bytes()).unwrap();
            let new = reader.read(text.as_bytes(), schema.typing()).unwrap();
            let live = document.as_ref();
            let (new, after) = match kind {
                Kind::Update => {
                    let of_trees = apply::update(
                        tree.as_ref(), &new_tree, managers.clone(), by, now, &versions);
                    let after = new.update(live, managers, by, now, &versions);
                    prop_assert_eq!(managers_text(&after), managers_text(&of_trees));
                    tree = Some(new_tree);
                    (Some(new), after)
                }
                Kind::Apply(on_conflict) => {
                    let of_trees = apply::apply(
                        tree.as_ref(), new_tree, managers.clone(), by, now, on_conflict, &versions);
                    let of_documents =
                        new.apply(live, managers.clone(), by, now, on_conflict, &versions);
                    match (of_trees, of_documents) {
                        (Ok(trees), Ok((new, after))) => {
                            prop_assert_eq!(managers_text(&after), managers_text(&trees.managers));
                            prop_assert_eq!(new.is_some(), trees.changed());
                            tree = trees.object.or(tree);
                            (new, after)
                        }
                        (Err(trees), Err(documents)) => {
                            prop_assert_eq!(told(&documents), told(&trees));
                            (None, managers)
                        }
                        (trees, documents) => {
                            prop_assert!(false, "{:?}\n{:?}", trees, documents);
                            return Ok(());
                        }
                    }
                }
            };
            managers = after;
            if let Some(new) = new
                && let Some(old) = document.replace(new)
            {
                reader.recycle(old);
            }
            let shown = (document.as_ref().map(written), tree.as_ref().map(printed));
            prop_assert_eq!(shown.0, shown.1);
        }
    }
}

#[test]
fn managed_fields_are_taken_out_of_a_document() {
    let schema = Schema::parse(
        r#"{"fields":{"metadata":{"fields":{"name":"string","managedFields":{"list":"anything"}}}}}"#,
    );
    let fields = r#"[{"manager":"one","operation":"Apply","apiVersion":"v1","time":"2024-05-01T10:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:labels":{"f:a":{}}}}}]"#;
    let spaced = fields.replace(',', ", ").replace("Apply", "\\u0041pply");
    for fields in [fields, &spaced] {
        let text = format!(r#"{{"metadata":{{"name":"x","managedFields":{fields}}}}}"#);
        let mut document = Reader::new()
            .read(text.as_bytes(), schema.typing())
            .unwrap();
        let managers = document.take_managers().unwrap();
        assert_eq!(managers.managers()[0].name, "one");
        assert_eq!(written(&document), r#"{"metadata":{"name":"x"}}"#);
    }
}

#[test]
fn mistakes_in_a_text_are_told_as_ever() {
    let schema = Schema::parse(SCHEMA);
    for text in [
        "",
        "{",
        r#"{"list":[{"a":"x"}"#,
        r#"{"list":[{"a":"x"},]}"#,
        r#"{"list":[{"a":"x",}]}"#,
        r#"{"list":[{"a" "x"}]}"#,
        r#"{"list":[{"b":01}]}"#,
        r#"{"list":[{"b":-}]}"#,
        r#"{"list":[{"c":[tru]}]}"#,
        r#"{"list":["open]}"#,
        "{\"list\":[{\"a\":\"\u{1}\"}]}",
        "{\"text\":\"\u{1}\"}",
        "{\"text\":\"a\n\"}",
        "{\"text\n\":\"a\"}",
        "{\"list\":[{\"a\":\"a\n\"}]}",
        "{\"list\":[{\"a\t\":\"a\"}]}",
        r#"{"text":"\x"}"#,
        r#"{"text":"a"} x"#,
        r#"{"text":"\"#,
    ] {
        let told = json::parse(text.as_bytes()).map(|_| ());
        let mut reader = Reader::new();
        let read = reader.read(text.as_bytes(), schema.typing()).map(|_| ());
        assert!(told.is_err(), "{text}");
        assert_eq!(read, told, "{text}");
    }
}

#[test]
fn a_document_may_be_as_deep_as_any_object() {
    let schema = Schema::parse(SCHEMA);
    for levels in [10, 62, 63, 64, 65, 66, 200, 9_000] {
        for field in ["any", "whole"] {
            let (open, close) = (r#"{"a":"#.repeat(levels), "}".repeat(levels));
            let text = format!(r#"{{"{field}":{open}1{close}}}"#);
            let mut reader = Reader::new();
            let document = reader.read(text.as_bytes(), schema.typing()).unwrap();
            assert_eq!(written(&document), text);
            reader.recycle(document);
        }
    }
}
