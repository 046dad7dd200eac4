//! What a typed kind prints, it reads back as the same, without unknown fields.
#![no_main]

use kinds::Catalogue;
use libfuzzer_sys::fuzz_target;
use object::json;
use schema::decode::{Blank, Unknown, decode, in_document_order, normalize};

fuzz_target!(|input: (u8, &[u8])| {
    let (choice, text) = input;
    let Ok((body, _)) = json::parse_strict(text) else {
        return;
    };
    let kinds = Catalogue::builtin().kinds();
    let kind = &kinds[usize::from(choice) % kinds.len()];
    let Ok((printed, reports)) = decode(&kind.types, kind.root, body, Unknown::Report) else {
        return;
    };
    let count = reports.len();
    assert_eq!(in_document_order(text, reports).len(), count);
    let again = decode(&kind.types, kind.root, printed.clone(), Unknown::Report);
    assert_eq!(again, Ok((printed.clone(), Vec::new())));
    let mut normal = printed.clone();
    normalize(&kind.types, kind.root, &mut normal, Blank::AsRead);
    assert_eq!(normal, printed);
});
