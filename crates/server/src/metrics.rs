//! `/metrics` in Prometheus' text form, under the names that dashboards know.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use hyper::header::{self, HeaderValue};
use hyper::{Response, StatusCode};
use object::Text;

use crate::body::Body;
use crate::state::State;

/// Upper bounds of the latency buckets.
const BUCKETS_SECONDS: [f64; 10] = [0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 10.0, 60.0];

/// What is counted.
#[derive(Default)]
pub(crate) struct Metrics {
    /// Bounded by kinds, verbs and codes.
    requests: RwLock<BTreeMap<Labels, Arc<Counter>>>,
    begun: AtomicU64,
    in_flight: AtomicU64,
    watches: AtomicU64,
    /// By endpoint and check.
    checks: Mutex<BTreeMap<(&'static str, &'static str), Checked>>,
}

/// What a check of health has said.
#[derive(Clone, Copy, Default)]
struct Checked {
    passed: u64,
    failed: u64,
    passes: bool,
}

/// What tells requests apart.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Labels {
    pub verb: &'static str,
    pub group: Text,
    pub version: Text,
    pub resource: Text,
    pub code: u16,
}

#[derive(Default)]
struct Counter {
    total: AtomicU64,
    micros: AtomicU64,
    buckets: [AtomicU64; BUCKETS_SECONDS.len()],
}

impl Metrics {
    /// Counts a finished request.
    pub(crate) fn count(&self, labels: Labels, took: Duration) {
        let known = self.requests.read().unwrap_or_else(PoisonError::into_inner);
        let counter = known.get(&labels).cloned();
        drop(known);
        let counter = counter.unwrap_or_else(|| self.counter(labels));
        counter.total.fetch_add(1, Ordering::Relaxed);
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        counter.micros.fetch_add(micros, Ordering::Relaxed);
        let seconds = took.as_secs_f64();
        if let Some(place) = BUCKETS_SECONDS.iter().position(|bound| seconds <= *bound) {
            counter.buckets[place].fetch_add(1, Ordering::Relaxed);
        }
    }

    fn counter(&self, labels: Labels) -> Arc<Counter> {
        let mut known = self
            .requests
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        Arc::clone(known.entry(labels).or_default())
    }

