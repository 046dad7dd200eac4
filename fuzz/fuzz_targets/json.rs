//! JSON that is accepted is written in a form that reads back as the same, by every reader.
#![no_main]

use libfuzzer_sys::fuzz_target;
use object::{Value, json};

fuzz_target!(|text: &[u8]| {
    let lenient = json::parse(text);
    let strict = json::parse_strict(text);
    let merged = json::parse_merging(text);
    let Ok(value) = lenient else {
        assert_eq!(strict.map(|(value, _)| value), lenient);
        assert!(merged.is_err());
        return;
    };
    let (strict, duplicates) = strict.expect("accepted by the lenient reader");
    let (merged, _) = merged.expect("accepted by the lenient reader");
    assert_eq!(json::to_vec(&strict), json::to_vec(&value));
    if duplicates.is_empty() {
        assert_eq!(json::to_vec(&merged), json::to_vec(&value));
    }
    // A float without a fraction is written as an integer, so it takes a second round to settle.
    let compact = json::to_vec(&value);
    let again = json::parse(&compact).expect("written by us");
    assert_eq!(json::to_vec(&again), compact_of(&again));
    assert_eq!(json::parse(&json::to_vec(&again)).as_ref(), Ok(&again));
    let mut indented = Vec::new();
    json::pretty(&compact, &mut indented);
    assert_eq!(json::parse(&indented).as_ref(), Ok(&again));
});

/// The compact form, made from the indented one.
fn compact_of(value: &Value) -> Vec<u8> {
    let mut indented = Vec::new();
    json::pretty(&json::to_vec(value), &mut indented);
    json::to_vec(&json::parse(&indented).expect("indented by us"))
}
