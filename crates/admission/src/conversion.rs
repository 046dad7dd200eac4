//! Conversion of custom resources by a webhook.
//!
//! A webhook gets objects and the version that they are wanted in, and gives them back in that
//! version. It may change anything but who they are: of the metadata only labels and annotations
//! are taken from its answer. Contract:
//! `apiextensions-apiserver/pkg/apiserver/conversion/webhook_converter.go`.

use std::time::Duration;

use bytes::Bytes;
use object::field::quote;
use object::{Map, Text, Value, json};

use crate::client::{CallError, Endpoint, Limits, Review, Services, read_object};
use crate::review::write_object;

const KIND: &str = "ConversionReview";
const REVIEW: Review = Review {
    kind: KIND,
    versions: ["apiextensions.k8s.io/v1", "apiextensions.k8s.io/v1beta1"],
};
/// A conversion takes at most this long.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The answer to a review is at most this many times as long as its question, and this much more.
const ANSWER_GROWTH_MAX: usize = 4;
const ANSWER_BYTES_MIN: usize = 8 * 1024 * 1024;

/// The conversion webhook of one definition.
#[derive(Debug)]
pub struct Converter {
    endpoint: Result<Endpoint, CallError>,
    version: Option<&'static str>,
}

/// Why objects could not be converted. `of` is the kind as it was given, in Go's notation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConversionError {
    /// The webhook knows no version of reviews that we know.
    #[error("no supported conversion review versions")]
    NoVersion,
    /// It could not be asked, or it refused.
    #[error("conversion webhook for {of} failed: {reason}")]
    Failed {
        /// What was to be converted.
        of: String,
        /// Why.
        reason: String,
    },
    /// It gave back another number of objects.
    #[error("conversion webhook for {of} returned {found} objects, expected {expected}")]
    Count {
        /// What was to be converted.
        of: String,
        /// How many came back.
        found: usize,
        /// How many were sent.
        expected: usize,
    },
    /// One of the objects is not the converted one. Upstream converts what it reads one by one, so
    /// that the place of each is the first.
    #[error("conversion webhook for {of} returned invalid object{reason}")]
    Object {
        /// What was to be converted.
        of: String,
        /// In what way.
        reason: String,
    },
    /// The metadata of one of the objects makes no sense.
    #[error("conversion webhook for {of} returned invalid metadata: {reason}")]
    Metadata {
        /// What was to be converted.
        of: String,
        /// In what way.
        reason: String,
    },
}

impl Converter {
    /// The webhook of `spec.conversion.webhook` of a definition.
    pub fn of_webhook(webhook: &Value) -> Converter {
        let versions = webhook
            .get("conversionReviewVersions")
            .and_then(Value::as_array);
        let mut versions = versions
            .unwrap_or_default()
            .iter()
            .filter_map(Value::as_str);
        let version = versions.find_map(|version| match version {
            "v1" => Some("apiextensions.k8s.io/v1"),
            "v1beta1" => Some("apiextensions.k8s.io/v1beta1"),
            _ => None,
        });
        let config = webhook.get("clientConfig").unwrap_or(&Value::Null);
        Converter {
            endpoint: Endpoint::of_client_config(config),
            version,
        }
    }

    /// Gives objects the version `wanted`; those that have it already are not sent.
    ///
    /// `uid` names the review; `of` is what messages call the objects, such as
    /// `example.com/v1, Kind=Widget`.
    pub async fn convert(
        &self,
        uid: &str,
        of: &str,
        objects: Vec<Map>,
        wanted: &str,
        services: &dyn Services,
    ) -> Result<Vec<Map>, ConversionError> {
        let failed = |reason: String| ConversionError::Failed {
            of: of.to_owned(),
            reason,
        };
        let sent: Vec<&Map> = objects
            .iter()
            .filter(|object| !is_of(object, wanted))
            .collect();
        if sent.is_empty() {
            return Ok(objects);
        }
        let version = self.version.ok_or(ConversionError::NoVersion)?;
        let question = write(version, uid, &sent, wanted);
        let limits = Limits {
            timeout: TIMEOUT,
            answer_bytes_max: ANSWER_BYTES_MIN + ANSWER_GROWTH_MAX * question.len(),
        };
        let endpoint = self.endpoint.as_ref();
        let endpoint = endpoint.map_err(|error| failed(error.to_string()))?;
        let answer = endpoint.post(Bytes::from(question), limits, services).await;
        let answer = answer.map_err(|error| failed(error.to_string()))?;
        let converted = read(version, uid, &answer).map_err(failed)?;
        take_in(of, objects, converted, wanted)
    }
}

fn text<'a>(object: &'a Map, field: &str) -> &'a str {
    object
        .get(field)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

fn meta_text<'a>(object: &'a Map, field: &str) -> &'a str {
    let metadata = object.get("metadata");
    metadata
        .and_then(|metadata| metadata.str_at(&[field]))
        .unwrap_or_default()
}

fn is_of(object: &Map, version: &str) -> bool {
    text(object, "apiVersion") == version
}

/// Writes a review; a version of the store means nothing to a webhook.
fn write(version: &str, uid: &str, objects: &[&Map], wanted: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(1024 * objects.len() + 256);
    out.extend_from_slice(b"{\"kind\":\"ConversionReview\",\"apiVersion\":");
    json::write_string(version, &mut out);
    out.extend_from_slice(b",\"request\":{\"uid\":");
    json::write_string(uid, &mut out);
    out.extend_from_slice(b",\"desiredAPIVersion\":");
    json::write_string(wanted, &mut out);
    out.extend_from_slice(b",\"objects\":[");
    for (place, object) in objects.iter().enumerate() {
        if place > 0 {
            out.push(b',');
        }
        let mut object = (*object).clone();
        if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
            metadata.remove("resourceVersion");
        }
        write_object(&object, &mut out);
    }
    out.extend_from_slice(
        b"]},\"response\":{\"uid\":\"\",\"convertedObjects\":null,\"result\":{\"metadata\":{}}}}",
    );
    out
}

