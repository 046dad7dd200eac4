//! Tokens of service accounts and of joining nodes: who gets them and when they end.

use std::sync::Arc;

use auth::{
    Anonymous, Authenticator, Claims, Issuer, IssuerOptions, Lifetime, Named, SigningKey, User,
};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use object::{Map, Text, Value, json, value};
use resources::Resources;
use resources::accounts::{AccountTokens, BootstrapTokens};

use crate::fixture::{Ask, refusal, server, server_with};

const ISSUER: &str = "https://issuer";

/// Objects, and whom their tokens stand for.
struct Place {
    resources: Resources,
    issuer: Arc<Issuer>,
    /// The issuer's.
    key: SigningKey,
    authenticator: Arc<Authenticator>,
}

async fn place() -> Place {
    place_of(server().await).await
}

async fn place_of(resources: Resources) -> Place {
    let (signing, pem) = SigningKey::generate();
    let issuer = Arc::new(Issuer::new(IssuerOptions {
        signing,
        keys: Vec::new(),
        issuers: vec![ISSUER.to_owned()],
        audiences: Vec::new(),
        lifetime_seconds_max: 7200,
    }));
    let resources = resources.with_issuer(Arc::clone(&issuer));
    let audiences = vec![Text::from(ISSUER)];
    let authenticator = Authenticator::new(audiences.clone(), Anonymous::Allowed)
        .with_tokens(AccountTokens::new(resources.clone(), Arc::clone(&issuer)))
        .with_tokens(BootstrapTokens::new(resources.clone(), audiences));
    let place = Place {
        resources,
        issuer,
        key: SigningKey::from_pem(pem.as_bytes()).expect("its own text"),
        authenticator: Arc::new(authenticator),
    };
    place.make("serviceaccounts", "robot", value!({})).await;
    place
}

impl Place {
    async fn make(&self, resource: &str, name: &str, mut object: Value) -> Value {
        let fields = object.as_object_mut().expect("a map");
        fields.object_at("metadata").insert("name", name.into());
        let ask = Ask::new(&self.resources, "", resource);
        ask.create(object).await.expect("it is made")
    }

    fn ask(&self) -> Ask<'_> {
        Ask::new(&self.resources, "", "serviceaccounts")
            .named("robot")
            .under("token")
    }

    async fn token(&self, spec: Value) -> String {
        let answer = self.ask().create(value!({"spec": spec})).await;
        let answer = answer.expect("a token");
        answer.str_at(&["status", "token"]).unwrap().to_owned()
    }

    /// The user of a token, or what is wrong with it.
    async fn who(&self, token: &str) -> Result<Arc<User>, String> {
        let now = self.resources.now();
        let known = self.authenticator.review(token, &[], now).await;
        known.map(|known| known.user).map_err(|it| it.to_string())
    }

    async fn delete(&self, resource: &str, name: &str) {
        let ask = Ask::new(&self.resources, "", resource).named(name);
        ask.delete().await.expect("it goes");
    }
}

