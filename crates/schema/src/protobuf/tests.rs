//! Messages by hand, against a small schema that has every layout once.

use object::{Value, value};
use proptest::prelude::*;

use super::*;
use crate::decode::{Blank, normalize};
use crate::{
    Empty, Field, Form, InsteadOfSchema, ListTopology, ListType, MapType, Patch, Scalar, SchemaOr,
    Type, TypeId, Types,
};

fn field(name: &str, ty: TypeId, tag: u32, empty: Empty) -> Field {
    Field {
        name: name.into(),
        ty,
        default: None,
        empty,
        patch: Patch::default(),
        tag,
    }
}

fn scalar(types: &mut Types, scalar: Scalar, form: Form) -> TypeId {
    types.add(Type {
        scalar: Some(scalar),
        form,
        ..Type::default()
    })
}

fn list(types: &mut Types, element: TypeId) -> TypeId {
    types.add(Type {
        list: Some(ListType {
            element,
            topology: ListTopology::Atomic,
        }),
        ..Type::default()
    })
}

fn map(types: &mut Types, mut fields: Vec<Field>, element: Option<TypeId>) -> TypeId {
    fields.sort_by(|left, right| left.name.cmp(&right.name));
    types.add(Type {
        map: Some(MapType {
            fields: fields.into(),
            element,
            atomic: false,
        }),
        ..Type::default()
    })
}

/// A schema with every layout. The plain fields are `plain...`, the others are pointers.
fn schema() -> (Types, TypeId) {
    let mut types = Types::new();
    let types = &mut types;
    let string = scalar(types, Scalar::String, Form::Plain);
    let flag = scalar(types, Scalar::Boolean, Form::Plain);
    let int32 = scalar(types, Scalar::Numeric, Form::Int32);
    let int64 = scalar(types, Scalar::Numeric, Form::Int64);
    let double = scalar(types, Scalar::Numeric, Form::Double);
    let bytes = scalar(types, Scalar::String, Form::Bytes);
    let time = scalar(types, Scalar::Untyped, Form::Time);
    let micro_time = scalar(types, Scalar::Untyped, Form::MicroTime);
    let duration = scalar(types, Scalar::Untyped, Form::Duration);
    let quantity = scalar(types, Scalar::Untyped, Form::Quantity);
    let int_or_string = scalar(types, Scalar::Untyped, Form::IntOrString);
    let fields = scalar(types, Scalar::Untyped, Form::FieldsV1);
    let json = types.add_untyped_atomic();
    let deduced = types.add_untyped_deduced();
    let nothing = map(types, vec![], Some(deduced));
    let strings = list(types, string);
    let numbers = list(types, int64);
    let texts = map(types, vec![], Some(string));
    let lists = map(types, vec![], Some(strings));
    let root = types.add(Type::default());
    let roots = list(types, root);
    let or_bool = types.add(types.get(json).clone());
    let or_list = types.add(types.get(json).clone());
    let or_strings = types.add(types.get(json).clone());
    for (id, other) in [
        (or_bool, InsteadOfSchema::Bool),
        (or_list, InsteadOfSchema::Schemas),
        (or_strings, InsteadOfSchema::Strings),
    ] {
        types.set_schema_or(
            id,
            SchemaOr {
                schema: root,
                other,
            },
        );
    }
    let inner = map(types, vec![field("name", string, 1, Empty::Print)], None);
    let all = map(
        types,
        vec![
            field("apiVersion", string, 0, Empty::Drop),
            field("plainString", string, 1, Empty::Drop),
            field("plainInt", int32, 2, Empty::Drop),
            field("plainBool", flag, 3, Empty::Drop),
            field("plainStruct", inner, 4, Empty::Print),
            field("plainTime", time, 5, Empty::Drop),
            field("string", string, 6, Empty::Keep),
            field("int64", int64, 7, Empty::Keep),
            field("double", double, 8, Empty::Keep),
            field("bytes", bytes, 9, Empty::Drop),
            field("microTime", micro_time, 10, Empty::Keep),
            field("duration", duration, 11, Empty::Keep),
            field("quantity", quantity, 12, Empty::Keep),
            field("intOrString", int_or_string, 13, Empty::Keep),
            field("fields", fields, 14, Empty::Keep),
            field("json", json, 15, Empty::Keep),
            field("nothing", nothing, 16, Empty::Keep),
            field("strings", strings, 17, Empty::Drop),
            field("numbers", numbers, 18, Empty::Drop),
            field("wrapped", strings, 19 | Field::WRAPPED, Empty::Drop),
            field("texts", texts, 20, Empty::Drop),
            field("lists", lists, 21, Empty::Drop),
            field("struct", root, 22, Empty::Keep),
            field("structs", roots, 23, Empty::Drop),
            field("orBool", or_bool, 24, Empty::Keep),
            field("orList", or_list, 25, Empty::Keep),
            field("orStrings", or_strings, 26, Empty::Keep),
            field("embedded", string, 27 << 8 | 2, Empty::Keep),
            field("embeddedPlain", string, 27 << 8 | 1, Empty::Drop),
        ],
        None,
    );
    let all = types.get(all).clone();
    types.set(root, all);
    (types.clone(), root)
}

