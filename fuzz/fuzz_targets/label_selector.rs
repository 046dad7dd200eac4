//! A label selector that is accepted prints in a form that reads back as itself.
#![no_main]

use libfuzzer_sys::fuzz_target;
use object::labels::LabelSelector;

fuzz_target!(|text: &str| {
    if let Ok(selector) = LabelSelector::parse(text) {
        let again = LabelSelector::parse(&selector.to_string());
        assert_eq!(again.as_ref(), Ok(&selector));
        let _ = selector.matches(|_| Some("1"));
    }
});
