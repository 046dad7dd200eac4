//! Where the verbs meet webhooks: before an object is shaped, after it is valid, before it goes.

use std::sync::Arc;

use admission::attributes::Operation;
use apply::ManagedFields;
use kinds::{Kind, Rules};
use object::{Map, Value};
use schema::Types;

use super::matter::completed;
use super::mutating::Rounds;
use super::{Matter, Set};
use crate::error::Error;
use crate::meta::{self, meta_mut};
use crate::options::DeleteOptions;
use crate::ownership::Owners;
use crate::write::{Draft, Live, check_namespace};
use crate::{Request, Resources};

impl Resources {
    /// Lets plugins and webhooks change a draft. Nobody comes to own what they change.
    pub(crate) async fn admit(
        &self,
        request: &Request<'_>,
        draft: &mut Draft,
        live: Option<&Live>,
    ) -> Result<(), Error> {
        let old = live.map(Live::map);
        self.admission
            .mutate(self, request, &mut draft.object, old)
            .await?;
        match self.hooks_in_force().await? {
            Some(set) if set.mutates() => {
                Box::pin(self.admit_by_hooks(&set, request, draft, live)).await
            }
            _ => Ok(()),
        }
    }

    async fn admit_by_hooks(
        &self,
        set: &Set,
        request: &Request<'_>,
        draft: &mut Draft,
        live: Option<&Live>,
    ) -> Result<(), Error> {
        let mut matter = Matter::of_draft(self, request, draft, live);
        if matter.is_exempt() {
            return Ok(());
        }
        // Whoever is asked sees the object as JSON, without blanks; unless it is changed they stay.
        if draft.has_blanks {
            matter.object = matter.object.map(|object| request.kind.show(object));
        }
        let before = draft.has_blanks.then(|| matter.object.clone());
        let old = live.map(Live::map);
        self.change(set, &mut matter, old).await?;
        if before.is_some_and(|before| before == matter.object) {
            return Ok(());
        }
        let Some(mut object) = matter.object else {
            return Ok(());
        };
        let fields = meta_mut(&mut object).remove("managedFields");
        take_owners(request, &mut draft.owners, fields);
        check_namespace(request, &mut object)?;
        let repeated = meta::dedup_owner_references(&mut object);
        request.warnings.add(repeated.map(|text| {
            let (before, after) = (
                "contains duplicate entries;",
                "contains duplicate entries after mutating admission happens;",
            );
            text.replacen(before, after, 1)
        }));
        draft.object = object;
        Ok(())
    }

    /// Asks all that may change an object, and once more those that want to see the changes.
    async fn change(
        &self,
        set: &Set,
        matter: &mut Matter<'_>,
        old: Option<&Map>,
    ) -> Result<(), Error> {
        let mut rounds = Rounds::default();
        self.one_round(set, matter, &mut rounds).await?;
        if !rounds.changed {
            return Ok(());
        }
        rounds.again = true;
        if let Some(object) = &mut matter.object
            && Arc::ptr_eq(&matter.kind, matter.request.kind)
        {
            self.admission
                .mutate(self, matter.request, object, old)
                .await?;
        }
        self.one_round(set, matter, &mut rounds).await
    }

    async fn one_round(
        &self,
        set: &Set,
        matter: &mut Matter<'_>,
        rounds: &mut Rounds,
    ) -> Result<(), Error> {
        self.change_by_policies(set, matter, rounds).await?;
        self.ask_mutating(set, matter, rounds).await
    }

    /// Lets policies and webhooks look at a draft that is otherwise ready to be written.
    pub(crate) async fn check_by_hooks(
        &self,
        request: &Request<'_>,
        draft: &Draft,
        live: Option<&Live>,
    ) -> Result<(), Error> {
        match self.hooks_in_force().await? {
            Some(set) if set.validates() => {
                let matter = Matter::of_draft(self, request, draft, live);
                Box::pin(self.check(&set, &matter)).await
            }
            _ => Ok(()),
        }
    }

    async fn check(&self, set: &Set, matter: &Matter<'_>) -> Result<(), Error> {
        if matter.is_exempt() {
            return Ok(());
        }
        self.check_by_policies(set, matter).await?;
        self.ask_validating(set, matter).await
    }

