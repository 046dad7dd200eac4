//! The ciphers of data at rest: one key each, one message a call.
//!
//! Contract: `storage/value/encrypt` of the API server. What is written is a random nonce and the
//! ciphertext; where the cipher takes it, the storage key is authenticated with it, so that a
//! record cannot be put in the place of another.

use aes::cipher::block_padding::Pkcs7;
use aes::cipher::{
    BlockModeDecrypt as _, BlockModeEncrypt as _, KeyIvInit as _, StreamCipher as _,
};
use aes::{Aes128, Aes192, Aes256};
use aes_gcm::aead::consts::U12;
use aes_gcm::aead::{Aead as _, KeyInit as _, Payload};
use aes_gcm::{Aes128Gcm, Aes256Gcm, AesGcm};
use poly1305::Poly1305;
use salsa20::XSalsa20;

const GCM_NONCE_BYTES: usize = 12;
const CBC_IV_BYTES: usize = 16;
const BOX_NONCE_BYTES: usize = 24;
const TAG_BYTES: usize = 16;

/// A cipher with its key.
pub(super) enum Cipher {
    Gcm128(Box<Aes128Gcm>),
    Gcm192(Box<AesGcm<Aes192, U12>>),
    Gcm256(Box<Aes256Gcm>),
    /// AES in CBC mode with its key of 16, 24 or 32 bytes.
    Cbc(Vec<u8>),
    Box([u8; 32]),
}

/// Which cipher a provider uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// AES in Galois/counter mode.
    AesGcm,
    /// AES in CBC mode: not authenticated, for records that were written so.
    AesCbc,
    /// XSalsa20 and Poly1305.
    Secretbox,
}

impl Kind {
    /// The name in files and prefixes.
    pub fn name(self) -> &'static str {
        match self {
            Kind::AesGcm => "aesgcm",
            Kind::AesCbc => "aescbc",
            Kind::Secretbox => "secretbox",
        }
    }
}

impl Cipher {
    /// A cipher; tells which lengths of keys there are if this one is wrong.
    pub(super) fn new(kind: Kind, key: &[u8]) -> Result<Cipher, &'static str> {
        match (kind, key.len()) {
            (Kind::AesGcm, 16) => Aes128Gcm::new_from_slice(key)
                .map(|cipher| Cipher::Gcm128(Box::new(cipher)))
                .map_err(|_| AES_KEYS),
            (Kind::AesGcm, 24) => AesGcm::new_from_slice(key)
                .map(|cipher| Cipher::Gcm192(Box::new(cipher)))
                .map_err(|_| AES_KEYS),
            (Kind::AesGcm, 32) => Aes256Gcm::new_from_slice(key)
                .map(|cipher| Cipher::Gcm256(Box::new(cipher)))
                .map_err(|_| AES_KEYS),
            (Kind::AesCbc, 16 | 24 | 32) => Ok(Cipher::Cbc(key.to_vec())),
            (Kind::AesGcm | Kind::AesCbc, _) => Err(AES_KEYS),
            (Kind::Secretbox, _) => key.try_into().map(Cipher::Box).map_err(|_| "32"),
        }
    }

    /// Appends a nonce and the ciphertext.
    pub(super) fn seal(&self, plain: &[u8], place: &[u8], out: &mut Vec<u8>) {
        match self {
            Cipher::Gcm128(cipher) => seal_gcm(&**cipher, plain, place, out),
            Cipher::Gcm192(cipher) => seal_gcm(&**cipher, plain, place, out),
            Cipher::Gcm256(cipher) => seal_gcm(&**cipher, plain, place, out),
            Cipher::Cbc(key) => seal_cbc(key, plain, out),
            Cipher::Box(key) => seal_box(key, plain, out),
        }
    }

    /// The plaintext; `None` if the key is another or the bytes were changed.
    pub(super) fn open(&self, sealed: &[u8], place: &[u8]) -> Option<Vec<u8>> {
        match self {
            Cipher::Gcm128(cipher) => open_gcm(&**cipher, sealed, place),
            Cipher::Gcm192(cipher) => open_gcm(&**cipher, sealed, place),
            Cipher::Gcm256(cipher) => open_gcm(&**cipher, sealed, place),
            Cipher::Cbc(key) => open_cbc(key, sealed),
            Cipher::Box(key) => open_box(key, sealed),
        }
    }
}

const AES_KEYS: &str = "16, 24 or 32";

fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the system gives random bytes");
    bytes
}

