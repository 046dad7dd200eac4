//! A document says what the tree of its text says, before and after an apply.
#![no_main]

use apply::{ManagedFields, OnConflict, OneVersion, Reader, Style, Typing, Writer, apply};
use kinds::Catalogue;
use libfuzzer_sys::fuzz_target;
use object::json;

fuzz_target!(|input: (u8, &[u8], &[u8])| {
    let (choice, live, wanted) = input;
    let kinds = Catalogue::builtin().kinds();
    let kind = &kinds[usize::from(choice) % kinds.len()];
    let typing = Typing {
        types: &kind.types,
        root: kind.root,
    };
    let mut reader = Reader::new();
    let (trees, documents) = (
        [live, wanted].map(json::parse),
        [live, wanted].map(|text| reader.read(text, typing)),
    );
    let ([Ok(live), Ok(wanted)], [Ok(live_read), Ok(wanted_read)]) = (trees, documents) else {
        for text in [live, wanted] {
            let (tree, read) = (json::parse(text), reader.read(text, typing));
            assert_eq!(read.map(|_| ()), tree.map(|_| ()));
        }
        return;
    };
    let mut out = Vec::new();
    live_read.write(&mut out);
    assert_eq!(out, json::to_vec(&live));

    let api_version = kind.api_version();
    let versions = OneVersion::new(api_version.clone(), typing);
    let by = Writer {
        name: "fuzz",
        api_version: &api_version,
        subresource: "",
    };
    let (nobody, force) = (ManagedFields::new(), OnConflict::Force);
    let of_trees = apply(Some(&live), wanted, nobody.clone(), by, 1, force, &versions);
    let of_documents = wanted_read.apply(Some(&live_read), nobody, by, 1, force, &versions);
    match (of_trees, of_documents) {
        (Ok(trees), Ok((object, managers))) => {
            let mut texts = [const { Vec::new() }; 2];
            trees.managers.write_json(Style::Typed, &mut texts[0]);
            managers.write_json(Style::Typed, &mut texts[1]);
            assert_eq!(texts[0], texts[1]);
            out.clear();
            object.unwrap_or(live_read).write(&mut out);
            assert_eq!(out, json::to_vec(&trees.object.unwrap_or(live)));
        }
        (Err(trees), Err(documents)) => assert_eq!(documents.to_string(), trees.to_string()),
        (trees, documents) => panic!("{trees:?} but {documents:?}"),
    }
});