fn said(token: &str) -> Value {
    let part = token.split('.').nth(1).unwrap();
    json::parse(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
}

fn bound(kind: &str, name: &str) -> Value {
    value!({"boundObjectRef": {"apiVersion": "v1", "kind": kind, "name": name}})
}

#[tokio::test]
async fn a_token_is_answered_as_upstream_answers() {
    let place = place().await;
    let answer = place.ask().create(value!({"spec": {}})).await.unwrap();
    assert_eq!(answer.str_at(&["kind"]), Some("TokenRequest"));
    assert_eq!(answer.str_at(&["metadata", "name"]), Some("robot"));
    assert_eq!(answer.str_at(&["metadata", "namespace"]), Some("default"));
    assert!(answer.str_at(&["metadata", "uid"]).is_some());
    let spec = value!({
        "audiences": [ISSUER], "expirationSeconds": 3600, "boundObjectRef": null,
    });
    assert_eq!(answer.get("spec"), Some(&spec));
    assert_eq!(
        answer.str_at(&["status", "expirationTimestamp"]),
        Some("2023-11-14T23:13:20Z")
    );
    let user = place
        .who(answer.str_at(&["status", "token"]).unwrap())
        .await;
    let user = user.unwrap();
    assert_eq!(user.name, "system:serviceaccount:default:robot");
}

#[tokio::test]
async fn a_token_ends_with_its_account() {
    let place = place().await;
    let token = place.token(value!({})).await;
    assert!(place.who(&token).await.is_ok());
    // What changes about the account is looked at, and does not end the token.
    let robot = Ask::new(&place.resources, "", "serviceaccounts").named("robot");
    robot
        .merge(value!({"metadata": {"labels": {"a": "b"}}}))
        .await
        .unwrap();
    assert!(place.who(&token).await.is_ok());
    place.delete("serviceaccounts", "robot").await;
    assert_eq!(
        place.who(&token).await.unwrap_err(),
        "[invalid bearer token, serviceaccounts \"robot\" not found]"
    );
    place.make("serviceaccounts", "robot", value!({})).await;
    let again = place.who(&token).await.unwrap_err();
    assert!(again.contains("does not match claim"), "{again}");
}

#[tokio::test]
async fn a_bound_token_ends_with_what_it_is_bound_to() {
    let place = place().await;
    let pod = value!({
        "spec": {
            "serviceAccountName": "robot", "nodeName": "n1",
            "containers": [{"name": "c", "image": "i"}],
        },
    });
    place.make("pods", "p1", pod).await;
    place.make("secrets", "s1", value!({})).await;
    place.make("nodes", "n1", value!({})).await;
    for (kind, resource, name) in [("Secret", "secrets", "s1"), ("Pod", "pods", "p1")] {
        let token = place.token(bound(kind, name)).await;
        assert!(place.who(&token).await.is_ok(), "{kind}");
        let ask = Ask::new(&place.resources, "", resource).named(name);
        ask.delete_now().await.expect("it goes");
        assert_eq!(
            place.who(&token).await.unwrap_err(),
            "[invalid bearer token, service account token has been invalidated]",
            "{kind}"
        );
    }
    let token = place.token(bound("Node", "n1")).await;
    let user = place.who(&token).await.unwrap();
    assert_eq!(user.extra["authentication.kubernetes.io/node-name"], ["n1"]);
    place.delete("nodes", "n1").await;
    assert!(place.who(&token).await.is_err());
}

#[tokio::test]
async fn a_pods_token_tells_pod_and_node_and_lives_long() {
    let place = place().await;
    let pod = value!({
        "spec": {
            "serviceAccountName": "robot", "nodeName": "n1",
            "containers": [{"name": "c", "image": "i"}],
        },
    });
    place.make("pods", "p1", pod).await;
    let mut spec = bound("Pod", "p1");
    spec.as_object_mut()
        .unwrap()
        .insert("expirationSeconds", Value::Int(3607));
    let token = place.token(spec).await;
    let claims = said(&token);
    let about = claims.get("kubernetes.io").unwrap();
    assert_eq!(about.get("node"), Some(&value!({"name": "n1"})));
    assert_eq!(about.str_at(&["pod", "name"]), Some("p1"));
    assert_eq!(about.get("warnafter"), Some(&Value::Int(1_700_003_607)));
    let year = 1_700_000_000 + 365 * 86_400;
    assert_eq!(claims.get("exp"), Some(&Value::Int(year)));
    let user = place.who(&token).await.unwrap();
    assert_eq!(user.extra["authentication.kubernetes.io/pod-name"], ["p1"]);
}

#[tokio::test]
async fn which_requests_are_refused() {
    let place = place().await;
    let pod = value!({
        "spec": {"serviceAccountName": "other", "containers": [{"name": "c", "image": "i"}]},
    });
    place.make("pods", "p1", pod).await;
    place.make("secrets", "s1", value!({})).await;
    let mut other_uid = bound("Secret", "s1");
    other_uid
        .get_mut("boundObjectRef")
        .and_then(Value::as_object_mut)
        .unwrap()
        .insert("uid", Value::from("x"));
    let cases = [
        (
            value!({"spec": (bound("Pod", "p1"))}),
            "cannot bind token for serviceaccount \"robot\" to pod running with different \
             serviceaccount name.",
        ),
        (
            value!({"spec": (bound("Pod", "absent"))}),
            "pods \"absent\" not found",
        ),
        (
            value!({"spec": (bound("ConfigMap", "x"))}),
            "cannot bind token to object of type /v1, Kind=ConfigMap",
        ),
        (
            value!({"spec": other_uid}),
            "Operation cannot be fulfilled on Secret \"s1\": the UID in the bound object reference \
             (x) does not match the UID in record. The object might have been deleted and then \
             recreated",
        ),
        (
            value!({"spec": {"expirationSeconds": 599}}),
            "TokenRequest.authentication.k8s.io \"\" is invalid: spec.expirationSeconds: Invalid \
             value: 599: may not specify a duration less than 10 minutes",
        ),
        (
            value!({"metadata": {"name": "other"}, "spec": {}}),
            "TokenRequest.authentication.k8s.io \"robot\" is invalid: metadata.name: Invalid \
             value: \"other\": must match the service account name if specified",
        ),
    ];
    for (request, expected) in cases {
        assert_eq!(refusal(place.ask().create(request).await), expected);
    }
}

#[tokio::test]
async fn a_long_life_is_shortened_with_a_warning() {
    let place = place().await;
    let ask = place.ask();
    let spec = value!({"spec": {"expirationSeconds": 9000}});
    let answer = ask.create(spec).await.unwrap();
    assert_eq!(
        answer.at(&["spec", "expirationSeconds"]),
        Some(&Value::Int(7200))
    );
    assert_eq!(
        ask.warnings.take(),
        ["requested expiration of 9000 seconds shortened to 7200 seconds"]
    );
}

#[tokio::test]
async fn a_token_for_others_opens_nothing_here() {
    let place = place().await;
    let token = place.token(value!({"audiences": ["https://other"]})).await;
    let refused = place.who(&token).await.unwrap_err();
    assert!(refused.contains("is invalid for the target audiences"));
    let others = [Text::from("https://other")];
    let now = place.resources.now();
    let review = place.authenticator.review(&token, &others, now).await;
    assert_eq!(review.unwrap().audiences, others);
    // Being known to others must not make it known here.
    assert!(place.who(&token).await.is_err());
}

#[tokio::test]
async fn a_forged_account_is_not_found() {
    let place = place().await;
    let claims = Claims {
        namespace: "default".into(),
        account: Named {
            name: "robot".into(),
            uid: "not-its-own".into(),
        },
        audiences: vec![ISSUER.into()],
        ..Claims::default()
    };
    let lifetime = Lifetime {
        seconds: 3600,
        warn_after_seconds: None,
    };
    let token = place.issuer.sign(&claims, 1_700_000_000, lifetime).unwrap();
    assert!(place.who(&token).await.is_err());
}

/// A token that lies in this Secret, and the account it is for.
async fn kept_token(place: &Place, secret: &str) -> String {
    let account = place.make("serviceaccounts", "old", value!({})).await;
    let claim = |field: &str| format!("kubernetes.io/serviceaccount/{field}");
    let claims = [
        ("iss".to_owned(), "kubernetes/serviceaccount"),
        ("sub".to_owned(), "system:serviceaccount:default:old"),
        (claim("namespace"), "default"),
        (claim("secret.name"), secret),
        (claim("service-account.name"), "old"),
        (
            claim("service-account.uid"),
            account.str_at(&["metadata", "uid"]).unwrap(),
        ),
    ];
    let claims = claims.map(|(name, text)| (Text::from(name), Value::from(text)));
    let claims = Value::Object(Map::from_entries(claims.into()));
    let header = format!("{{\"alg\":\"{}\"}}", place.key.algorithm());
    let parts = [header.into_bytes(), json::to_vec(&claims)].map(|it| URL_SAFE_NO_PAD.encode(it));
    let text = parts.join(".");
    let signature = place.key.sign(text.as_bytes()).unwrap();
    let token = format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature));
    let object = value!({
        "metadata": {"annotations": {"kubernetes.io/service-account.name": "old"}},
        "type": "kubernetes.io/service-account-token",
        "data": {"token": (STANDARD.encode(&token))},
    });
    place.make("secrets", secret, object).await;
    token
}

