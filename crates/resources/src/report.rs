//! What the server itself says of objects: conditions in their status.

use std::sync::Arc;

use auth::User;
use kinds::Kind;
use object::{Map, Value, json, value};

use crate::body::{Body, Media};
use crate::error::Error;
use crate::options::WriteOptions;
use crate::{Request, Resources, Warnings};

impl Resources {
    /// Applies a condition, from now on true, to the status of an object without a namespace.
    pub async fn apply_condition(
        &self,
        kind: &Arc<Kind>,
        name: &str,
        manager: &str,
        condition: &[(&str, &str)],
    ) -> Result<(), Error> {
        let mut stated = Map::new();
        for (field, text) in condition {
            stated.insert(*field, Value::from(*text));
        }
        stated.insert("lastTransitionTime", Value::String(self.now_text()));
        let object = value!({
            "apiVersion": (kind.api_version()),
            "kind": (kind.kind.clone()),
            "metadata": {"name": name},
            "status": {"conditions": [(Value::Object(stated))]},
        });
        let options = WriteOptions {
            manager: manager.into(),
            force: true,
            ..WriteOptions::default()
        };
        let request = Request {
            kind,
            namespace: "",
            name,
            subresource: "status",
            user: &User::server(),
            options: &options,
            warnings: &Warnings::default(),
        };
        let body = Body {
            media: Media::Json,
            bytes: json::to_vec(&object).into(),
        };
        self.apply(&request, &body).await.map(|_| ())
    }
}