fn seal_gcm<B>(cipher: &AesGcm<B, U12>, plain: &[u8], place: &[u8], out: &mut Vec<u8>)
where
    AesGcm<B, U12>: aes_gcm::aead::Aead + aes_gcm::aead::AeadCore<NonceSize = U12>,
{
    let nonce: [u8; GCM_NONCE_BYTES] = random();
    let payload = Payload {
        msg: plain,
        aad: place,
    };
    let sealed = cipher.encrypt(&nonce.into(), payload);
    out.extend_from_slice(&nonce);
    out.extend_from_slice(&sealed.expect("a record is far below the limit of the cipher"));
}

fn open_gcm<B>(cipher: &AesGcm<B, U12>, sealed: &[u8], place: &[u8]) -> Option<Vec<u8>>
where
    AesGcm<B, U12>: aes_gcm::aead::Aead + aes_gcm::aead::AeadCore<NonceSize = U12>,
{
    let (nonce, sealed) = sealed.split_first_chunk::<GCM_NONCE_BYTES>()?;
    let payload = Payload {
        msg: sealed,
        aad: place,
    };
    cipher.decrypt(&(*nonce).into(), payload).ok()
}

fn seal_cbc(key: &[u8], plain: &[u8], out: &mut Vec<u8>) {
    let iv: [u8; CBC_IV_BYTES] = random();
    out.extend_from_slice(&iv);
    let right = "the length was checked with the configuration";
    let sealed = match key.len() {
        16 => cbc::Encryptor::<Aes128>::new_from_slices(key, &iv)
            .expect(right)
            .encrypt_padded_vec::<Pkcs7>(plain),
        24 => cbc::Encryptor::<Aes192>::new_from_slices(key, &iv)
            .expect(right)
            .encrypt_padded_vec::<Pkcs7>(plain),
        _ => cbc::Encryptor::<Aes256>::new_from_slices(key, &iv)
            .expect(right)
            .encrypt_padded_vec::<Pkcs7>(plain),
    };
    out.extend_from_slice(&sealed);
}

fn open_cbc(key: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
    let (iv, sealed) = sealed.split_first_chunk::<CBC_IV_BYTES>()?;
    match key.len() {
        16 => cbc::Decryptor::<Aes128>::new_from_slices(key, iv)
            .ok()?
            .decrypt_padded_vec::<Pkcs7>(sealed)
            .ok(),
        24 => cbc::Decryptor::<Aes192>::new_from_slices(key, iv)
            .ok()?
            .decrypt_padded_vec::<Pkcs7>(sealed)
            .ok(),
        _ => cbc::Decryptor::<Aes256>::new_from_slices(key, iv)
            .ok()?
            .decrypt_padded_vec::<Pkcs7>(sealed)
            .ok(),
    }
}

/// The stream and the key of the tag, which is the stream's first block.
fn open_stream(key: &[u8; 32], nonce: &[u8; BOX_NONCE_BYTES]) -> (XSalsa20, Poly1305) {
    let mut stream = XSalsa20::new(key.into(), nonce.into());
    let mut first = [0; 32];
    stream.apply_keystream(&mut first);
    (stream, Poly1305::new(&first.into()))
}

fn seal_box(key: &[u8; 32], plain: &[u8], out: &mut Vec<u8>) {
    let nonce: [u8; BOX_NONCE_BYTES] = random();
    let (mut stream, tag) = open_stream(key, &nonce);
    out.extend_from_slice(&nonce);
    let start = out.len();
    out.extend_from_slice(&[0; TAG_BYTES]);
    out.extend_from_slice(plain);
    let sealed = &mut out[start + TAG_BYTES..];
    stream.apply_keystream(sealed);
    let tag = tag.compute_unpadded(sealed);
    out[start..start + TAG_BYTES].copy_from_slice(&tag);
}

