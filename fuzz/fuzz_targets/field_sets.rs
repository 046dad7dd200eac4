//! A field set that can be read is printed in one form, and both readers agree on it.
#![no_main]

use apply::{FieldSet, ManagedFields, Style};
use libfuzzer_sys::fuzz_target;
use object::json;

fuzz_target!(|text: &[u8]| {
    let read = FieldSet::from_fields_v1(text);
    if let Ok(tree) = json::parse(text) {
        assert_eq!(read, FieldSet::from_value(&tree));
    }
    if let Ok(set) = read {
        let printed = set.to_fields_v1();
        assert_eq!(FieldSet::from_fields_v1(printed.as_bytes()), Ok(set.clone()));
        assert_eq!(set.union(&set), set);
        assert_eq!(set.intersection(&set), set);
        assert!(set.difference(&set).is_empty());
        assert_eq!(FieldSet::from_paths(set.paths()), set);
    }
    if let Ok(managers) = ManagedFields::parse(text) {
        for style in [Style::Typed, Style::Custom] {
            let mut printed = Vec::new();
            managers.write_json(style, &mut printed);
            assert_eq!(ManagedFields::parse(&printed), Ok(managers.clone()));
        }
    }
});
