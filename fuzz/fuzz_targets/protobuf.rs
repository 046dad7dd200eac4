//! What is read of any bytes is written as a message that is read as the same.
#![no_main]

use kinds::Catalogue;
use libfuzzer_sys::fuzz_target;
use schema::protobuf::{decode, encode, read_envelope, write_envelope};

fuzz_target!(|input: (u8, &[u8])| {
    let (choice, bytes) = input;
    if let Ok(envelope) = read_envelope(bytes) {
        let mut again = Vec::new();
        write_envelope(&envelope.api_version, &envelope.kind, envelope.raw, &mut again);
        let again = read_envelope(&again).expect("an envelope that we wrote");
        assert_eq!(again.raw, envelope.raw);
    }
    let kinds = Catalogue::builtin().kinds();
    let kind = &kinds[usize::from(choice) % kinds.len()];
    let Ok(object) = decode(&kind.types, kind.root, bytes) else {
        return;
    };
    let mut written = Vec::new();
    encode(&kind.types, kind.root, &object, &mut written);
    assert_eq!(decode(&kind.types, kind.root, &written), Ok(object));
});
