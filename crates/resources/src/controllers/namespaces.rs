//! What each namespace needs: its default account, the certificate of the API, and its end.
//!
//! A namespace that is being deleted is emptied and then let go; its status says what remains.
//! Contract: upstream's `pkg/controller/namespace/deletion`. One task does all of it, namespace by
//! namespace.

mod conditions;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kinds::{Catalogue, Kind};
use object::{Map, Value, json, value};
use store::{Range, Record};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};
use tracing::{debug, warn};

use self::conditions::Remains;
use super::{AGAIN_FIRST, AGAIN_LAST, Identity, MANAGER, WRITES_AT_A_TIME, again_and_again};
use crate::body::{Body, Media};
use crate::error::Error;
use crate::options::{DeleteOptions, Propagation};
use crate::record::Stored;
use crate::{Resources, Warnings};

/// Changes of ConfigMaps that come close together are looked at together.
const SETTLE: Duration = Duration::from_millis(10);

/// The hold that the server has on each namespace.
const FINALIZER: &str = "kubernetes";

/// Which work to do.
#[derive(Clone)]
pub(super) struct Tasks {
    /// Empty namespaces that are deleted.
    pub empty: bool,
    /// Make the default account.
    pub account: bool,
    /// The certificate to publish.
    pub certificate: Option<String>,
}

/// What a namespace needs from its controllers.
struct Namespaces {
    resources: Resources,
    kind: Arc<Kind>,
    accounts: Arc<Kind>,
    config_maps: Arc<Kind>,
    tasks: Tasks,
    identity: Identity,
}

/// What is left to do about a namespace.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    Done,
    Again,
}

/// Tends namespaces until the store is closed.
pub(super) async fn run(resources: Resources, tasks: Tasks) {
    let kind = |resource| {
        let found = Catalogue::builtin().resource("", "v1", resource);
        found.map(Arc::clone)
    };
    let (Some(namespaces), Some(accounts), Some(config_maps)) = (
        kind("namespaces"),
        kind("serviceaccounts"),
        kind("configmaps"),
    ) else {
        return warn!("namespaces are not tended: their kinds are not served");
    };
    let namespaces = Namespaces {
        kind: namespaces,
        accounts,
        config_maps,
        tasks,
        identity: Identity::new(MANAGER),
        resources: resources.clone(),
    };
    again_and_again("namespace-controller", || namespaces.run()).await;
}

impl Namespaces {
    async fn run(&self) -> Result<(), store::Error> {
        let store = &self.resources.store;
        let page = store.range(&self.kind.collection, Range::default()).await?;
        let mut due: BTreeMap<String, (Instant, Duration)> = BTreeMap::new();
        let now = Instant::now();
        for record in &page.records {
            due.insert(record.name.to_string(), (now, AGAIN_FIRST));
        }
        let mut namespaces = store.watch(&self.kind.collection, page.revision).await?;
        let mut accounts = store
            .watch(&self.accounts.collection, page.revision)
            .await?;
        let mut config_maps = store
            .watch(&self.config_maps.collection, page.revision)
            .await?;
        loop {
            let next = due.iter().min_by_key(|(_, (when, _))| *when);
            let next = next.map(|(name, (when, wait))| (name.clone(), *when, *wait));
            let wake = next.as_ref().map_or(Instant::now(), |(_, when, _)| *when);
            tokio::select! {
                event = namespaces.next() => {
                    let event = event?;
                    // What remains in a namespace changes its status, which is no news.
                    if event.previous.is_none() || !is_deleting(&event.previous) {
                        let name = event.record.name.to_string();
                        due.insert(name, (Instant::now(), AGAIN_FIRST));
                    }
                }
                event = accounts.next() => {
                    let event = event?;
                    if let (true, Some((namespace, _))) =
                        (event.deleted, event.record.name.split_once('/'))
                    {
                        due.insert(namespace.to_owned(), (Instant::now(), AGAIN_FIRST));
                    }
                }
                event = config_maps.next() => {
                    let mut event = Some(event?);
                    while let Some(changed) = event {
                        if let (true, Some((namespace, CERTIFICATE_NAME))) =
                            (changed.deleted, changed.record.name.split_once('/'))
                        {
                            due.insert(namespace.to_owned(), (Instant::now(), AGAIN_FIRST));
                        }
                        event = config_maps.try_next()?;
                    }
                    // Hardly any of them is of interest: those that come soon are looked at
                    // together.
                    sleep(SETTLE).await;
                }
                () = sleep_until(wake), if next.is_some() => {
                    let Some((name, _, wait)) = next else { continue };
                    due.remove(&name);
                    if self.tend(&name).await == Progress::Again {
                        let again = (wait * 2).min(AGAIN_LAST);
                        due.insert(name, (Instant::now() + wait, again));
                    }
                }
            }
        }
    }

