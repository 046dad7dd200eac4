//! `/statusz` and `/flagz`: what runs here and how it was started, for whoever looks for a fault.
//!
//! Contract: `apiserver/pkg/server/statusz` and `flagz`.

use std::fmt::Write as _;

use hyper::header::{self, HeaderValue};
use hyper::{Response, StatusCode};
use object::time::Time;
use object::{Map, Value, json, value};

use crate::answer::{self, Failure};
use crate::body::Body;
use crate::handle::Call;
use crate::negotiate::{self, PageForm, Representation};
use crate::state::State;

const NAME: &str = "apiserver";
const NOTE: &str = "Warning: This endpoint is not meant to be machine parseable, has no formatting \
                    compatibility guarantees and is for debugging purposes only.";
const BINARY_VERSION: &str = "1.36.4";
const EMULATION_VERSION: &str = "1.36";
/// There is no Go here, but the field is expected.
const GO_VERSION: &str = "none";
const PATHS: [&str; 7] = [
    "/flagz", "/healthz", "/livez", "/metrics", "/readyz", "/statusz", "/version",
];

/// Answers a page for debugging, by any method; `None` if the path is none.
pub(crate) fn answer(call: &Call, path: &str) -> Option<Response<Body>> {
    let state = &call.state;
    let (kind, page) = match path {
        "/statusz" => ("Statusz", Page::status(state)),
        "/flagz" => ("Flagz", Page::flags(state)),
        _ => return None,
    };
    let form = negotiate::accept_page(call.header(header::ACCEPT), kind);
    Some(match form {
        None => {
            let text = "only the following media types are accepted: application/json, \
                        application/yaml, text/plain";
            call.fail(Failure::new(406, "NotAcceptable", text))
        }
        Some(PageForm::Text) => {
            let name = kind.to_lowercase();
            let text = format!("\n{NAME} {name}\n{NOTE}\n{}", page.text);
            answer::text(StatusCode::OK, text)
        }
        Some(PageForm::Object { media, version }) => {
            let mut object = Map::new();
            object.insert("kind", kind.into());
            object.insert("apiVersion", format!("config.k8s.io/{version}").into());
            object.insert("metadata", value!({"name": NAME}));
            for (name, value) in page.fields {
                object.insert(name, value);
            }
            let representation = Representation {
                media,
                ..Representation::default()
            };
            let encoded = answer::encode(json::to_vec(&Value::Object(object)), representation);
            name_form(encoded, kind, version)
        }
    })
}

/// Says in the headers which object this is, and that older versions of it go away.
fn name_form(mut answer: Response<Body>, kind: &str, version: &str) -> Response<Body> {
    let headers = answer.headers_mut();
    let media = headers.get(header::CONTENT_TYPE);
    let media = media.and_then(|media| media.to_str().ok()).unwrap_or("");
    let full = format!("{media};g=config.k8s.io;v={version};as={kind}");
    if let Ok(full) = HeaderValue::from_str(&full) {
        headers.insert(header::CONTENT_TYPE, full);
    }
    if version == "v1alpha1" {
        let name = kind.to_lowercase();
        let advice = format!(
            "299 - \"This version of the {name} endpoint is deprecated. Please use a newer \
             version.\""
        );
        if let Ok(advice) = HeaderValue::from_str(&advice) {
            headers.insert(header::WARNING, advice);
        }
    }
    answer
}

/// What a page tells, in both of its forms.
struct Page {
    text: String,
    fields: Map,
}

impl Page {
    fn status(state: &State) -> Page {
        let started = Time::from_unix_seconds(state.started);
        let seconds = (state.resources.now() - state.started).max(0);
        let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
        let text = format!(
            "\nStarted:  {}\nUp:  {hours} hr {minutes:02} min {:02} sec\nGo version:  \
             {GO_VERSION}\nBinary version:  {BINARY_VERSION}\nEmulation version:  \
             {EMULATION_VERSION}\nPaths:  {}\n\n",
            started,
            seconds % 60,
            PATHS.join(" "),
        );
        let paths = PATHS.iter().map(|path| Value::from(*path));
        let fields = [
            ("startTime", started.to_string().into()),
            ("uptimeSeconds", Value::Int(seconds)),
            ("goVersion", GO_VERSION.into()),
            ("binaryVersion", BINARY_VERSION.into()),
            ("emulationVersion", EMULATION_VERSION.into()),
            ("paths", Value::Array(paths.collect())),
        ];
        let fields = fields.map(|(name, value)| (name.into(), value));
        Page {
            text,
            fields: fields.into_iter().collect(),
        }
    }

    fn flags(state: &State) -> Page {
        let mut text = String::new();
        let mut flags = Map::new();
        for (name, value) in &state.flags {
            let _ = writeln!(text, "{name}={value}");
            flags.insert(name.as_str(), value.as_str().into());
        }
        let mut fields = Map::new();
        fields.insert("flags", Value::Object(flags));
        Page { text, fields }
    }
}
