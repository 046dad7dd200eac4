//! Files that change under a running server, for better and for worse.

use std::sync::Arc;

use auth::{Anonymous, Attributes, Authenticator, Credentials, Decision, User};
use clap::Parser as _;
use resources::admission::Chain;
use store::{Store, SystemClock};

use super::*;
use crate::arguments::{Arguments, Command};

fn flags(words: &[&str]) -> Identity {
    let words = ["windlass"].iter().chain(words);
    let arguments = Arguments::try_parse_from(words).unwrap();
    match arguments.command() {
        Command::Serve(serve) => serve.identity,
        _ => panic!("it does not serve"),
    }
}

fn resources() -> Resources {
    let chain = Chain::new(&[], &[]).unwrap();
    let store = Store::memory(store::Options::default());
    Resources::new(store, Arc::new(SystemClock), chain)
}

fn file(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("windlass-{name}-{}", std::process::id()))
}

#[tokio::test]
async fn a_good_file_is_taken_over_and_a_broken_one_changes_nothing() {
    let path = file("authorization");
    let write = |kind: &str| {
        let text = format!(
            "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\n\
             authorizers: [{{type: {kind}, name: only}}]\n"
        );
        std::fs::write(&path, text).unwrap();
    };
    write("AlwaysDeny");
    let flags = flags(&["--authorization-config", path.to_str().unwrap()]);
    let resources = resources();
    let modes = crate::identity::modes(&flags, &resources).unwrap();
    let resources = resources.with_authorization(modes);
    let authenticator = Authenticator::new(Vec::new(), Anonymous::Allowed);
    let trust = authenticator.trust();
    let mut files = Files::new(flags, resources.clone(), Vec::new(), trust);
    let jane = User::authenticated("jane", "", &[]);
    let asked = Attributes::Path {
        verb: "get",
        path: "/x",
    };
    let steps = [
        ("", Decision::Deny),
        ("AlwaysAllow", Decision::Allow),
        ("Nobody", Decision::Allow),
        ("AlwaysDeny", Decision::Deny),
    ];
    for (kind, expected) in steps {
        if !kind.is_empty() {
            write(kind);
        }
        files.look();
        let found = resources.authorize(&jane, asked).await.unwrap();
        assert_eq!(found, expected, "{kind}");
    }
    std::fs::remove_file(&path).unwrap();
    files.look();
    let found = resources.authorize(&jane, asked).await.unwrap();
    assert_eq!(found, Decision::Deny, "a file that is gone changes nothing");
}

#[tokio::test]
async fn strangers_are_let_in_as_the_file_says_at_the_moment() {
    let path = file("authentication");
    let write = |rest: &str| {
        let text = format!(
            "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n{rest}\n"
        );
        std::fs::write(&path, text).unwrap();
    };
    write("anonymous: {enabled: false}");
    let flags = flags(&["--authentication-config", path.to_str().unwrap()]);
    let authenticator = Authenticator::new(Vec::new(), Anonymous::Allowed);
    let config = read_authentication(&flags, &path, &std::fs::read(&path).unwrap()).unwrap();
    set_trust(&flags, config, &[], &authenticator.trust()).unwrap();
    let mut files = Files::new(flags, resources(), Vec::new(), authenticator.trust());
    let steps = [
        ("", false, false),
        (
            "anonymous: {enabled: true, conditions: [{path: /livez}]}",
            true,
            false,
        ),
        ("anonymous: {enabled: maybe}", true, false),
        ("anonymous: {enabled: true}", true, true),
    ];
    for (rest, livez, api) in steps {
        if !rest.is_empty() {
            write(rest);
        }
        files.look();
        for (path, expected) in [("/livez", livez), ("/api", api)] {
            let credentials = Credentials {
                path,
                ..Credentials::default()
            };
            let found = authenticator.authenticate(credentials).await.is_ok();
            assert_eq!(found, expected, "{rest} {path}");
        }
    }
    std::fs::remove_file(path).unwrap();
}

#[test]
fn which_flags_exclude_each_other() {
    let cases: [(&[&str], bool); 6] = [
        (&["--authorization-config", "f"], true),
        (
            &[
                "--authorization-config",
                "f",
                "--authorization-mode",
                "RBAC",
            ],
            false,
        ),
        (
            &[
                "--authorization-config",
                "f",
                "--authorization-webhook-version",
                "v1",
            ],
            false,
        ),
        (&["--authentication-config", "f"], true),
        (
            &["--authentication-config", "f", "--oidc-client-id", "x"],
            false,
        ),
        (
            &[
                "--oidc-issuer-url",
                "https://i",
                "--oidc-client-id",
                "x",
                "--oidc-username-prefix",
                "-",
                "--oidc-required-claim",
                "a=b=c",
            ],
            true,
        ),
    ];
    for (words, expected) in cases {
        let words_given = ["windlass"].iter().chain(words);
        let parsed = Arguments::try_parse_from(words_given);
        assert_eq!(parsed.is_ok(), expected, "{words:?}");
    }
}

#[test]
fn an_issuer_described_by_flags_is_one_as_a_file_would_have_it() {
    let issuer = ["--oidc-issuer-url", "https://i"];
    let client = ["--oidc-client-id", "x"];
    let both = [issuer, client].concat();
    let cases: [(Vec<&str>, &str); 5] = [
        (both.clone(), ""),
        (issuer.to_vec(), "must be specified together"),
        (
            vec!["--oidc-groups-claim", "g"],
            "must be specified together",
        ),
        (
            [&both[..], &["--oidc-signing-algs", "none"]].concat(),
            "unsupported signing alg: \"none\"",
        ),
        (
            ["--oidc-issuer-url", "http://i", client[0], client[1]].to_vec(),
            "issuer.url: URL scheme must be https",
        ),
    ];
    for (words, expected) in cases {
        match crate::identity::authentication_config(&flags(&words)) {
            Ok(config) => {
                assert_eq!(expected, "", "{words:?}");
                assert_eq!(config.issuers.len(), 1);
            }
            Err(failure) => {
                let failure = failure.to_string();
                let is_told = !expected.is_empty() && failure.contains(expected);
                assert!(is_told, "{words:?}: {failure}");
            }
        }
    }
}
