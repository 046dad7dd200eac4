//! Which records are encrypted, with which key, and who can read them.

use super::*;

const ONE: &str = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=";
const TWO: &str = "MTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTI=";
const SECRETS: &str = "/registry/secrets/";

fn config(rules: &str) -> Result<Arc<Encryption>, String> {
    let text = format!(
        "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n{rules}"
    );
    Encryption::parse(text.as_bytes()).map_err(|error| error.to_string())
}

fn providers(resources: &str, providers: &str) -> Arc<Encryption> {
    config(&format!(
        "- resources: [{resources}]\n  providers: [{providers}]\n"
    ))
    .unwrap()
}

fn key(cipher: &str, name: &str, secret: &str) -> String {
    format!("{{{cipher}: {{keys: [{{name: {name}, secret: {secret}}}]}}}}")
}

/// A record: only such are given to the store.
fn record() -> Vec<u8> {
    let catalogue = Catalogue::builtin();
    let kind = catalogue.resource("", "v1", "secrets").unwrap();
    let object = object::value!({"metadata": {"name": "s"}, "data": {"k": "dmFsdWU="}});
    crate::record::encode(kind, object.as_object().unwrap(), b"").to_vec()
}

#[test]
fn every_cipher_writes_its_prefix_and_reads_it_back() {
    let plain = record();
    for cipher in ["aesgcm", "aescbc", "secretbox"] {
        let encryption = providers("secrets", &key(cipher, "one", ONE));
        let sealed = encryption.seal(SECRETS, "ns/s", &plain).unwrap();
        let prefix = format!("k8s:enc:{cipher}:v1:one:");
        assert!(sealed.starts_with(prefix.as_bytes()), "{cipher}");
        let opened = encryption.open(SECRETS, "ns/s", &sealed).unwrap();
        assert_eq!((&*opened.value, opened.stale), (&*plain, false), "{cipher}");
        let other = providers("secrets", &key(cipher, "one", TWO));
        let error = other.open(SECRETS, "ns/s", &sealed).unwrap_err();
        assert!(
            error.contains(&format!("the key \"one\" of {cipher}")),
            "{error}"
        );
    }
}

#[test]
fn the_first_key_writes_and_all_keys_read() {
    let plain = record();
    let old = providers("secrets", &key("aesgcm", "old", ONE));
    let sealed = old.seal(SECRETS, "ns/s", &plain).unwrap();
    let both = format!(
        "{}, {}, identity: {{}}",
        key("secretbox", "new", TWO),
        key("aesgcm", "old", ONE)
    );
    let both = both.replace(", identity: {}", ", {identity: {}}");
    let both = providers("secrets", &both);
    let opened = both.open(SECRETS, "ns/s", &sealed).unwrap();
    assert_eq!((&*opened.value, opened.stale), (&*plain, true));
    let plain_too = both.open(SECRETS, "ns/s", &plain).unwrap();
    assert!(plain_too.stale);
    let again = both.seal(SECRETS, "ns/s", &plain).unwrap();
    assert!(again.starts_with(b"k8s:enc:secretbox:v1:new:"));
    assert!(!both.open(SECRETS, "ns/s", &again).unwrap().stale);
}

#[test]
fn a_record_in_the_place_of_another_is_refused() {
    let encryption = providers("secrets", &key("aesgcm", "one", ONE));
    let sealed = encryption.seal(SECRETS, "ns/s", &record()).unwrap();
    assert!(encryption.open(SECRETS, "ns/other", &sealed).is_err());
}

#[test]
fn what_is_encrypted_is_never_taken_for_plain() {
    let plain = record();
    let sealed = providers("secrets", &key("aesgcm", "one", ONE))
        .seal(SECRETS, "ns/s", &plain)
        .unwrap();
    for encryption in [Encryption::none(), providers("secrets", "{identity: {}}")] {
        assert!(encryption.open(SECRETS, "ns/s", &sealed).is_err());
        assert_eq!(encryption.seal(SECRETS, "ns/s", &plain), None);
    }
    // And without identity nothing plain is read.
    let strict = providers("secrets", &key("aesgcm", "one", ONE));
    let error = strict.open(SECRETS, "ns/s", &plain).unwrap_err();
    assert!(error.contains("it is not encrypted"), "{error}");
}

#[test]
fn which_resources_are_meant() {
    let meant = [
        ("secrets", SECRETS, true),
        ("secrets", "/registry/configmaps/", false),
        ("deployments.apps", "/registry/deployments/", true),
        ("\"*.apps\"", "/registry/deployments/", true),
        ("\"*.apps\"", SECRETS, false),
        ("\"*.\"", SECRETS, true),
        ("\"*.\"", "/registry/deployments/", false),
        ("\"*.*\"", "/registry/deployments/", true),
        (
            "widgets.example.com",
            "/registry/example.com/widgets/",
            true,
        ),
        ("\"*.example.com\"", "/registry/example.com/widgets/", true),
    ];
    for (resources, collection, expected) in meant {
        let encryption = providers(resources, &key("aesgcm", "one", ONE));
        let sealed = encryption.seal(collection, "n", &record());
        assert_eq!(sealed.is_some(), expected, "{resources} {collection}");
    }
}

#[test]
fn mistakes_are_named_without_the_secret() {
    let cases = [
        (
            "- {resources: [secrets], providers: []}",
            "resources[0].providers: at least one",
        ),
        (
            "- {resources: [], providers: [{identity: {}}]}",
            "resources[0].resources: at least one",
        ),
        (
            "- {resources: [\"*\"], providers: [{identity: {}}]}",
            "* is ambiguous",
        ),
        (
            "- {resources: [a], providers: [{kms: {}}]}",
            "are not supported",
        ),
        (
            "- {resources: [a], providers: [{rot13: {}}]}",
            "there is no such provider",
        ),
        (
            "- {resources: [a], provider: []}",
            "resources[0].provider is unknown",
        ),
        (
            "- {resources: [a], providers: [{aesgcm: {keys: [{name: a, secret: c2hvcnQ=}]}}]}",
            "secret is 5 bytes long, it has to be 16, 24 or 32",
        ),
        (
            "- {resources: [a], providers: [{aesgcm: {keys: [{name: \"a:b\", secret: aa}]}}]}",
            "holds a colon",
        ),
    ];
    for (rules, expected) in cases {
        let error = config(rules).map(|_| ()).unwrap_err();
        assert!(error.contains(expected), "{rules}: {error}");
        assert!(!error.contains("c2hvcnQ="), "{error}");
    }
}

#[test]
fn a_generated_configuration_works() {
    let names = ["secrets".to_owned(), "*.apps".to_owned()];
    for kind in [Kind::AesGcm, Kind::Secretbox] {
        let text = Encryption::generate(kind, "key1", &names);
        let encryption = Encryption::parse(text.as_bytes()).unwrap();
        let plain = record();
        let sealed = encryption.seal(SECRETS, "ns/s", &plain).unwrap();
        assert_eq!(
            &*encryption.open(SECRETS, "ns/s", &sealed).unwrap().value,
            &*plain
        );
        assert!(encryption.open(SECRETS, "ns/s", &plain).unwrap().stale);
    }
}