#[tokio::test]
async fn the_day_of_its_last_use_is_noted_on_a_kept_token() {
    const DAY: i64 = 24 * 60 * 60;
    let place = place().await;
    let token = kept_token(&place, "kept").await;
    let start = place.resources.now();
    let mut written = Vec::new();
    for (now, expected) in [
        (start, "2023-11-14"),
        (start + 60, "2023-11-14"),
        (start + DAY, "2023-11-15"),
        // The clock of another server may be a day behind.
        (start, "2023-11-15"),
    ] {
        let known = place.authenticator.review(&token, &[], now).await;
        assert_eq!(
            known.unwrap().user.name,
            "system:serviceaccount:default:old"
        );
        let secret = Ask::new(&place.resources, "", "secrets").named("kept");
        let secret = secret.merge(value!({})).await.unwrap();
        let label = ["metadata", "labels", "kubernetes.io/legacy-token-last-used"];
        assert_eq!(secret.str_at(&label), Some(expected));
        written.push(place.resources.store().revision());
    }
    written.dedup();
    assert_eq!(written.len(), 2, "one write a day");
}

#[tokio::test]
async fn who_joins_with_a_bootstrap_token() {
    let place = place().await;
    let secret = |edit: &[(&str, &str)]| {
        let mut data = value!({});
        let fields = [
            ("token-id", "abcdef"),
            ("token-secret", "0123456789abcdef"),
            ("usage-bootstrap-authentication", "true"),
            ("auth-extra-groups", "system:bootstrappers:kubeadm"),
        ];
        for (key, text) in fields.iter().chain(edit) {
            let map = data.as_object_mut().unwrap();
            map.insert(*key, Value::from(STANDARD.encode(text)));
        }
        value!({
            "metadata": {"name": "bootstrap-token-abcdef"},
            "type": "bootstrap.kubernetes.io/token",
            "data": data,
        })
    };
    let token = "abcdef.0123456789abcdef";
    let cases: [(&[(&str, &str)], bool); 6] = [
        (&[], true),
        (&[("expiration", "2030-01-01T00:00:00Z")], true),
        (&[("expiration", "2020-01-01T00:00:00Z")], false),
        (&[("expiration", "soon")], false),
        (&[("usage-bootstrap-authentication", "false")], false),
        (&[("auth-extra-groups", "system:masters")], false),
    ];
    let ask = Ask::new(&place.resources, "", "secrets").within("kube-system");
    for (place_of_case, (edit, known)) in cases.into_iter().enumerate() {
        ask.create(secret(edit)).await.unwrap();
        let who = place.who(token).await;
        assert_eq!(who.is_ok(), known, "case {place_of_case}");
        if let Ok(user) = who {
            assert_eq!(user.name, "system:bootstrap:abcdef");
            assert_eq!(
                user.groups,
                [
                    "system:bootstrappers",
                    "system:bootstrappers:kubeadm",
                    "system:authenticated"
                ]
            );
        }
        assert!(place.who("abcdef.0123456789abcdee").await.is_err());
        let gone = Ask::new(&place.resources, "", "secrets")
            .within("kube-system")
            .named("bootstrap-token-abcdef");
        gone.delete().await.unwrap();
        assert!(place.who(token).await.is_err());
    }
}

