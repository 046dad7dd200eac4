//! YAML that is accepted is written in a form that reads back as the same, and JSON is YAML.
#![no_main]

use libfuzzer_sys::fuzz_target;
use object::{Value, json, yaml};

fuzz_target!(|text: &[u8]| {
    let lenient = yaml::parse(text);
    let strict = yaml::parse_strict(text);
    assert_eq!(strict.map(|(value, _)| value), lenient);
    if let Ok(value) = lenient {
        let written = yaml::to_string(&value);
        let again = yaml::parse(written.as_bytes());
        assert_eq!(again.as_ref(), Ok(&value), "{written}");
    }
    if let Ok(value @ Value::Object(_)) = json::parse(text) {
        let written = json::to_vec(&value);
        let again = yaml::parse(&written).expect("written by us");
        assert_eq!(
            json::to_vec(&again),
            json::to_vec(&json::parse(&written).expect("ours"))
        );
    }
});