/// The objects of an answer.
fn read(version: &str, uid: &str, body: &[u8]) -> Result<Vec<Value>, String> {
    let review = read_object(body, REVIEW).map_err(|error| error.to_string())?;
    let strict = version.ends_with("/v1");
    let (kind, found) = (text(&review, "kind"), text(&review, "apiVersion"));
    if strict && (kind, found) != (KIND, version) {
        let (group, version) = found.split_once('/').unwrap_or(("", found));
        return Err(format!(
            "expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got \
             {group}/{version}, Kind={kind}"
        ));
    }
    let Some(response @ Value::Object(_)) = review.get("response") else {
        return Err("no response provided".to_owned());
    };
    let found = response.str_at(&["uid"]).unwrap_or_default();
    if strict && found != uid {
        let (uid, found) = (quote(uid), quote(found));
        return Err(format!("expected response.uid={uid}, got {found}"));
    }
    let status = response.str_at(&["result", "status"]).unwrap_or_default();
    if status != "Success" {
        let message = response.str_at(&["result", "message"]).unwrap_or_default();
        if !message.is_empty() {
            return Err(message.to_owned());
        }
        return Err(format!(
            "response.result.status was '{status}', not 'Success'"
        ));
    }
    let converted = response.get("convertedObjects").and_then(Value::as_array);
    Ok(converted.unwrap_or_default().to_vec())
}

/// Puts converted objects where those stood that were sent.
fn take_in(
    of: &str,
    mut objects: Vec<Map>,
    converted: Vec<Value>,
    wanted: &str,
) -> Result<Vec<Map>, ConversionError> {
    let expected = objects
        .iter()
        .filter(|object| !is_of(object, wanted))
        .count();
    if converted.len() != expected {
        return Err(ConversionError::Count {
            of: of.to_owned(),
            found: converted.len(),
            expected,
        });
    }
    let sent = objects.iter_mut().filter(|object| !is_of(object, wanted));
    for (original, converted) in sent.zip(converted) {
        let of = of.to_owned();
        let converted = check(original, converted, wanted).map_err(|reason| {
            let of = of.clone();
            ConversionError::Object { of, reason }
        })?;
        *original = restore(original, converted)
            .map_err(|reason| ConversionError::Metadata { of, reason })?;
    }
    Ok(objects)
}

/// Checks that a converted object is still the one that was sent; the text follows the word
/// `object`.
fn check(original: &Map, converted: Value, wanted: &str) -> Result<Map, String> {
    let Value::Object(converted) = converted else {
        return Err(" at index 0: it is not an object".to_owned());
    };
    let found = text(&converted, "apiVersion");
    if found != wanted {
        return Err(format!(
            " at index 0: invalid groupVersion (expected {wanted}, received {found})"
        ));
    }
    let (kind, found) = (text(original, "kind"), text(&converted, "kind"));
    if kind != found {
        return Err(format!(
            " at index 0: invalid kind (expected {kind}, received {found})"
        ));
    }
    for (field, shown) in [("name", "name"), ("namespace", "namespace"), ("uid", "UID")] {
        let (kept, found) = (meta_text(original, field), meta_text(&converted, field));
        if kept != found {
            return Err(format!(": must have the same {shown}: {kept} != {found}"));
        }
    }
    Ok(converted)
}

/// Takes the metadata of the original, with the labels and annotations of the converted object.
fn restore(original: &Map, mut converted: Map) -> Result<Map, String> {
    let given = match converted.remove("metadata") {
        Some(Value::Object(given)) => given,
        Some(_) => return Err("invalid metadata in converted object".to_owned()),
        None => return Err("missing metadata in converted object".to_owned()),
    };
    let metadata = original.get("metadata").and_then(Value::as_object);
    let mut metadata = metadata.cloned().unwrap_or_default();
    for field in ["labels", "annotations"] {
        match given.get(field) {
            None | Some(Value::Null) => {
                metadata.remove(field);
            }
            Some(Value::Object(pairs)) => {
                check_pairs(field, pairs, metadata.get(field))?;
                metadata.insert(field, Value::Object(pairs.clone()));
            }
            Some(_) => return Err(format!("invalid metadata.{field} in converted object")),
        }
    }
    converted.insert("metadata", Value::Object(metadata));
    Ok(converted)
}

fn check_pairs(field: &str, pairs: &Map, before: Option<&Value>) -> Result<(), String> {
    if let Some((key, _)) = pairs.iter().find(|(_, value)| value.as_str().is_none()) {
        return Err(format!(
            "metadata.{field}[{key}] must be a string in converted object"
        ));
    }
    if before.and_then(Value::as_object) == Some(pairs) {
        return Ok(());
    }
    let bad_key = |key: &Text| object::names::qualified_name(&key.to_lowercase());
    let mut problems: Vec<String> = pairs.keys().flat_map(bad_key).collect();
    if field == "labels" {
        let values = pairs.iter().filter_map(|(_, value)| value.as_str());
        problems.extend(values.flat_map(object::names::label_value));
    }
    match problems.into_iter().next() {
        Some(problem) => Err(format!("metadata.{field}: {problem}")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
