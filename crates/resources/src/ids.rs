//! Randomness: object uids, request ids and the tails of generated names.

use std::cell::RefCell;

/// The letters of generated names: no vowels, nothing that looks like something else.
const SUFFIX_LETTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
const SUFFIX_LEN: usize = 5;
const GENERATED_BASE_MAX: usize = 63 - SUFFIX_LEN;
const POOL_BYTES: usize = 1024;

thread_local! {
    /// Asking the system for every id costs more than the rest of a small request.
    static POOL: RefCell<(usize, [u8; POOL_BYTES])> =
        const { RefCell::new((POOL_BYTES, [0; POOL_BYTES])) };
}

fn random<const N: usize>() -> [u8; N] {
    POOL.with_borrow_mut(|(used, pool)| {
        if *used + N > POOL_BYTES {
            getrandom::fill(pool).expect("the system gives random bytes");
            *used = 0;
        }
        let mut out = [0; N];
        out.copy_from_slice(&pool[*used..*used + N]);
        *used += N;
        out
    })
}

/// A random UUID of version 4.
pub fn uuid() -> String {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let mut bytes: [u8; 16] = random();
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let mut out = String::with_capacity(36);
    for (at, byte) in bytes.iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            out.push('-');
        }
        out.push(HEX[usize::from(byte >> 4)] as char);
        out.push(HEX[usize::from(byte & 15)] as char);
    }
    out
}

/// A name made of `base`, cut to leave room, and five random letters.
pub(crate) fn generated_name(base: &str) -> String {
    let mut end = base.len().min(GENERATED_BASE_MAX);
    while !base.is_char_boundary(end) {
        end -= 1;
    }
    let mut name = base[..end].to_owned();
    for byte in random::<SUFFIX_LEN>() {
        name.push(SUFFIX_LETTERS[usize::from(byte) % SUFFIX_LETTERS.len()] as char);
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_has_version_four_and_its_variant() {
        for _ in 0..1000 {
            let id = uuid();
            assert_eq!(id.len(), 36);
            assert_eq!(&id[14..15], "4");
            assert!("89ab".contains(&id[19..20]), "{id}");
        }
        assert_ne!(uuid(), uuid());
    }

    #[test]
    fn a_generated_name_fits_a_label() {
        let name = generated_name(&"a".repeat(100));
        assert_eq!(name.len(), 63);
        assert!(generated_name("job-").starts_with("job-"));
    }
}
