//! How long it takes to know a user and to decide what they may do.
//!
//! `cargo bench -p windlass-auth`. The user comes with a service account's token and holds fifty
//! bindings, of which the last one allows what is asked; 10,000 roles and bindings of others lie
//! beside. Each line gives the best of thirty runs, because anything else measures the machine's
//! other work.

#![allow(clippy::print_stdout, reason = "the figures are what it is for")]

use std::hint::black_box;
use std::time::Instant;

use auth::{
    Aggregation, Anonymous, Attributes, Authenticator, Binding, Change, Claims, Credentials,
    Decision, Issuer, IssuerOptions, Lifetime, Named, Presented, PublicKey, Role, RoleRef, Rule,
    Rules, SigningKey, StaticTokens, Subject, User,
};
use windlass_auth as auth;

const RUNS: usize = 30;
const OWN_BINDINGS: usize = 50;
const OTHERS: usize = 10_000;
const NOW: i64 = 1_700_000_000;

fn main() {
    let token = measure_first();
    let jane = User::authenticated("jane", "", &["a", "b", "c"]);
    let audiences = vec!["api".into()];
    let tokens = StaticTokens::new([(token.clone(), jane.clone())], &audiences);
    let known = Authenticator::new(audiences, Anonymous::Allowed).with_tokens(tokens);
    let header = format!("Bearer {token}");
    let credentials = Credentials {
        authorization: Some(&header),
        path: "/",
        now: NOW,
        ..Credentials::default()
    };
    let few = rules(0);
    let many = rules(OTHERS);
    let asked = Attributes::Resource {
        verb: "get",
        group: "g49",
        resource: "r49",
        namespace: "default",
        name: "x",
    };
    let refused = asked.with_verb("delete");
    bench("known token to user", 1000, || {
        at_once(known.authenticate(credentials)).is_ok()
    });
    bench("allowed by the last of 50 bindings", 1000, || {
        few.authorize(&jane, asked) == Decision::Allow
    });
    bench("the same beside 10,000 others", 1000, || {
        many.authorize(&jane, asked) == Decision::Allow
    });
    bench("refused by 50 bindings, beside 10,000 others", 1000, || {
        many.authorize(&jane, refused) == Decision::Deny
    });
    bench("known token, then allowed", 1000, || {
        let user = at_once(known.authenticate(credentials));
        user.is_ok_and(|user| many.authorize(&user, asked) == Decision::Allow)
    });
}

/// A token that is seen for the first time: its claims, and a signature unless it was made here.
fn measure_first() -> String {
    let issuer = |signing: SigningKey, keys: Vec<PublicKey>| {
        Issuer::new(IssuerOptions {
            signing,
            keys,
            issuers: vec!["https://kubernetes.default.svc".to_owned()],
            audiences: Vec::new(),
            lifetime_seconds_max: 0,
        })
    };
    let signing = SigningKey::generate().0;
    let elsewhere = issuer(SigningKey::generate().0, vec![signing.public().clone()]);
    let issuer = issuer(signing, Vec::new());
    let claims = Claims {
        namespace: "default".into(),
        account: Named {
            name: "jane".into(),
            uid: "6c66b9f6-9a5b-4b4f-8d43-6a6d2b1f0b57".into(),
        },
        id: "4d8f0c52-6f0a-4b7a-9d8e-0f5b1a3c7e21".into(),
        audiences: issuer.audiences().to_vec(),
        ..Claims::default()
    };
    let lifetime = Lifetime {
        seconds: 3600,
        warn_after_seconds: None,
    };
    let token = issuer.sign(&claims, NOW, lifetime).expect("randomness");
    for (what, reader) in [
        ("first look at a token that was signed here", &issuer),
        ("first look at a token from elsewhere (ES256)", &elsewhere),
    ] {
        bench(what, 20, || {
            let presented = Presented::new(black_box(&token), reader.audiences(), NOW);
            reader.read(presented).is_ok_and(|claims| claims.is_some())
        });
    }
    token
}

fn rules(others: usize) -> Rules {
    let mut rules = Rules::new(Aggregation::Stored);
    let mut changes = Vec::new();
    for place in 0..OWN_BINDINGS {
        changes.extend(grant(&format!("own-{place:02}"), "jane", place));
    }
    for place in 0..others {
        changes.extend(grant(
            &format!("other-{place}"),
            &format!("user-{place}"),
            place,
        ));
    }
    rules.apply(changes);
    rules
}

fn grant(name: &str, user: &str, place: usize) -> [Change; 2] {
    let rule = Rule {
        verbs: vec!["get".into(), "list".into(), "watch".into()],
        groups: vec![format!("g{place}").into()],
        resources: vec![format!("r{place}").into()],
        ..Rule::default()
    };
    let role = Role {
        name: name.into(),
        rules: vec![rule],
        ..Role::default()
    };
    let binding = Binding {
        namespace: "".into(),
        name: name.into(),
        role: RoleRef::ClusterRole(name.into()),
        subjects: vec![Subject::User(user.into())],
    };
    [Change::Role(role), Change::Binding(binding)]
}

fn bench(what: &str, repeats: u32, mut work: impl FnMut() -> bool) {
    assert!(work(), "{what}: the answer is wrong");
    let mut best = f64::INFINITY;
    for _ in 0..RUNS {
        let start = Instant::now();
        for _ in 0..repeats {
            black_box(work());
        }
        let each = start.elapsed().as_secs_f64() * 1e6 / f64::from(repeats);
        best = best.min(each);
    }
    println!("{best:9.2} us  {what}");
}

fn at_once<F: Future>(future: F) -> F::Output {
    let mut future = std::pin::pin!(future);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match future.as_mut().poll(&mut context) {
        std::task::Poll::Ready(output) => output,
        std::task::Poll::Pending => panic!("known tokens need not wait"),
    }
}
