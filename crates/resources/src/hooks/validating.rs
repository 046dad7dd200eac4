//! Webhooks that only look. All that a request concerns are asked at the same time.

use std::sync::Arc;

use admission::review::Denial;
use admission::webhook::{Role, Webhook};
use futures_util::future::join_all;

use super::Set;
use super::ask::{Answer, Form};
use super::matter::Matter;
use crate::Resources;
use crate::error::Error;

impl Resources {
    /// Asks every validating webhook that a request concerns.
    pub(super) async fn ask_validating(&self, set: &Set, matter: &Matter<'_>) -> Result<(), Error> {
        if set.validating.is_empty() {
            return Ok(());
        }
        let namespace = self.namespace_of(matter).await?;
        let attributes = matter.attributes();
        let mut concerned: Vec<(&Arc<Webhook>, Form)> = Vec::new();
        for webhook in &set.validating {
            let namespace = namespace.as_ref();
            let form = self
                .concerns(webhook, matter, &attributes, namespace)
                .await?;
            concerned.extend(form.map(|form| (webhook, form)));
        }
        let asking = concerned
            .into_iter()
            .enumerate()
            .map(|(place, (webhook, form))| self.ask_one(place, webhook, form, matter));
        // Everyone is heard, also after a refusal; of several the first in order is told.
        join_all(asking).await.into_iter().collect()
    }

    async fn ask_one(
        &self,
        place: usize,
        webhook: &Webhook,
        form: Form,
        matter: &Matter<'_>,
    ) -> Result<(), Error> {
        let attributes = matter.attributes();
        let in_form = |object| self.in_form(&matter.kind, &form.kind, object);
        let object = in_form(matter.object.as_ref()).await?;
        let old = in_form(matter.old.as_ref()).await?;
        let objects = (object.as_ref(), old.as_ref());
        let answer = self
            .ask(webhook, Role::Validating, &attributes, &form, objects)
            .await?;
        let notes = matter.request.warnings;
        let verdict = match answer {
            Answer::Said(verdict) => verdict,
            Answer::FailedOpen => {
                let key = format!(
                    "failed-open.validating.webhook.admission.k8s.io/round_0_index_{place}"
                );
                notes.annotate(key, webhook.name.to_string());
                return Ok(());
            }
        };
        for (key, value) in &verdict.annotations {
            notes.annotate(format!("{}/{key}", webhook.name), value.to_string());
        }
        notes.add(verdict.warnings);
        if verdict.allowed {
            return Ok(());
        }
        let denial = Denial::by_webhook(&webhook.name, verdict.status);
        Err(Error::Denied(Box::new(denial)))
    }
}
