//! DefaultStorageClass and DefaultIngressClass: who names no class gets the default one.
//!
//! A default is marked by an annotation; of several the newest counts, then the first by name.

use std::cmp::Reverse;

use object::{Map, Text, Value};

use super::is_about;
use super::lookup::Place;
use crate::error::Error;
use crate::meta::{meta, meta_text};
use crate::{Request, Resources};

const STORAGE_CLASSES: Place = ("storage.k8s.io", "v1", "storageclasses");
const STORAGE_MARKS: &[&str] = &[
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
];
const STORAGE_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";

const INGRESS_CLASSES: Place = ("networking.k8s.io", "v1", "ingressclasses");
const INGRESS_MARKS: &[&str] = &["ingressclass.kubernetes.io/is-default-class"];
const INGRESS_ANNOTATION: &str = "kubernetes.io/ingress.class";

/// Gives a claim without a class the default one.
pub(super) async fn storage(
    resources: &Resources,
    request: &Request<'_>,
    claim: &mut Map,
    old: Option<&Map>,
) -> Result<(), Error> {
    if old.is_some() || !is_about(request, "", "persistentvolumeclaims") {
        return Ok(());
    }
    if annotation(claim, STORAGE_ANNOTATION).is_some() || names(claim, "storageClassName") {
        return Ok(());
    }
    if let Some(name) = default_of(resources, STORAGE_CLASSES, STORAGE_MARKS).await? {
        claim
            .object_at("spec")
            .insert("storageClassName", Value::String(name));
    }
    Ok(())
}

/// Gives an ingress without a class the default one.
pub(super) async fn ingress(
    resources: &Resources,
    request: &Request<'_>,
    ingress: &mut Map,
    old: Option<&Map>,
) -> Result<(), Error> {
    if old.is_some() || !is_about(request, "networking.k8s.io", "ingresses") {
        return Ok(());
    }
    if annotation(ingress, INGRESS_ANNOTATION).is_some() || names(ingress, "ingressClassName") {
        return Ok(());
    }
    if let Some(name) = default_of(resources, INGRESS_CLASSES, INGRESS_MARKS).await? {
        ingress
            .object_at("spec")
            .insert("ingressClassName", Value::String(name));
    }
    Ok(())
}

async fn default_of(
    resources: &Resources,
    place: Place,
    marks: &[&str],
) -> Result<Option<Text>, Error> {
    let classes = resources.find_all(place, "").await?;
    let marked = classes.iter().filter(|class| {
        marks
            .iter()
            .any(|mark| annotation(class, mark) == Some("true"))
    });
    // Times of one format in one zone sort as text.
    let newest = marked.min_by_key(|class| {
        (
            Reverse(meta_text(class, "creationTimestamp")),
            meta_text(class, "name"),
        )
    });
    Ok(newest.map(|class| meta_text(class, "name").into()))
}

fn annotation<'a>(object: &'a Map, key: &str) -> Option<&'a str> {
    meta(object)
        .get("annotations")
        .and_then(|all| all.str_at(&[key]))
}

/// Whether the spec has the field at all; an empty class is a choice too.
fn names(object: &Map, field: &str) -> bool {
    let value = object.get("spec").and_then(|spec| spec.get(field));
    value.is_some_and(|value| !value.is_null())
}
