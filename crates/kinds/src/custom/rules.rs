//! What writes keep and drop: the strategies of custom resources.

use object::{Map, names};

use super::Custom;
use crate::validation::read::{Read, texts};

const STATUS: &[&[&str]] = &[&["status"]];
const ALL_BUT_STATUS: &[&[&str]] = &[&["metadata"], &["spec"]];
const STANDARD_FINALIZERS: [&str; 3] = ["orphan", "foregroundDeletion", "kubernetes"];

impl Custom {
    /// A new object has no status where that is a subresource.
    pub(crate) fn prepare_create(&self, object: &mut Map) {
        if self.status {
            object.remove("status");
        }
    }

    /// A write keeps the status where that is a subresource; a write through `/status` keeps all
    /// else.
    pub(crate) fn prepare_update(&self, new: &mut Map, old: &Map, subresource: &str) {
        if subresource == "status" {
            let status = new.remove("status");
            *new = old.clone();
            replace(new, "status", status);
        } else if self.status {
            replace(new, "status", old.get("status").cloned());
        }
    }

    pub(crate) fn reset_fields(&self, subresource: &str) -> &'static [&'static [&'static str]] {
        match subresource {
            "" if self.status => STATUS,
            "status" => ALL_BUT_STATUS,
            _ => &[],
        }
    }

    /// Advice about finalizers that are new.
    pub(crate) fn warnings(new: &Map, old: Option<&Map>) -> Vec<String> {
        new_finalizers(new, old)
    }
}

fn new_finalizers(new: &Map, old: Option<&Map>) -> Vec<String> {
    let finalizers = |object: &'_ Map| -> Vec<String> {
        let list = object.object_or_empty("metadata").list("finalizers");
        texts(list).map(|(_, text)| text.to_owned()).collect()
    };
    let known = old.map(finalizers).unwrap_or_default();
    let mut added = finalizers(new);
    added.retain(|finalizer| !known.contains(finalizer));
    added.sort_unstable();
    added.dedup();
    added
        .iter()
        .flat_map(|name| finalizer_advice(name))
        .collect()
}

fn finalizer_advice(name: &str) -> Vec<String> {
    let about = |text: String| {
        format!(
            "metadata.finalizers: {}: {text}",
            object::field::quote(name)
        )
    };
    let mut advice: Vec<String> = names::qualified_name(name).into_iter().map(about).collect();
    if !name.contains('/') && !STANDARD_FINALIZERS.contains(&name) {
        let path = if name.contains('.') {
            " including a path (/)"
        } else {
            ""
        };
        advice.push(about(format!(
            "prefer a domain-qualified finalizer name{path} to avoid accidental conflicts with \
             other finalizer writers"
        )));
    }
    advice
}

fn replace(object: &mut Map, key: &str, value: Option<object::Value>) {
    match value {
        Some(value) => {
            object.insert(key, value);
        }
        None => {
            object.remove(key);
        }
    }
}
