//! Keys as OpenSSL writes them; they guard nothing.

use super::*;

macro_rules! file {
    ($name:literal) => {
        include_bytes!(concat!("testdata/", $name, ".pem")).as_slice()
    };
}

const RSA_ID: &str = "MHgU1caO1F9AUi4qWuBI2p4EjlvC_3kK6IIom3PbfoA";
const P256_ID: &str = "oYLfbrU70YtOr62aT-z2RtvQNp8Km7KKw3qOSKgt2Yw";

#[test]
fn every_form_of_a_key_is_the_same_key() {
    let cases = [
        (file!("rsa-pkcs8"), RSA_ID),
        (file!("rsa-pkcs1"), RSA_ID),
        (file!("rsa-public"), RSA_ID),
        (file!("rsa-public-pkcs1"), RSA_ID),
        (file!("p256-sec1"), P256_ID),
        (file!("p256-public"), P256_ID),
    ];
    for (place, (text, id)) in cases.into_iter().enumerate() {
        let keys = PublicKey::all_from_pem(text).unwrap();
        assert_eq!(keys.len(), 1);
        assert_eq!(keys[0].id, id, "case {place}");
    }
    let sec1 = PublicKey::all_from_pem(file!("p384-sec1")).unwrap();
    assert_eq!(sec1, PublicKey::all_from_pem(file!("p384-pkcs8")).unwrap());
    let several = [file!("rsa-public"), file!("p256-sec1")].concat();
    assert_eq!(PublicKey::all_from_pem(&several).unwrap().len(), 2);
}

#[test]
fn what_a_key_signs_it_verifies_and_others_do_not() {
    let keys = [file!("rsa-pkcs8"), file!("p256-sec1"), file!("p384-sec1")];
    let keys = keys.map(|text| SigningKey::from_pem(text).unwrap());
    for (place, key) in keys.iter().enumerate() {
        let signature = key.sign(b"message").unwrap();
        for (other_place, other) in keys.iter().enumerate() {
            let verified = other
                .public()
                .verify(key.algorithm(), b"message", &signature);
            assert_eq!(verified, place == other_place);
        }
        assert!(!key.public().verify(key.algorithm(), b"massage", &signature));
        for algorithm in ["none", "HS256", "", "ES512", "RS384"] {
            assert!(!key.public().verify(algorithm, b"message", &signature));
        }
    }
}

#[test]
fn a_made_key_is_read_back() {
    let (key, text) = SigningKey::generate();
    assert_eq!(key.algorithm(), "ES256");
    let again = SigningKey::from_pem(text.as_bytes()).unwrap();
    assert_eq!(again.public(), key.public());
}

#[test]
fn a_key_survives_a_key_set() {
    for text in [file!("rsa-pkcs8"), file!("p256-sec1"), file!("p384-sec1")] {
        let key = SigningKey::from_pem(text).unwrap();
        let mut jwk = String::new();
        key.public().write_jwk(&mut jwk);
        let document = format!(r#"{{"keys":[{jwk},{{"kty":"oct"}},{{"kty":"RSA","use":"enc"}}]}}"#);
        let read = from_jwks(&object::json::parse(document.as_bytes()).unwrap());
        assert_eq!(read.len(), 1);
        let signature = key.sign(b"m").unwrap();
        assert!(read[0].verify(key.algorithm(), b"m", &signature));
        assert_eq!(read[0].id, key.public().id);
    }
}

#[test]
fn text_without_a_key_is_refused() {
    assert!(SigningKey::from_pem(b"").is_err());
    assert!(SigningKey::from_pem(file!("rsa-public")).is_err());
    assert!(PublicKey::all_from_pem(b"-----BEGIN PUBLIC KEY-----\nAAAA\n").is_err());
    let damaged = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
    assert!(SigningKey::from_pem(damaged.as_bytes()).is_err());
}