    /// Lets policies and webhooks refuse a deletion; `name` is what the request calls the object.
    pub(crate) async fn admit_deletion(
        &self,
        request: &Request<'_>,
        name: &str,
        options: &DeleteOptions,
        live: &Live,
    ) -> Result<(), Error> {
        let Some(set) = self.hooks_in_force().await? else {
            return Ok(());
        };
        let options = match name {
            // A collection's options are shown as they were given.
            "" => options.clone(),
            _ => completed(request.kind, options, live.map()),
        };
        let mut matter = Matter::of_deletion(self, request, &options, live);
        matter.name = name.into();
        if matter.is_exempt() {
            return Ok(());
        }
        Box::pin(self.admit_whole(&set, &mut matter)).await
    }

    /// Lets policies and webhooks change and refuse what is sent and never stored as it is.
    pub(crate) async fn admit_sent(
        &self,
        request: &Request<'_>,
        kind: &Arc<Kind>,
        object: Map,
    ) -> Result<Map, Error> {
        let Some(set) = self.hooks_in_force().await? else {
            return Ok(object);
        };
        let mut matter = Matter::new(self, request, kind, Some(object), None);
        Box::pin(self.admit_whole(&set, &mut matter)).await?;
        Ok(matter.object.unwrap_or_default())
    }

    /// Lets policies and webhooks refuse a connection; `kind` and `options` say what is wanted.
    ///
    /// What they would change about the options has no effect.
    pub async fn admit_connection(
        &self,
        request: &Request<'_>,
        kind: &str,
        mut options: Map,
    ) -> Result<(), Error> {
        let Some(set) = self.hooks_in_force().await? else {
            return Ok(());
        };
        options.insert("kind", Value::from(kind));
        options.insert("apiVersion", Value::from("v1"));
        let mut types = Types::new();
        let root = types.add_untyped_deduced();
        let kind = Arc::new(Kind {
            kind: kind.into(),
            types: Arc::new(types),
            root,
            rules: Rules::default(),
            ..Kind::clone(request.kind)
        });
        let mut matter = Matter::new(self, request, &kind, Some(options), None);
        matter.operation = Operation::Connect;
        matter.options = Value::Null;
        Box::pin(self.admit_whole(&set, &mut matter)).await
    }

    /// Lets policies and webhooks change what shows a part of an object, such as its scale, or
    /// acts on one, such as a request for a token.
    pub(crate) async fn admit_view(
        &self,
        request: &Request<'_>,
        kind: &Arc<Kind>,
        new: Map,
        old: impl Into<Option<Map>>,
    ) -> Result<Map, Error> {
        let Some(set) = self.hooks_in_force().await? else {
            return Ok(new);
        };
        let mut matter = Matter::new(self, request, kind, Some(new), old.into());
        Box::pin(self.change(&set, &mut matter, None)).await?;
        Ok(matter.object.unwrap_or_default())
    }

    /// Lets policies and webhooks refuse what shows a part of an object, or acts on one.
    pub(crate) async fn check_view(
        &self,
        request: &Request<'_>,
        kind: &Arc<Kind>,
        new: Map,
        old: impl Into<Option<Map>>,
    ) -> Result<(), Error> {
        let Some(set) = self.hooks_in_force().await? else {
            return Ok(());
        };
        let matter = Matter::new(self, request, kind, Some(new), old.into());
        Box::pin(self.check(&set, &matter)).await
    }

    /// Both passes at once, for what has nothing between them.
    async fn admit_whole(&self, set: &Set, matter: &mut Matter<'_>) -> Result<(), Error> {
        let mut rounds = Rounds::default();
        self.one_round(set, matter, &mut rounds).await?;
        if rounds.changed {
            rounds.again = true;
            self.one_round(set, matter, &mut rounds).await?;
        }
        self.check(set, matter).await
    }
}

/// Takes over what a webhook says about owners, if that can be read.
fn take_owners(request: &Request<'_>, owners: &mut Owners, fields: Option<Value>) {
    if fields == owners.0.encode() {
        return;
    }
    match ManagedFields::decode(fields.as_ref().unwrap_or(&Value::Null)) {
        Ok(fields) => *owners = Owners(fields),
        Err(error) => request.warnings.add([format!(
            ".metadata.managedFields was in an invalid state after admission; this could be \
             caused by an outdated mutating admission controller; please fix your requests: {error}"
        )]),
    }
}