#[tokio::test]
async fn a_token_needs_its_namespace_and_the_consent_of_policies() {
    let place = place().await;
    let elsewhere = place.ask().within("nowhere");
    let refused = refusal(elsewhere.create(value!({"spec": {}})).await);
    assert_eq!(refused, "namespaces \"nowhere\" not found");
    let group = "admissionregistration.k8s.io";
    let policy = value!({"metadata": {"name": "short"}, "spec": {
        "matchConstraints": {"resourceRules": [{
            "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
            "resources": ["serviceaccounts/token"],
        }]},
        "validations": [{
            "expression": "object.spec.expirationSeconds <= 1800",
            "message": "half an hour has to do",
        }],
    }});
    let policies = Ask::new(&place.resources, group, "validatingadmissionpolicies");
    policies.create(policy).await.unwrap();
    let binding = value!({"metadata": {"name": "short"}, "spec": {
        "policyName": "short", "validationActions": ["Deny"],
    }});
    let bindings = Ask::new(&place.resources, group, "validatingadmissionpolicybindings");
    bindings.create(binding).await.unwrap();
    let refused = place.ask().create(value!({"spec": {}})).await;
    let refused = format!("{refused:?}");
    assert!(refused.contains("half an hour has to do"), "{refused}");
    place.token(value!({"expirationSeconds": 900})).await;
}

