//! Questions to a server that answers by a table.

use std::sync::Mutex;

use super::*;
use crate::outside::Asking;

/// Answers everything alike, and counts.
struct Canned {
    answer: Result<&'static str, &'static str>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Outside for Canned {
    fn ask<'a>(&'a self, _: &'a str, body: Option<Vec<u8>>) -> Asking<'a> {
        let body = String::from_utf8(body.unwrap()).unwrap();
        self.asked.lock().unwrap().push(body);
        let answer = self.answer.map(|it| it.as_bytes().to_vec());
        Box::pin(std::future::ready(answer.map_err(str::to_owned)))
    }
}

fn at_once<F: Future>(future: F) -> F::Output {
    let mut future = std::pin::pin!(future);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match future.as_mut().poll(&mut context) {
        std::task::Poll::Ready(output) => output,
        std::task::Poll::Pending => panic!("a canned answer is there at once"),
    }
}

type Asked = Arc<Mutex<Vec<String>>>;

fn tokens(answer: Result<&'static str, &'static str>) -> (WebhookTokens, Asked) {
    let asked = Asked::default();
    let outside = Box::new(Canned {
        answer,
        asked: Arc::clone(&asked),
    });
    let tokens = WebhookTokens {
        outside,
        url: "https://hook".to_owned(),
        version: ReviewVersion::V1,
        audiences: vec!["api".into()],
        remember_seconds: 120,
        remembered: Remembered::default(),
    };
    (tokens, asked)
}

fn who(tokens: &WebhookTokens, now: i64) -> Result<Option<User>, Vec<String>> {
    let audiences = ["api".into()];
    let known = at_once(tokens.who(Presented::new("secret", &audiences, now)));
    known.map(|known| known.map(|known| User::clone(&known.user)))
}

#[test]
fn what_a_token_review_says() {
    let yes = r#"{"status":{"authenticated":true,"user":{"username":"jane","uid":"7",
        "groups":["a"],"extra":{"k":["v"]}}}}"#;
    let (known, asked) = tokens(Ok(yes));
    let user = who(&known, 0).unwrap().unwrap();
    assert_eq!((user.name.as_str(), user.uid.as_str()), ("jane", "7"));
    assert_eq!(user.groups, ["a", "system:authenticated"]);
    assert_eq!(user.extra["k"], ["v"]);
    assert!(asked.lock().unwrap()[0].contains(r#""token":"secret""#));
    // Remembered for two minutes.
    who(&known, 119).unwrap();
    assert_eq!(asked.lock().unwrap().len(), 1);
    who(&known, 120).unwrap();
    assert_eq!(asked.lock().unwrap().len(), 2);

    let other = r#"{"status":{"authenticated":true,"audiences":["x"],"user":{"username":"j"}}}"#;
    assert!(who(&tokens(Ok(other)).0, 0).unwrap().is_none());
    assert!(who(&tokens(Ok("{}")).0, 0).unwrap().is_none());
    let wrong = r#"{"status":{"error":"revoked"}}"#;
    assert_eq!(who(&tokens(Ok(wrong)).0, 0).unwrap_err(), ["revoked"]);
    let (silent, asked) = tokens(Err("no route"));
    for _ in 0..2 {
        assert!(who(&silent, 0).is_err());
    }
    assert_eq!(
        asked.lock().unwrap().len(),
        2,
        "a failure is not remembered"
    );
}

#[test]
fn what_an_access_review_says() {
    let attributes = Attributes::Resource {
        verb: "get",
        group: "apps",
        resource: "deployments/scale",
        namespace: "ns",
        name: "web",
    };
    let jane = User::authenticated("jane", "", &[]);
    let cases = [
        (r#"{"status":{"allowed":true}}"#, Decision::Allow),
        (r#"{"status":{"allowed":false}}"#, Decision::Deny),
        (
            r#"{"status":{"allowed":true,"denied":true}}"#,
            Decision::Forbid,
        ),
        ("{}", Decision::Deny),
        ("[", Decision::Deny),
    ];
    for (answer, expected) in cases {
        let asked = Asked::default();
        let authorizer = WebhookAuthorizer {
            outside: Box::new(Canned {
                answer: Ok(answer),
                asked: Arc::clone(&asked),
            }),
            url: "https://hook".to_owned(),
            version: ReviewVersion::V1Beta1,
            allowed_seconds: 300,
            denied_seconds: 30,
            on_failure: Decision::Deny,
            conditions: Conditions::default(),
            now: Arc::new(|| 0),
            verdicts: Verdicts::default(),
        };
        let verdict = at_once(authorizer.decide(&jane, attributes));
        assert_eq!(verdict.decision, expected, "{answer}");
        let asked = asked.lock().unwrap();
        let spec = r#""spec":{"group":["system:authenticated"],"resourceAttributes":{"group":"apps","name":"web","namespace":"ns","resource":"deployments","subresource":"scale","verb":"get"},"user":"jane"}"#;
        assert!(asked[0].contains(spec), "{}", asked[0]);
    }
}
