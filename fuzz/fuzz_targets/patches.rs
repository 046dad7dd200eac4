//! No patch of any type panics, and a merge patch that applied once changes nothing more.
#![no_main]

use apply::patch::json_patch::JsonPatch;
use apply::patch::{go_text, merge_patch, strategic};
use kinds::Catalogue;
use libfuzzer_sys::fuzz_target;
use object::json;

fuzz_target!(|texts: (&[u8], &[u8])| {
    let (Ok(document), Ok(patch)) = (json::parse(texts.0), json::parse(texts.1)) else {
        return;
    };
    let _ = go_text(&patch);
    if let Ok(patch) = merge_patch::check(&patch) {
        let once = merge_patch::apply(document.clone(), patch);
        assert_eq!(merge_patch::apply(once.clone(), patch), once);
    }
    let pod = Catalogue::builtin()
        .by_kind("", "v1", "Pod")
        .expect("pods are in the catalogue");
    let _ = strategic::apply(&pod.types, pod.root, document.clone(), &patch);
    if let Ok(patch) = JsonPatch::read(patch) {
        let _ = patch.apply(document);
    }
});
