//! Conversion of custom resources by a webhook.

use std::sync::{Arc, Mutex, PoisonError};

use admission::conversion::Converter;
use kinds::Kind;
use kinds::custom::ConversionWebhook;
use object::{Map, Value, value};

use crate::error::Error;
use crate::{Resources, ids};

/// Webhooks whose connections are kept; beyond this many, all are opened anew.
const CONVERTERS_MAX: usize = 256;

/// The webhooks that convert, each with its connections.
#[derive(Debug, Default)]
pub(crate) struct Converters(Mutex<Vec<(ConversionWebhook, Arc<Converter>)>>);

impl Converters {
    fn of(&self, webhook: &ConversionWebhook) -> Arc<Converter> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, converter)) = known.iter().find(|(known, _)| known == webhook) {
            return Arc::clone(converter);
        }
        let versions = webhook.review_versions.iter().cloned().map(Value::String);
        let versions: Vec<Value> = versions.collect();
        let converter = Arc::new(Converter::of_webhook(&value!({
            "clientConfig": (webhook.client_config.clone()),
            "conversionReviewVersions": versions,
        })));
        if known.len() >= CONVERTERS_MAX {
            known.clear();
        }
        known.push((webhook.clone(), Arc::clone(&converter)));
        converter
    }
}

/// Converts objects to the version of `kind`, in one call.
pub(crate) async fn convert(
    resources: &Resources,
    kind: &Arc<Kind>,
    webhook: &ConversionWebhook,
    objects: Vec<Map>,
) -> Result<Vec<Map>, Error> {
    let wanted = kind.api_version();
    let version = |object: &Map| {
        let text = object.get("apiVersion").and_then(Value::as_str);
        text.filter(|text| *text != wanted).map(str::to_owned)
    };
    let from = objects.iter().find_map(version).unwrap_or_default();
    let of = format!("{from}, Kind={}", kind.kind);
    let converter = resources.hooks.converters.of(webhook);
    let uid = ids::uuid();
    let converted = converter.convert(&uid, &of, objects, &wanted, resources);
    converted
        .await
        .map_err(|error| Error::Unsupported(error.to_string()))
}
