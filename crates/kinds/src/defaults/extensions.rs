//! Defaults of the kinds that extend the API: definitions of custom resources and API services.

use object::{Map, Text, Value, value};

use super::access::service_port;
use super::fill::{fill, fill_texts, is_true, items, list, text, within};

/// Fills an API service.
pub(crate) fn api_service(service: &mut Map) {
    within(service, "spec", |spec| {
        within(spec, "service", service_port)
    });
}

/// Fills a definition of custom resources.
pub(crate) fn custom_resource_definition(definition: &mut Map) {
    let spec = definition.object_at("spec");
    let names = spec.object_at("names");
    let kind = Text::from(text(names, "kind"));
    if !kind.is_empty() {
        let list_kind = format!("{kind}List");
        fill_texts(
            names,
            &[("singular", &kind.to_lowercase()), ("listKind", &list_kind)],
        );
    }
    fill(spec, "conversion", value!({"strategy": "None"}));
    within(spec, "conversion", |conversion| {
        within(conversion, "webhook", |webhook| {
            within(webhook, "clientConfig", |client| {
                within(client, "service", service_port)
            });
        });
    });
    if list(definition.object_at("status"), "storedVersions").is_empty() {
        note_storage_version(definition);
    }
}

/// Adds the version that is stored now to those that may be found in storage.
pub(crate) fn note_storage_version(definition: &mut Map) {
    let stored = definition
        .get("spec")
        .and_then(Value::as_object)
        .and_then(|spec| {
            let version = items(spec, "versions").find(|version| is_true(version, "storage"))?;
            Some(Text::from(text(version, "name")))
        });
    let Some(stored) = stored else { return };
    let status = definition.object_at("status");
    let mut versions = list(status, "storedVersions").to_vec();
    if !versions
        .iter()
        .any(|version| version.as_str() == Some(&stored))
    {
        versions.push(stored.into());
        status.insert("storedVersions", Value::Array(versions));
    }
}
