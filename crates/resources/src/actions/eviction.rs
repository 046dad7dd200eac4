//! Eviction: a deletion of a pod that respects its disruption budget.
//!
//! Contract: `pkg/registry/core/pod/storage/eviction.go`.

use object::labels::LabelSelector;
use object::{Map, Text, Value, json, value};

use super::binding::set_condition;
use super::done;
use crate::admission::Place;
use crate::body::{self, Body, Media, Parsed};
use crate::error::{Cause, Error, Subject};
use crate::meta::{meta, meta_text};
use crate::options::{DeleteOptions, Propagation, WriteOptions, check_dry_run, refuse};
use crate::ownership::Owners;
use crate::write::{Live, Written, check_namespace};
use crate::{Request, Resources, subject};

const BUDGETS: Place = ("policy", "v1", "poddisruptionbudgets");
const EVICTION: &str = "io.k8s.api.policy.v1.Eviction";
/// Evictions that the controller of budgets has not seen yet; more are refused.
const DISRUPTED_PODS_MAX: usize = 2000;
/// How often a budget that others change is read again.
const ATTEMPTS_MAX: usize = 20;

impl Resources {
    /// `POST` of an Eviction to a pod.
    pub(super) async fn evict(&self, request: &Request<'_>, body: &Body) -> Result<Written, Error> {
        let said = body::parse_plain(body, EVICTION).unwrap_or_default();
        // The older version is still read; it is no different.
        let version = match said.str_at(&["apiVersion"]) {
            Some("policy/v1beta1") => "v1beta1",
            _ => "v1",
        };
        let kind = self.sent_kind(request.kind, ("policy", version, "Eviction"), EVICTION)?;
        let sent = Request {
            kind: &kind,
            ..*request
        };
        let Parsed { mut wanted, .. } = body::read(&self.catalogue(), &sent, body)?;
        let eviction = &mut wanted.object;
        check_namespace(&sent, eviction)?;
        self.admission.receive(self, request, eviction).await?;
        if meta_text(eviction, "name") != request.name {
            let text = "name in URL does not match name in Eviction object";
            return Err(Error::BadRequest(text.to_owned()));
        }
        let owners = Owners::of_created(self, &sent, &mut wanted);
        let mut eviction = wanted.object;
        owners.show_in(&mut eviction);
        let mut eviction = self.admit_view(request, &kind, eviction, None).await?;
        if request.options.dry_run {
            show_dry_run(&mut eviction);
        }
        self.check_view(request, &kind, eviction.clone(), None)
            .await?;
        let options = delete_options(&eviction, request.options.dry_run)?;
        let pod = Request {
            subresource: "",
            ..*request
        };
        let mut refused = Error::modified(subject(request.kind, request.name));
        for _ in 0..ATTEMPTS_MAX {
            let Some(live) = self.live(&pod).await? else {
                return Err(Error::NotFound(subject(request.kind, request.name)));
            };
            let guarded = if needs_no_budget(live.map()) {
                !is_over(live.map())
            } else {
                self.charge_budget(request, live.map(), options.dry_run)
                    .await?
            };
            match self.remove(&pod, live, &options, guarded).await {
                Err(error @ Error::Conflict { .. }) if options.resource_version.is_none() => {
                    refused = error;
                }
                other => return other.map(|()| done()),
            }
        }
        Err(refused)
    }

    /// Says on the pod why it goes, and deletes it.
    async fn remove(
        &self,
        request: &Request<'_>,
        live: Live,
        options: &DeleteOptions,
        guarded: bool,
    ) -> Result<(), Error> {
        let mut options = options.clone();
        let modified = || Error::modified(subject(request.kind, request.name));
        let mut version = live.record.revision;
        if options
            .resource_version
            .as_deref()
            .is_some_and(|given| given != version.to_string())
        {
            return Err(modified());
        }
        if !options.dry_run {
            let mut pod = live.map().clone();
            let condition = value!({
                "type": "DisruptionTarget",
                "status": "True",
                "reason": "EvictionByEvictionAPI",
                "message": "Eviction API: evicting",
            });
            set_condition(&mut pod, condition, &self.now_text());
            let committed = self.commit_action(request.kind, live, pod).await?;
            version = committed.ok_or_else(modified)?;
        }
        if guarded || options.resource_version.is_some() {
            options.resource_version = Some(version.to_string().into());
        }
        // Policies and webhooks have seen the eviction; the deletion is a part of it.
        let deleted = self.delete_seen(request, &options, None);
        deleted.await.map(|_| ())
    }