#[tokio::test]
async fn a_node_gets_tokens_of_its_own_pods_alone() {
    let resources = server_with(&["NodeRestriction"], &["ServiceAccount"]).await;
    let place = place_of(resources).await;
    let pod = |node: &str| {
        value!({"spec": {
            "nodeName": node,
            "serviceAccountName": "robot",
            "containers": [{"name": "c", "image": "i"}],
            "volumes": [{"name": "t", "projected": {"sources": [
                {"serviceAccountToken": {"path": "token", "audience": "vault"}},
            ]}}],
        }})
    };
    let own = place.make("pods", "own", pod("n1")).await;
    place.make("pods", "other", pod("n2")).await;
    let uid = own.str_at(&["metadata", "uid"]).unwrap();
    let bound = |name: &str, uid: &str| value!({"kind": "Pod", "apiVersion": "v1", "name": name, "uid": uid});
    let vault = value!(["vault"]);
    let cases = [
        (value!({}), "not bound to a pod"),
        (
            value!({"boundObjectRef": (bound("own", ""))}),
            "without a uid",
        ),
        (
            value!({"boundObjectRef": (bound("none", uid))}),
            "not found",
        ),
        (
            value!({"boundObjectRef": (bound("own", "x"))}),
            "does not match the UID",
        ),
        (
            value!({"audiences": (vault.clone()), "boundObjectRef": (bound("own", uid))}),
            "",
        ),
        (
            value!({"audiences": ["bank"], "boundObjectRef": (bound("own", uid))}),
            "audience \"bank\" not found in pod spec volume, system:node:n1 is not authorized",
        ),
        (
            value!({"audiences": ["bank", "vault"], "boundObjectRef": (bound("own", uid))}),
            "0 or 1 audiences",
        ),
    ];
    for (spec, expected) in cases {
        let shown = format!("{spec:?}");
        let node = User::authenticated("system:node:n1", "", &["system:nodes"]);
        let ask = Ask {
            user: node,
            ..place.ask()
        };
        match ask.create(value!({"spec": spec})).await {
            Ok(_) => assert_eq!(expected, "", "{shown}"),
            Err(error) => {
                let text = refusal(Err(error));
                assert!(
                    !expected.is_empty() && text.contains(expected),
                    "{shown}: {text}"
                );
            }
        }
    }
}