    async fn tend(&self, namespace: &str) -> Progress {
        let tended = self.tend_or_fail(namespace).await;
        tended.unwrap_or_else(|error| {
            debug!(namespace, %error, "a namespace is tended again later");
            Progress::Again
        })
    }

    async fn tend_or_fail(&self, namespace: &str) -> Result<Progress, Error> {
        let record = match self.resources.get(&self.kind, "", namespace, None).await {
            Err(Error::NotFound(_)) => return Ok(Progress::Done),
            other => other?,
        };
        match (is_deleting(&Some(record)), self.tasks.empty) {
            (true, true) => return self.empty(namespace).await,
            (true, false) => return Ok(Progress::Done),
            (false, _) => {}
        }
        if self.tasks.account {
            let account = value!({"metadata": {"name": "default"}});
            self.make(&self.accounts, namespace, "default", account)
                .await?;
        }
        if let Some(certificate) = &self.tasks.certificate {
            let name = CERTIFICATE_NAME;
            let certificate = value!({
                "metadata": {
                    "name": name,
                    "annotations": {"kubernetes.io/description": CERTIFICATE_NOTE},
                },
                "data": {"ca.crt": (certificate.as_str())},
            });
            self.make(&self.config_maps, namespace, name, certificate)
                .await?;
        }
        Ok(Progress::Done)
    }

