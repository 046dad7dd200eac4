//! No configuration panics; one that was applied can be applied again without a conflict, and
//! what the applier owns is what it asked for.
#![no_main]

use apply::{ManagedFields, OnConflict, OneVersion, Typing, Writer, apply, update};
use kinds::Catalogue;
use libfuzzer_sys::fuzz_target;
use object::json;

fuzz_target!(|input: (u8, &[u8], &[u8], &[u8])| {
    let (choice, live, wanted, managers) = input;
    let (Ok(live), Ok(wanted)) = (json::parse(live), json::parse(wanted)) else {
        return;
    };
    let kinds = Catalogue::builtin().kinds();
    let kind = &kinds[usize::from(choice) % kinds.len()];
    let typing = Typing {
        types: &kind.types,
        root: kind.root,
    };
    let api_version = kind.api_version();
    let versions = OneVersion::new(api_version.clone(), typing);
    let by = Writer {
        name: "fuzz",
        api_version: &api_version,
        subresource: "",
    };
    let managers = ManagedFields::parse(managers).unwrap_or_default();
    let managers = update(None, &live, managers, by, 1, &versions);
    let force = OnConflict::Force;
    let Ok(applied) = apply(Some(&live), wanted.clone(), managers, by, 2, force, &versions) else {
        return;
    };
    let live = applied.object.unwrap_or(live);
    let again = apply(
        Some(&live),
        wanted,
        applied.managers.clone(),
        by,
        3,
        OnConflict::Refuse,
        &versions,
    );
    let again = again.expect("the applier owns what it would change");
    assert!(again.managers.same_owners(&applied.managers));
});
