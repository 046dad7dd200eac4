//! How often webhooks were asked, how long they took, and how often they failed.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use object::Text;

use crate::attributes::Operation;
use crate::webhook::{Role, Webhook};

/// Upper bounds of the latency buckets, as upstream has them.
const BUCKETS_SECONDS: [f64; 7] = [0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10.0];

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The webhook had nothing against it.
    Allowed,
    /// The webhook refused, with this code.
    Denied(i64),
    /// It could not be asked, and the request was refused for it.
    Failed(u16),
    /// It could not be asked, and nobody minded.
    FailedOpen(u16),
}

/// What is counted about webhooks. Bounded by their number times operations and codes.
#[derive(Debug, Default)]
pub struct Metrics {
    calls: Mutex<Calls>,
}

#[derive(Debug, Default)]
struct Calls {
    durations: BTreeMap<Labels, Histogram>,
    requests: BTreeMap<(Labels, i64), u64>,
    rejections: BTreeMap<(Labels, &'static str, i64), u64>,
    failed_open: BTreeMap<(Text, &'static str), u64>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Labels {
    name: Text,
    role: &'static str,
    operation: &'static str,
    rejected: bool,
}

#[derive(Debug, Default)]
struct Histogram {
    buckets: [u64; BUCKETS_SECONDS.len()],
    count: u64,
    seconds: f64,
}

impl Metrics {
    /// Counts a call.
    pub fn count(
        &self,
        webhook: &Webhook,
        role: Role,
        operation: Operation,
        took: Duration,
        outcome: Outcome,
    ) {
        let labels = Labels {
            name: webhook.name.clone(),
            role: role.as_str(),
            operation: operation.as_str(),
            rejected: matches!(outcome, Outcome::Denied(_) | Outcome::Failed(_)),
        };
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let code = match outcome {
            Outcome::Allowed => 200,
            Outcome::Denied(code) => code,
            Outcome::Failed(code) | Outcome::FailedOpen(code) => code.into(),
        };
        let rejection = match outcome {
            Outcome::Denied(_) => Some("no_error"),
            Outcome::Failed(_) => Some("calling_webhook_error"),
            Outcome::Allowed | Outcome::FailedOpen(_) => None,
        };
        if let Some(error) = rejection {
            // Codes from 600 on are one, so that a webhook cannot make up series without end.
            let key = (labels.clone(), error, code.min(600));
            *calls.rejections.entry(key).or_default() += 1;
        }
        if matches!(outcome, Outcome::FailedOpen(_)) {
            let key = (labels.name.clone(), labels.role);
            *calls.failed_open.entry(key).or_default() += 1;
        }
        *calls
            .requests
            .entry((labels.clone(), code.min(600)))
            .or_default() += 1;
        calls.durations.entry(labels).or_default().add(took);
    }

    /// Writes everything in Prometheus' text form.
    pub fn write(&self, out: &mut String) {
        let calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let name = "apiserver_admission_webhook_admission_duration_seconds";
        heading(out, name, "histogram", calls.durations.is_empty());
        for (labels, histogram) in &calls.durations {
            histogram.write(name, &labels.text(), out);
        }
        let name = "apiserver_admission_webhook_request_total";
        heading(out, name, "counter", calls.requests.is_empty());
        for ((labels, code), count) in &calls.requests {
            line(
                out,
                name,
                &format!("code=\"{code}\",{}", labels.text()),
                count,
            );
        }
        let name = "apiserver_admission_webhook_rejection_count";
        heading(out, name, "counter", calls.rejections.is_empty());
        for ((labels, error, code), count) in &calls.rejections {
            let Labels {
                name: webhook,
                role,
                operation,
                ..
            } = labels;
            let text = format!(
                "error_type=\"{error}\",name=\"{webhook}\",operation=\"{operation}\",\
                 rejection_code=\"{code}\",type=\"{role}\""
            );
            line(out, name, &text, count);
        }
        let name = "apiserver_admission_webhook_fail_open_count";
        heading(out, name, "counter", calls.failed_open.is_empty());
        for ((webhook, role), count) in &calls.failed_open {
            line(
                out,
                name,
                &format!("name=\"{webhook}\",type=\"{role}\""),
                count,
            );
        }
    }
}

fn heading(out: &mut String, name: &str, kind: &str, is_empty: bool) {
    if !is_empty {
        let _ = writeln!(out, "# TYPE {name} {kind}");
    }
}

fn line(out: &mut String, name: &str, labels: &str, count: &u64) {
    let _ = writeln!(out, "{name}{{{labels}}} {count}");
}

impl Labels {
    fn text(&self) -> String {
        let Labels {
            name,
            role,
            operation,
            rejected,
        } = self;
        format!("name=\"{name}\",operation=\"{operation}\",rejected=\"{rejected}\",type=\"{role}\"")
    }
}

impl Histogram {
    fn add(&mut self, took: Duration) {
        let seconds = took.as_secs_f64();
        self.count += 1;
        self.seconds += seconds;
        if let Some(place) = BUCKETS_SECONDS.iter().position(|bound| seconds <= *bound) {
            self.buckets[place] += 1;
        }
    }

    fn write(&self, name: &str, labels: &str, out: &mut String) {
        let mut sum = 0;
        for (bound, bucket) in BUCKETS_SECONDS.iter().zip(self.buckets) {
            sum += bucket;
            let _ = writeln!(out, "{name}_bucket{{{labels},le=\"{bound}\"}} {sum}");
        }
        let (count, seconds) = (self.count, self.seconds);
        let _ = writeln!(out, "{name}_bucket{{{labels},le=\"+Inf\"}} {count}");
        let _ = writeln!(out, "{name}_sum{{{labels}}} {seconds}");
        let _ = writeln!(out, "{name}_count{{{labels}}} {count}");
    }
}