    async fn make(
        &self,
        kind: &Arc<Kind>,
        namespace: &str,
        name: &str,
        object: Value,
    ) -> Result<(), Error> {
        match self.resources.get(kind, namespace, name, None).await {
            Err(Error::NotFound(_)) => {}
            other => return other.map(|_| ()),
        }
        let body = Body {
            media: Media::Json,
            bytes: json::to_vec(&object).into(),
        };
        let (warnings, parent) = (Warnings::default(), format!("{namespace}/"));
        let request = self.identity.request(kind, &parent, &warnings);
        match self.resources.create(&request, &body).await {
            Ok(_) | Err(Error::AlreadyExists(_) | Error::NotFound(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Deletes what is in a namespace, and lets the namespace go once nothing is.
    ///
    /// Pods go first: what they may still use stays until they are gone.
    async fn empty(&self, namespace: &str) -> Result<Progress, Error> {
        let kinds = self.resources.deletable_kinds();
        let is_pod = |kind: &&Arc<Kind>| kind.group.is_empty() && kind.resource == "pods";
        let (pods, others): (Vec<_>, Vec<_>) = kinds
            .iter()
            .filter(|kind| kind.namespaced)
            .partition(|kind| is_pod(kind));
        let mut remains = Remains::default();
        for kind in pods {
            self.empty_of(kind, namespace, &mut remains).await;
        }
        if remains.is_nothing() {
            for kind in others {
                self.empty_of(kind, namespace, &mut remains).await;
            }
        }
        self.report(namespace, &remains).await?;
        if !remains.is_nothing() {
            return Ok(Progress::Again);
        }
        self.finalize(namespace).await
    }

    /// Deletes the objects of one kind, and notes what is left of them.
    async fn empty_of(&self, kind: &Arc<Kind>, namespace: &str, remains: &mut Remains) {
        let prefix = format!("{namespace}/");
        let deleted = self.delete_all(kind, &prefix).await;
        if let Err(error) = &deleted {
            remains.failed(error.to_string());
        }
        match self.contents(kind, &prefix).await {
            Ok(records) if records.is_empty() => {}
            Ok(records) => {
                let held = remains.add(kind, &records);
                if !held && deleted.is_ok() {
                    remains.failed(format!(
                        "unexpected items still remain in namespace: {namespace} for gvr: {}/{}, \
                         Resource={}",
                        kind.group, kind.version, kind.resource
                    ));
                }
            }
            Err(error) => remains.failed(error.to_string()),
        }
    }

    async fn contents(&self, kind: &Kind, prefix: &str) -> Result<Vec<Record>, Error> {
        let range = Range {
            prefix,
            ..Range::default()
        };
        let page = self.resources.store.range(&kind.collection, range).await;
        page.map(|page| page.records)
            .map_err(|error| Error::from_store(error, Default::default))
    }

    async fn delete_all(&self, kind: &Arc<Kind>, prefix: &str) -> Result<(), Error> {
        let mut tasks = JoinSet::new();
        let mut outcome = Ok(());
        for record in self.contents(kind, prefix).await? {
            while tasks.len() >= WRITES_AT_A_TIME {
                outcome = join_one(&mut tasks).await.and(outcome);
            }
            let (resources, kind) = (self.resources.clone(), Arc::clone(kind));
            let identity = self.identity.clone();
            tasks.spawn(async move {
                let options = DeleteOptions {
                    propagation: Some(Propagation::Background),
                    ..DeleteOptions::default()
                };
                let warnings = Warnings::default();
                let request = identity.request(&kind, &record.name, &warnings);
                match resources.delete(&request, &options).await {
                    Ok(_) | Err(Error::NotFound(_)) => Ok(()),
                    Err(error) => Err(error),
                }
            });
        }
        while !tasks.is_empty() {
            outcome = join_one(&mut tasks).await.and(outcome);
        }
        outcome
    }

    /// Writes into the status of a namespace what keeps it.
    async fn report(&self, namespace: &str, remains: &Remains) -> Result<(), Error> {
        let (warnings, now) = (Warnings::default(), self.resources.now_text());
        let mut request = self.identity.request(&self.kind, namespace, &warnings);
        request.subresource = "status";
        let change = |object: &mut Map| remains.write(object.object_at("status"), &now);
        self.resources.edit(&request, change).await
    }

    /// Takes the last hold off an empty namespace.
    async fn finalize(&self, namespace: &str) -> Result<Progress, Error> {
        let warnings = Warnings::default();
        let mut request = self.identity.request(&self.kind, namespace, &warnings);
        request.subresource = "finalize";
        let change = |object: &mut Map| {
            let spec = object.object_at("spec");
            let finalizers = spec.get_mut("finalizers").and_then(Value::as_array_mut);
            let Some(finalizers) = finalizers else {
                return false;
            };
            let before = finalizers.len();
            finalizers.retain(|finalizer| finalizer.as_str() != Some(FINALIZER));
            finalizers.len() < before
        };
        self.resources.edit(&request, change).await?;
        // Finalizers of its own may still hold it; whoever removes them ends it.
        Ok(Progress::Done)
    }
}

/// Where pods look for the certificate of the API.
const CERTIFICATE_NAME: &str = "kube-root-ca.crt";
const CERTIFICATE_NOTE: &str = "Contains a CA bundle that can be used to verify the kube-apiserver \
     when using internal endpoints such as the internal service IP or \
     kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes \
     clusters.";

async fn join_one(tasks: &mut JoinSet<Result<(), Error>>) -> Result<(), Error> {
    match tasks.join_next().await {
        None => Ok(()),
        Some(Ok(outcome)) => outcome,
        Some(Err(error)) => Err(Error::Internal(error.to_string())),
    }
}

fn is_deleting(record: &Option<Record>) -> bool {
    record
        .as_ref()
        .is_some_and(|record| Stored::new(&record.value).is_ok_and(|stored| stored.is_deleting()))
}