    /// Counts a request as under way until the guard is dropped.
    pub(crate) fn enter(&self) -> InFlight<'_> {
        self.begun.fetch_add(1, Ordering::Relaxed);
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        InFlight(&self.in_flight)
    }

    /// How many requests have come so far.
    pub(crate) fn begun(&self) -> u64 {
        self.begun.load(Ordering::Relaxed)
    }

    /// Counts what a check of health says.
    pub(crate) fn checked(&self, endpoint: &'static str, check: &'static str, passes: bool) {
        let mut checks = self.checks.lock().unwrap_or_else(PoisonError::into_inner);
        let checked = checks.entry((endpoint, check)).or_default();
        checked.passes = passes;
        if passes {
            checked.passed += 1;
        } else {
            checked.failed += 1;
        }
    }

    fn write_checks(&self, out: &mut String) {
        let checks = self.checks.lock().unwrap_or_else(PoisonError::into_inner);
        out.push_str(
            "# HELP kubernetes_healthcheck [STABLE] This metric records the result of a single \
             healthcheck.\n# TYPE kubernetes_healthcheck gauge\n",
        );
        for ((endpoint, check), checked) in checks.iter() {
            let passes = u8::from(checked.passes);
            out.push_str(&format!(
                "kubernetes_healthcheck{{name=\"{check}\",type=\"{endpoint}\"}} {passes}\n"
            ));
        }
        out.push_str(
            "# HELP kubernetes_healthchecks_total [STABLE] This metric records the results of all \
             healthcheck.\n# TYPE kubernetes_healthchecks_total counter\n",
        );
        for ((endpoint, check), checked) in checks.iter() {
            let counts = [("error", checked.failed), ("success", checked.passed)];
            for (status, count) in counts.iter().filter(|(_, count)| *count > 0) {
                out.push_str(&format!(
                    "kubernetes_healthchecks_total{{name=\"{check}\",status=\"{status}\",\
                     type=\"{endpoint}\"}} {count}\n"
                ));
            }
        }
    }

    /// A watch began.
    pub(crate) fn watch_began(&self) {
        self.watches.fetch_add(1, Ordering::Relaxed);
    }

    /// A watch ended.
    pub(crate) fn watch_ended(&self) {
        self.watches.fetch_sub(1, Ordering::Relaxed);
    }

    fn write(&self, out: &mut String) {
        let requests = self.requests.read().unwrap_or_else(PoisonError::into_inner);
        out.push_str("# TYPE apiserver_request_total counter\n");
        for (labels, counter) in requests.iter() {
            let total = counter.total.load(Ordering::Relaxed);
            let code = labels.code;
            out.push_str(&format!(
                "apiserver_request_total{{{},code=\"{code}\"}} {total}\n",
                labels.text()
            ));
        }
        out.push_str("# TYPE apiserver_request_duration_seconds histogram\n");
        for (labels, counter) in requests.iter() {
            let (text, mut sum) = (format!("{},code=\"{}\"", labels.text(), labels.code), 0);
            for (bound, bucket) in BUCKETS_SECONDS.iter().zip(&counter.buckets) {
                sum += bucket.load(Ordering::Relaxed);
                out.push_str(&format!(
                    "apiserver_request_duration_seconds_bucket{{{text},le=\"{bound}\"}} {sum}\n"
                ));
            }
            let total = counter.total.load(Ordering::Relaxed);
            let seconds = counter.micros.load(Ordering::Relaxed) as f64 / 1e6;
            out.push_str(&format!(
                "apiserver_request_duration_seconds_bucket{{{text},le=\"+Inf\"}} {total}\n\
                 apiserver_request_duration_seconds_sum{{{text}}} {seconds}\n\
                 apiserver_request_duration_seconds_count{{{text}}} {total}\n"
            ));
        }
    }
}

impl Labels {
    fn text(&self) -> String {
        format!(
            "verb=\"{}\",group=\"{}\",version=\"{}\",resource=\"{}\"",
            self.verb, self.group, self.version, self.resource
        )
    }
}

/// A request under way.
pub(crate) struct InFlight<'a>(&'a AtomicU64);

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Answers `/metrics`.
pub(crate) fn answer(state: &State) -> Response<Body> {
    let mut out = String::with_capacity(16 * 1024);
    state.metrics.write(&mut out);
    state.resources.write_admission_metrics(&mut out);
    let gauge = |out: &mut String, name: &str, value: u64| {
        out.push_str(&format!("# TYPE {name} gauge\n{name} {value}\n"));
    };
    let metrics = &state.metrics;
    let running = metrics.in_flight.load(Ordering::Relaxed);
    gauge(&mut out, "apiserver_current_inflight_requests", running);
    let watches = metrics.watches.load(Ordering::Relaxed);
    gauge(&mut out, "apiserver_longrunning_requests", watches);
    gauge(
        &mut out,
        "windlass_store_revision",
        state.resources.store().revision().0,
    );
    gauge(
        &mut out,
        "windlass_store_compacted_revision",
        state.resources.store().compacted().0,
    );
    if let Some(audit) = &state.audit {
        let (events, dropped) = audit.counts();
        let counter = |out: &mut String, name: &str, value: u64| {
            out.push_str(&format!("# TYPE {name} counter\n{name} {value}\n"));
        };
        counter(&mut out, "apiserver_audit_event_total", events);
        counter(&mut out, "apiserver_audit_error_total", dropped);
    }
    shown(out)
}

/// Answers `/metrics/slis`: how checks of health went.
pub(crate) fn answer_checks(state: &State) -> Response<Body> {
    let mut out = String::new();
    state.metrics.write_checks(&mut out);
    shown(out)
}

fn shown(out: String) -> Response<Body> {
    let mut answer = Response::new(Body::full(out.into()));
    *answer.status_mut() = StatusCode::OK;
    let content_type = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    answer
        .headers_mut()
        .insert(header::CONTENT_TYPE, content_type);
    answer
}
