//! The options of a deletion that stand in its body: read strictly, because what is overlooked
//! here, such as a precondition, deletes an object that should have stayed.

use object::{Map, Text, Value, json, yaml};
use resources::Error;
use resources::body::{self, Media};
use resources::options::{DeleteOptions, check_dry_run, refuse};

use crate::query::{check_propagation, propagation};

const KIND: &str = "DeleteOptions";
/// Kinds that upstream's decoder of options knows beside that one, whatever their version.
const KNOWN: [&str; 7] = [
    "APIGroup",
    "APIGroupList",
    "APIResourceList",
    "APIVersions",
    "CreateOptions",
    "Status",
    "UpdateOptions",
];
/// Those that it knows in the version that stands for none.
const KNOWN_IN_META: [&str; 8] = [
    "GetOptions",
    "ListOptions",
    "PartialObjectMetadata",
    "PartialObjectMetadataList",
    "PatchOptions",
    "Table",
    "TableOptions",
    "WatchEvent",
];
const META: &str = "meta.k8s.io/v1";
const DEFINITION: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";

/// Reads a body that is not empty.
pub(super) fn read(media: Media, bytes: &[u8]) -> Result<DeleteOptions, Error> {
    let parsed = match media {
        Media::Yaml => yaml::parse(bytes).map_err(|error| Error::BadRequest(error.to_string()))?,
        Media::Json => json::parse(bytes).map_err(|error| {
            Error::BadRequest(format!(
                "couldn't get version/kind; json parse error: {error}"
            ))
        })?,
        Media::Protobuf => body::read_message(bytes, DEFINITION)?,
    };
    let said = match parsed {
        Value::Object(said) => said,
        Value::Null => Map::new(),
        other => {
            let found = body::json_type(&other);
            return Err(Error::BadRequest(format!(
                "couldn't get version/kind; json parse error: json: cannot unmarshal {found} into \
                 Go value of type struct {{ APIVersion string \
                 \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \
                 \"json:\\\"kind,omitempty\\\"\" }}"
            )));
        }
    };
    check_kind(&said)?;
    check_types(said.clone())?;
    of_object(&Value::Object(said))
}

fn check_kind(said: &Map) -> Result<(), Error> {
    body::check_texts(said).map_err(Error::BadRequest)?;
    let text = |key| said.get(key).and_then(Value::as_str).unwrap_or_default();
    let (kind, version) = (text("kind"), text("apiVersion"));
    if version.matches('/').count() > 1 {
        let text = format!("unexpected GroupVersion string: {version}");
        return Err(Error::BadRequest(text));
    }
    if matches!(kind, "" | KIND) {
        return Ok(());
    }
    let version = if version.is_empty() { META } else { version };
    if KNOWN.contains(&kind) || (version == META && KNOWN_IN_META.contains(&kind)) {
        let text = format!("converting (v1.{kind}) to (v1.{KIND}): unknown conversion");
        return Err(Error::BadRequest(text));
    }
    Err(Error::BadRequest(format!(
        "no kind \"{kind}\" is registered for version \"{version}\" in scheme \
         \"k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme/register.go:27\""
    )))
}

/// Checks that each known field is of its type.
fn check_types(mut said: Map) -> Result<(), Error> {
    said.insert("kind", Value::from(KIND));
    body::check_message(Value::Object(said), DEFINITION)
}

/// The options of a body whose fields are of their types.
fn of_object(said: &Value) -> Result<DeleteOptions, Error> {
    let policy = propagation(said.str_at(&["propagationPolicy"]));
    let orphan_dependents = said.get("orphanDependents").and_then(Value::as_bool);
    let dry_run = said.get("dryRun").and_then(Value::as_array);
    let dry_run: Vec<String> = dry_run
        .unwrap_or_default()
        .iter()
        .map(|value| value.as_str().unwrap_or_default().to_owned())
        .collect();
    let mut errors = Vec::new();
    check_propagation(&policy, orphan_dependents, &mut errors);
    errors.extend(check_dry_run(&dry_run));
    refuse(KIND, errors)?;
    let condition = |name| said.str_at(&["preconditions", name]).map(Text::from);
    Ok(DeleteOptions {
        dry_run: !dry_run.is_empty(),
        grace_period_seconds: said.get("gracePeriodSeconds").and_then(Value::as_int),
        propagation: policy.ok().flatten(),
        orphan_dependents,
        uid: condition("uid"),
        resource_version: condition("resourceVersion"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_overlooked_in_no_body() {
        let wrong = [
            (
                r#"{"preconditions":"x"}"#,
                "json: cannot unmarshal string into Go struct field DeleteOptions.preconditions of \
                 type v1.Preconditions",
            ),
            (
                r#"{"gracePeriodSeconds":1.5}"#,
                "json: cannot unmarshal number 1.5 into Go struct field \
                 DeleteOptions.gracePeriodSeconds of type int64",
            ),
            (
                r#"{"dryRun":"All"}"#,
                "json: cannot unmarshal string into Go struct field DeleteOptions.dryRun of type \
                 []string",
            ),
            (
                r#"{"apiVersion":"a/b/c","kind":"DeleteOptions"}"#,
                "unexpected GroupVersion string: a/b/c",
            ),
            (
                r#"{"apiVersion":"apps/v1","kind":"Status"}"#,
                "converting (v1.Status) to (v1.DeleteOptions): unknown conversion",
            ),
            (
                r#"{"kind":"Table"}"#,
                "converting (v1.Table) to (v1.DeleteOptions): unknown conversion",
            ),
            (
                r#"{"apiVersion":"v1","kind":"Table"}"#,
                "no kind \"Table\" is registered for version \"v1\" in scheme \
                 \"k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme/register.go:27\"",
            ),
            (
                r#"{"apiVersion":1,"kind":"DeleteOptions"}"#,
                "couldn't get version/kind; json parse error: json: cannot unmarshal number into \
                 Go struct field .apiVersion of type string",
            ),
        ];
        for (text, expected) in wrong {
            let error = read(Media::Json, text.as_bytes()).expect_err(text);
            assert_eq!(error.to_string(), expected, "{text}");
        }
    }

    #[test]
    fn which_options_does_a_body_name() {
        let text = r#"{"preconditions":{"uid":"u","resourceVersion":"7"},"dryRun":["All"],
            "gracePeriodSeconds":3,"orphanDependents":null,"other":1}"#;
        let options = read(Media::Json, text.as_bytes()).expect("they are right");
        assert!(options.dry_run);
        assert_eq!(options.grace_period_seconds, Some(3));
        assert_eq!(options.orphan_dependents, None);
        assert_eq!(options.uid.as_deref(), Some("u"));
        assert_eq!(options.resource_version.as_deref(), Some("7"));
    }
}