    /// Counts the eviction against the pod's budget; tells whether the deletion must find the pod
    /// unchanged.
    async fn charge_budget(
        &self,
        request: &Request<'_>,
        pod: &Map,
        dry_run: bool,
    ) -> Result<bool, Error> {
        for _ in 0..ATTEMPTS_MAX {
            let mut budgets = self.find_all(BUDGETS, request.namespace).await?;
            budgets.retain(|budget| covers(budget, pod));
            if budgets.len() > 1 {
                let text = "This pod has more than one PodDisruptionBudget, which the eviction \
                            subresource does not support.";
                return Err(Error::Unsupported(text.to_owned()));
            }
            let Some(mut budget) = budgets.pop() else {
                return Ok(false);
            };
            if !is_ready(pod) && allows_unready(&budget) {
                return Ok(true);
            }
            let name = Text::from(meta_text(&budget, "name"));
            charge(&mut budget, request.name, &self.now_text())?;
            if dry_run {
                return Ok(false);
            }
            match self.write_budget(request.namespace, &name, budget).await {
                Ok(_) => return Ok(false),
                Err(Error::Conflict { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Err(Error::Unavailable(
            "the disruption budget is changed too often".to_owned(),
        ))
    }

    async fn write_budget(
        &self,
        namespace: &str,
        name: &str,
        budget: Map,
    ) -> Result<Written, Error> {
        let options = WriteOptions {
            manager: "kube-apiserver".into(),
            ..WriteOptions::default()
        };
        let (user, warnings) = (auth::User::server(), crate::Warnings::default());
        let request = Request {
            kind: self.built_in(BUDGETS)?,
            namespace,
            name,
            subresource: "status",
            user: &user,
            options: &options,
            warnings: &warnings,
        };
        let bytes = json::to_vec(&Value::Object(budget)).into();
        self.update(
            &request,
            &Body {
                media: Media::Json,
                bytes,
            },
        )
        .await
    }
}

/// An eviction that says how to delete says also that it is only tried.
fn show_dry_run(eviction: &mut Map) {
    let options = eviction.get_mut("deleteOptions");
    if let Some(options) = options.and_then(Value::as_object_mut) {
        options.get_or_insert_with("dryRun", || value!(["All"]));
    }
}

fn delete_options(eviction: &Map, dry_run: bool) -> Result<DeleteOptions, Error> {
    let options = eviction.get("deleteOptions");
    let field = |name: &str| options.and_then(|options| options.get(name));
    let condition = |name| {
        options
            .and_then(|options| options.str_at(&["preconditions", name]))
            .map(Text::from)
    };
    let asked: Vec<String> = field("dryRun")
        .and_then(Value::as_array)
        .unwrap_or_default()
        .iter()
        .filter_map(|value| value.as_str().map(str::to_owned))
        .collect();
    refuse("DeleteOptions", Vec::from_iter(check_dry_run(&asked)))?;
    Ok(DeleteOptions {
        dry_run: dry_run || !asked.is_empty(),
        grace_period_seconds: field("gracePeriodSeconds").and_then(Value::as_int),
        propagation: match field("propagationPolicy").and_then(Value::as_str) {
            Some("Orphan") => Some(Propagation::Orphan),
            Some("Background") => Some(Propagation::Background),
            Some("Foreground") => Some(Propagation::Foreground),
            _ => None,
        },
        orphan_dependents: field("orphanDependents").and_then(Value::as_bool),
        uid: condition("uid"),
        resource_version: condition("resourceVersion"),
    })
}

fn phase(pod: &Map) -> &str {
    pod.get("status")
        .and_then(|status| status.str_at(&["phase"]))
        .unwrap_or_default()
}

fn is_over(pod: &Map) -> bool {
    matches!(phase(pod), "Succeeded" | "Failed") || meta(pod).contains_key("deletionTimestamp")
}

/// A pod that does not run is missed by nobody.
fn needs_no_budget(pod: &Map) -> bool {
    is_over(pod) || phase(pod) == "Pending"
}

fn is_ready(pod: &Map) -> bool {
    let conditions = pod
        .get("status")
        .and_then(|status| status.get("conditions"));
    conditions
        .and_then(Value::as_array)
        .unwrap_or_default()
        .iter()
        .any(|condition| {
            condition.str_at(&["type"]) == Some("Ready")
                && condition.str_at(&["status"]) == Some("True")
        })
}

fn covers(budget: &Map, pod: &Map) -> bool {
    let selector = budget.get("spec").and_then(|spec| spec.get("selector"));
    let selector = selector.and_then(|it| LabelSelector::from_label_selector_value(it).ok());
    let labels = meta(pod).get("labels");
    selector.is_some_and(|selector| {
        !selector.is_everything()
            && selector.matches(|key| labels.and_then(|labels| labels.str_at(&[key])))
    })
}

fn number(budget: &Map, field: &str) -> i64 {
    let status = budget.get("status");
    status
        .and_then(|status| status.get(field))
        .and_then(Value::as_int)
        .unwrap_or(0)
}

/// Whether pods that are not healthy anyway may go without counting.
fn allows_unready(budget: &Map) -> bool {
    let policy = budget
        .get("spec")
        .and_then(|spec| spec.str_at(&["unhealthyPodEvictionPolicy"]));
    let desired = number(budget, "desiredHealthy");
    policy == Some("AlwaysAllow") || (desired > 0 && number(budget, "currentHealthy") >= desired)
}

/// Takes one disruption off a budget, if it allows one.
fn charge(budget: &mut Map, pod: &str, now: &str) -> Result<(), Error> {
    let name = Text::from(meta_text(budget, "name"));
    let refused = |message: String, retry_after_seconds| Error::TooManyRequests {
        message: "Cannot evict pod as it would violate the pod's disruption budget.".to_owned(),
        causes: vec![Cause {
            reason: "DisruptionBudget".into(),
            message,
            field: String::new(),
        }],
        retry_after_seconds,
    };
    let forbidden = |detail: &str| Error::Forbidden {
        subject: Subject {
            group: "policy".into(),
            resource: "poddisruptionbudget".into(),
            name: name.clone(),
        },
        detail: detail.to_owned(),
        causes: Vec::new(),
    };
    let generation = meta(budget)
        .get("generation")
        .and_then(Value::as_int)
        .unwrap_or(0);
    if number(budget, "observedGeneration") < generation {
        let text = format!("The disruption budget {name} is still being processed by the server.");
        return Err(refused(text, 10));
    }
    let allowed = number(budget, "disruptionsAllowed");
    if allowed < 0 {
        return Err(forbidden("pdb disruptions allowed is negative"));
    }
    let disrupted = budget
        .get("status")
        .and_then(|status| status.get("disruptedPods"));
    if disrupted
        .and_then(Value::as_object)
        .is_some_and(|pods| pods.len() > DISRUPTED_PODS_MAX)
    {
        return Err(forbidden(
            "DisruptedPods map too big - too many evictions not confirmed by PDB controller",
        ));
    }
    if allowed == 0 {
        let (desired, current) = (
            number(budget, "desiredHealthy"),
            number(budget, "currentHealthy"),
        );
        let text = format!(
            "The disruption budget {name} needs {desired} healthy pods and has {current} currently"
        );
        return Err(refused(text, 0));
    }
    let status = budget.object_at("status");
    status.insert("disruptionsAllowed", Value::Int(allowed - 1));
    status
        .object_at("disruptedPods")
        .insert(pod, Value::from(now));
    if allowed == 1 {
        say_insufficient(status, generation, now);
    }
    Ok(())
}

fn say_insufficient(status: &mut Map, generation: i64, now: &str) {
    let condition = value!({
        "type": "DisruptionAllowed",
        "status": "False",
        "reason": "InsufficientPods",
        "message": "",
        "observedGeneration": generation,
        "lastTransitionTime": now,
    });
    let conditions = status.get_or_insert_with("conditions", || Value::Array(Vec::new()));
    let Some(conditions) = conditions.as_array_mut() else {
        return;
    };
    conditions.retain(|known| known.str_at(&["type"]) != Some("DisruptionAllowed"));
    conditions.push(condition);
}
