//! A field selector that is accepted prints in a form that selects the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use object::fields::FieldSelector;

fuzz_target!(|text: &str| {
    if let Ok(selector) = FieldSelector::parse(text) {
        let again = FieldSelector::parse(&selector.to_string()).expect("printed by us");
        // Terms are sorted as they are written, so printing may change their order.
        let (mut before, mut after) = (
            Vec::from_iter(selector.terms()),
            Vec::from_iter(again.terms()),
        );
        before.sort();
        after.sort();
        assert_eq!(before, after);
    }
});