/// A message without the plain fields that are written always; for comparing one field at a time.
fn written(object: &Value) -> Vec<u8> {
    let (types, root) = schema();
    let mut out = Vec::new();
    encode(&types, root, object, &mut out);
    out
}

fn read(bytes: &[u8]) -> Result<Value, DecodeError> {
    let (types, root) = schema();
    decode(&types, root, bytes)
}

/// What every message of the schema begins and ends with when it holds nothing.
const NOTHING: &[u8] = b"\x0a\x00\x10\x00\x18\x00\x22\x02\x0a\x00\x2a\x00\xda\x01\x02\x0a\x00";
const NOTHING_HEAD: usize = 12;

#[test]
fn plain_fields_are_written_when_they_hold_nothing() {
    assert_eq!(written(&value!({})), NOTHING);
    assert_eq!(read(b"").unwrap(), value!({"plainStruct": {"name": ""}}));
    assert_eq!(read(NOTHING).unwrap(), read(b"").unwrap());
}

#[test]
fn each_layout_has_its_bytes() {
    let cases: &[(Value, &[u8])] = &[
        (value!({"string": ""}), b"\x32\x00"),
        (value!({"string": "a"}), b"\x32\x01a"),
        (value!({"int64": 300}), b"\x38\xac\x02"),
        (
            value!({"int64": (-1)}),
            b"\x38\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        ),
        (value!({"double": 2}), b"\x41\0\0\0\0\0\0\0\x40"),
        (value!({"double": 0.5}), b"\x41\0\0\0\0\0\0\xe0\x3f"),
        (value!({"bytes": "AAE="}), b"\x4a\x02\x00\x01"),
        (
            value!({"microTime": "1970-01-01T00:00:01.000002Z"}),
            b"\x52\x05\x08\x01\x10\xd0\x0f",
        ),
        (
            value!({"microTime": "1969-12-31T23:59:59.000000Z"}),
            b"\x52\x0d\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x10\x00",
        ),
        (value!({"duration": "1ns"}), b"\x5a\x02\x08\x01"),
        (value!({"quantity": "1Gi"}), b"\x62\x05\x0a\x031Gi"),
        (
            value!({"intOrString": 80}),
            b"\x6a\x06\x08\x00\x10\x50\x1a\x00",
        ),
        (
            value!({"intOrString": "a"}),
            b"\x6a\x07\x08\x01\x10\x00\x1a\x01a",
        ),
        (
            value!({"fields": {"f:a": {}}}),
            b"\x72\x0c\x0a\x0a{\"f:a\":{}}",
        ),
        (value!({"json": [1]}), b"\x7a\x05\x0a\x03[1]"),
        (value!({"nothing": {}}), b"\x82\x01\x00"),
        (value!({"strings": ["a", ""]}), b"\x8a\x01\x01a\x8a\x01\x00"),
        (value!({"numbers": [1, 2]}), b"\x90\x01\x01\x90\x01\x02"),
        (
            value!({"wrapped": ["a", "b"]}),
            b"\x9a\x01\x06\x0a\x01a\x0a\x01b",
        ),
        (
            value!({"texts": {"a": "1", "b": ""}}),
            b"\xa2\x01\x06\x0a\x01a\x12\x011\xa2\x01\x05\x0a\x01b\x12\x00",
        ),
        (
            value!({"lists": {"a": ["1", "2"]}}),
            b"\xaa\x01\x0b\x0a\x01a\x12\x06\x0a\x011\x0a\x012",
        ),
        (value!({"orBool": true}), b"\xc2\x01\x02\x08\x01"),
        (value!({"orBool": false}), b"\xc2\x01\x02\x08\x00"),
        (
            value!({"orStrings": ["a", "b"]}),
            b"\xd2\x01\x06\x12\x01a\x12\x01b",
        ),
    ];
    for (object, expected) in cases {
        let bytes = written(object);
        let middle = &bytes[NOTHING_HEAD..bytes.len() - (NOTHING.len() - NOTHING_HEAD)];
        assert_eq!(middle, *expected, "{object:?}");
        let mut printed = object.clone();
        let plain = value!({"name": ""});
        printed
            .as_object_mut()
            .unwrap()
            .insert("plainStruct", plain);
        assert_eq!(read(&bytes), Ok(printed));
    }
}

#[test]
fn structs_embedded_messages_and_schemas_nest() {
    let nothing = read(b"").unwrap();
    let mut inside = vec![0xb2, 0x01, NOTHING.len() as u8];
    inside.extend_from_slice(NOTHING);
    let object = value!({"struct": (nothing.clone())});
    let bytes = written(&object);
    let end = bytes.len() - (NOTHING.len() - NOTHING_HEAD);
    assert_eq!(&bytes[NOTHING_HEAD..end], inside);
    let object = value!({
        "embedded": "e", "embeddedPlain": "p", "plainStruct": {"name": "n"},
        "structs": [(nothing.clone()), (nothing.clone())],
        "orBool": (nothing.clone()), "orList": [(nothing.clone())], "orStrings": (nothing.clone()),
    });
    let bytes = written(&object);
    assert!(bytes.ends_with(b"\xda\x01\x06\x0a\x01p\x12\x01e"));
    assert_eq!(read(&bytes), Ok(object));
}

#[test]
fn apiversion_is_no_part_of_a_message() {
    assert_eq!(written(&value!({"apiVersion": "v1"})), NOTHING);
}

#[test]
fn what_comes_twice_is_merged_or_the_last_one_counts() {
    let cases: &[(&[u8], Value)] = &[
        (b"\x32\x01a\x32\x01b", value!({"string": "b"})),
        (
            // The name of the first struct and the string of the second.
            b"\xb2\x01\x05\x22\x03\x0a\x01n\xb2\x01\x03\x32\x01s",
            value!({"struct": {"plainStruct": {"name": "n"}, "string": "s"}}),
        ),
        (
            b"\xa2\x01\x06\x0a\x01b\x12\x011\xa2\x01\x03\x0a\x01a\xa2\x01\x06\x0a\x01b\x12\x012",
            value!({"texts": {"a": "", "b": "2"}}),
        ),
        // Fields of an embedded message in two pieces, and numbers packed and not.
        (
            b"\xda\x01\x03\x0a\x01a\xda\x01\x03\x12\x01b",
            value!({"embeddedPlain": "a", "embedded": "b"}),
        ),
        (b"\x92\x01\x02\x01\x02\x90\x01\x03", value!({"numbers": [1, 2, 3]})),
        // Items of two lists and pieces of a struct, in turns.
        (
            b"\x8a\x01\x01a\x90\x01\x01\xb2\x01\x03\x32\x01s\x8a\x01\x01b\x90\x01\x02\xb2\x01\x05\x8a\x01\x02cd\
              \x8a\x01\x01c\xb2\x01\x06\x8a\x01\x03efg\x90\x01\x03",
            value!({
                "strings": ["a", "b", "c"], "numbers": [1, 2, 3],
                "struct": {"plainStruct": {"name": ""}, "string": "s", "strings": ["cd", "efg"]},
            }),
        ),
        // Unknown fields of every wire type are left out.
        (
            b"\xa0\x06\x01\xa1\x06\0\0\0\0\0\0\0\0\xa2\x06\x01a\xa3\x06\x08\x01\xa4\x06\xa5\x06\0\0\0\0",
            value!({}),
        ),
        // What is not UTF-8 becomes a replacement character.
        (b"\x32\x01\xff", value!({"string": "\u{fffd}"})),
        (b"\x62\x00", value!({"quantity": "0"})),
        (b"\x62\x07\x0a\x051000m", value!({"quantity": "1"})),
        (b"\x52\x00\x7a\x00", value!({})),
    ];
    for (bytes, expected) in cases {
        let mut expected = expected.clone();
        let plain = value!({"name": ""});
        expected
            .as_object_mut()
            .unwrap()
            .insert("plainStruct", plain);
        assert_eq!(read(bytes).as_ref(), Ok(&expected), "{bytes:x?}");
    }
}

#[test]
fn each_mistake_has_its_words() {
    let cases: &[(&[u8], &str)] = &[
        (b"\x32", "unexpected EOF"),
        (b"\x32\x05a", "unexpected EOF"),
        (b"\x38\x80", "unexpected EOF"),
        (
            b"\x38\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
            "proto: integer overflow",
        ),
        (
            b"\x32\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
            "proto: negative length found during unmarshaling",
        ),
        (b"\x02\x00", "proto: illegal tag 0 (wire type 2)"),
        (b"\x0c", "proto: unexpected end of group"),
        (b"\xa7\x06", "proto: illegal wireType 7"),
        (b"\x30\x01", "proto: wrong wireType = 0 for field string"),
        (b"\x3a\x00", "proto: wrong wireType = 2 for field int64"),
        (
            b"\xb2\x01\x02\x30\x01",
            "proto: wrong wireType = 0 for field string",
        ),
        (
            b"\x62\x03\x0a\x01x",
            "quantities must match the regular expression \
             '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        ),
        (b"\x41\0\0\0\0\0\0\xf8\x7f", "unsupported value: NaN"),
        (b"\x6a\x02\x08\x02", "impossible IntOrString.Type: 2"),
        (
            b"\x7a\x03\x0a\x01{",
            "free-form content is not JSON: unexpected end of JSON input",
        ),
        (b"\x72\x03\x0a\x011", "a field set must be a JSON object"),
        (
            b"\x2a\x08\x08\xff\xff\xff\xff\xff\xff\x01",
            "time is 8796093022207 seconds from 1970, which is outside of the years 0 to 9999",
        ),
    ];
    for (bytes, expected) in cases {
        let error = read(bytes).map_err(|error| error.to_string());
        assert_eq!(error, Err((*expected).to_owned()), "{bytes:x?}");
    }
}

#[test]
fn messages_nest_to_a_limit_and_no_stack_overflows() {
    let nested = |levels: usize| {
        let mut bytes: Vec<u8> = Vec::new();
        for _ in 0..levels {
            let mut outer = vec![0xba, 0x01];
            let mut length = bytes.len();
            while length >= 0x80 {
                outer.push(length as u8 | 0x80);
                length >>= 7;
            }
            outer.push(length as u8);
            outer.append(&mut bytes);
            bytes = outer;
        }
        bytes
    };
    // Each level is a list and an item of it.
    let object = read(&nested(511)).unwrap();
    assert!(read(&written(&object)) == Ok(object));
    let object = read(&nested(512)).unwrap();
    assert!(read(&written(&object)).is_ok());
    assert!(read(&nested(514)) == Err(DecodeError::TooDeep));
}

#[test]
fn an_envelope_is_read_back_as_it_was_written() {
    let mut bytes = Vec::new();
    write_envelope("apps/v1", "Deployment", b"\x0a\x00", &mut bytes);
    let expected: &[u8] =
        b"k8s\0\x0a\x15\x0a\x07apps/v1\x12\x0aDeployment\x12\x02\x0a\x00\x1a\x00\x22\x00";
    assert_eq!(bytes, expected);
    let envelope = Envelope {
        api_version: "apps/v1".into(),
        kind: "Deployment".into(),
        raw: b"\x0a\x00",
        ..Envelope::default()
    };
    assert_eq!(read_envelope(&bytes), Ok(envelope.clone()));
    let other_order = b"k8s\0\x22\x00\x12\x02\x0a\x00\x0a\x15\x12\x0aDeployment\x0a\x07apps/v1";
    assert_eq!(read_envelope(other_order), Ok(envelope));
}

#[test]
fn what_is_no_envelope_is_refused() {
    let cases: &[(&[u8], &str)] = &[
        (b"", "empty data"),
        (
            b"{}",
            "provided data does not appear to be a protobuf message, \
             expected prefix [107 56 115 0]",
        ),
        (b"k8s\0", "empty body"),
        (b"k8s\0\xff\xff", "unexpected EOF"),
        (b"k8s\0\x10\x01", "proto: wrong wireType = 0 for field raw"),
    ];
    for (bytes, expected) in cases {
        let error = read_envelope(bytes).map_err(|error| error.to_string());
        assert_eq!(error.err().as_deref(), Some(*expected), "{bytes:x?}");
    }
}

#[test]
fn lists_and_watch_events_have_their_bytes() {
    let mut bytes = Vec::new();
    let head = ListHead {
        resource_version: "7",
        ..ListHead::default()
    };
    write_list(&head, [b"ab".as_slice(), b""], &mut bytes);
    assert_eq!(
        bytes,
        b"\x0a\x07\x0a\x00\x12\x017\x1a\x00\x12\x02ab\x12\x00"
    );
    bytes.clear();
    let head = ListHead {
        resource_version: "7",
        continue_token: "c",
        remaining_item_count: Some(200),
    };
    write_list(&head, [], &mut bytes);
    assert_eq!(bytes, b"\x0a\x0b\x0a\x00\x12\x017\x1a\x01c\x20\xc8\x01");
    bytes.clear();
    write_watch_frame("ADDED", "v1", "Pod", b"xy", &mut bytes);
    let mut envelope = Vec::new();
    write_envelope("v1", "Pod", b"xy", &mut envelope);
    let mut expected = b"\0\0\0\x22\x0a\x05ADDED\x12\x19\x0a\x17".to_vec();
    expected.append(&mut envelope);
    assert_eq!(bytes, expected);
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused_and_what_is_read_is_written_back(
        bytes in proptest::collection::vec(any::<u8>(), 0..64),
    ) {
        let _ = read_envelope(&bytes);
        if let Ok(object) = read(&bytes) {
            let (types, root) = schema();
            let mut printed = object.clone();
            normalize(&types, root, &mut printed, Blank::AsStored);
            prop_assert_eq!(&printed, &object);
            prop_assert_eq!(read(&written(&object)), Ok(object));
        }
    }

    #[test]
    fn numbers_are_read_back(number in any::<i64>(), double in any::<f64>()) {
        let object = value!({"int64": number});
        let again = read(&written(&object)).unwrap();
        prop_assert_eq!(again.get("int64"), Some(&Value::Int(number)));
        if double.is_finite() {
            let again = read(&written(&value!({"double": double}))).unwrap();
            let again = again.get("double").and_then(Value::as_float);
            prop_assert_eq!(again, Some(double));
        }
    }
}