fn open_box(key: &[u8; 32], sealed: &[u8]) -> Option<Vec<u8>> {
    let (nonce, sealed) = sealed.split_first_chunk::<BOX_NONCE_BYTES>()?;
    let (tag, sealed) = sealed.split_first_chunk::<TAG_BYTES>()?;
    let (mut stream, mac) = open_stream(key, nonce);
    let actual = mac.compute_unpadded(sealed);
    // No byte decides before all are compared: the time tells nothing.
    let difference = actual
        .iter()
        .zip(tag)
        .fold(0, |difference, (one, other)| difference | (one ^ other));
    if difference != 0 {
        return None;
    }
    let mut plain = sealed.to_vec();
    stream.apply_keystream(&mut plain);
    Some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KINDS: [(Kind, usize); 7] = [
        (Kind::AesGcm, 16),
        (Kind::AesGcm, 24),
        (Kind::AesGcm, 32),
        (Kind::AesCbc, 16),
        (Kind::AesCbc, 24),
        (Kind::AesCbc, 32),
        (Kind::Secretbox, 32),
    ];

    #[test]
    fn what_is_sealed_is_opened_by_the_same_key_alone() {
        for (kind, length) in KINDS {
            let cipher = Cipher::new(kind, &vec![7; length]).unwrap();
            let other = Cipher::new(kind, &vec![8; length]).unwrap();
            for plain in [&b""[..], b"a", &[3; 1000]] {
                let (mut one, mut two) = (Vec::new(), Vec::new());
                cipher.seal(plain, b"here", &mut one);
                cipher.seal(plain, b"here", &mut two);
                assert_ne!(one, two, "{kind:?}: a nonce came twice");
                assert_eq!(
                    cipher.open(&one, b"here").as_deref(),
                    Some(plain),
                    "{kind:?}"
                );
                assert_ne!(
                    other.open(&one, b"here").as_deref(),
                    Some(plain),
                    "{kind:?}"
                );
            }
        }
    }

    #[test]
    fn authenticated_bytes_cannot_be_changed_or_cut() {
        for kind in [Kind::AesGcm, Kind::Secretbox] {
            let cipher = Cipher::new(kind, &[7; 32]).unwrap();
            let mut sealed = Vec::new();
            cipher.seal(b"value", b"here", &mut sealed);
            for place in 0..sealed.len() {
                let mut changed = sealed.clone();
                changed[place] ^= 1;
                assert_eq!(cipher.open(&changed, b"here"), None, "{kind:?} {place}");
                assert_eq!(
                    cipher.open(&sealed[..place], b"here"),
                    None,
                    "{kind:?} {place}"
                );
            }
        }
        let cipher = Cipher::new(Kind::AesGcm, &[7; 32]).unwrap();
        let mut sealed = Vec::new();
        cipher.seal(b"value", b"here", &mut sealed);
        assert_eq!(cipher.open(&sealed, b"elsewhere"), None);
    }

    /// The known answer of NaCl's `crypto_secretbox`: key, nonce, message and tag of its tests.
    #[test]
    fn a_box_is_the_one_that_others_open() {
        let hex = |text: &str| -> Vec<u8> {
            let byte = |at| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
            (0..text.len()).step_by(2).map(byte).collect()
        };
        let key = hex("1b27556473e985d462cd51197a9a46c76009549eac6474f206c4ee0844f68389");
        let nonce = hex("69696ee955b62b73cd62bda875fc73d68219e0036b7a0b37");
        let boxed = [
            "f3ffc7703f9400e52a7dfb4b3d3305d98e993b9f48681273c29650ba32fc76ce48332ea7164d96a4",
            "476fb8c531a1186ac0dfc17c98dce87b4da7f011ec48c97271d2c20f9b928fe2270d6fb863d51738",
            "b48eeee314a7cc8ab932164548e526ae90224368517acfeabd6bb3732bc0e9da99832b61ca01b6de",
            "56244a9e88d5f9b37973f622a43d14a6599b1f654cb45a74e355a5",
        ];
        let plain = [
            "be075fc53c81f2d5cf141316ebeb0c7b5228c52a4c62cbd44b66849b64244ffce5ecbaaf33bd751a",
            "1ac728d45e6c61296cdc3c01233561f41db66cce314adb310e3be8250c46f06dceea3a7fa1348057",
            "e2f6556ad6b1318a024a838f21af1fde048977eb48f59ffd4924ca1c60902e52f0a089bc76897040",
            "e082f937763848645e0705",
        ];
        let sealed = [nonce, hex(&boxed.concat())].concat();
        let cipher = Cipher::new(Kind::Secretbox, &key).unwrap();
        assert_eq!(cipher.open(&sealed, b""), Some(hex(&plain.concat())));
    }

    #[test]
    fn keys_have_their_lengths() {
        for (kind, length) in [(Kind::AesGcm, 31), (Kind::AesCbc, 0), (Kind::Secretbox, 16)] {
            assert!(
                Cipher::new(kind, &vec![0; length]).is_err(),
                "{kind:?} {length}"
            );
        }
    }
}
