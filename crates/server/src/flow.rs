//! Which requests may be worked on at a time: priority levels with fair queues, or plain limits.
//!
//! A request is matched with a flow schema, which names its priority level; a level has seats, and
//! what finds none waits in a fair queue or is refused with 429. The configuration is compiled when
//! it changes, so a request that need not wait pays for matching and one short lock.
//! Contract: `priority-and-fairness.go` and `maxinflight.go` of the API server's filters.

mod follow;
mod lending;
mod level;
mod retry;
mod schema;

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use auth::User;
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};
use object::Text;
use resources::Resources;
use tokio::time::Instant;

use crate::answer;
use crate::body::Body;
use crate::query::Query;
use crate::request::RequestInfo;
use level::{Level, Seat, Taken};
use schema::{LevelPlan, Schema};

const SCHEMA_UID: HeaderName = HeaderName::from_static("x-kubernetes-pf-flowschema-uid");
const LEVEL_UID: HeaderName = HeaderName::from_static("x-kubernetes-pf-prioritylevel-uid");
/// No request waits longer for its turn.
const WAIT_MAX: Duration = Duration::from_secs(60);
/// A list takes a seat for each this many objects, up to a limit.
const OBJECTS_PER_SEAT: usize = 100;
const SEATS_PER_LIST_MAX: usize = 10;

/// How many requests are worked on at a time.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Reads at a time; 0 for no limit.
    pub reads_max: u32,
    /// Writes at a time; 0 for no limit.
    pub writes_max: u32,
    /// Whether flow schemas and priority levels share out the sum of both.
    pub fair: bool,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            reads_max: 400,
            writes_max: 200,
            fair: true,
        }
    }
}

/// Lets requests in.
pub(crate) struct Flow {
    limits: Limits,
    reads: Arc<AtomicU32>,
    writes: Arc<AtomicU32>,
    /// `None` until the schemas and levels have been read: then only plain limits hold.
    plan: RwLock<Option<Arc<Plan>>>,
    hasher: RandomState,
    started: Instant,
}

/// Schemas and levels, ready for use.
struct Plan {
    schemas: Vec<(Schema, Arc<Place>)>,
}

/// A level as requests meet it.
struct Place {
    uid: HeaderValue,
    /// `None` if the level is exempt.
    level: Option<Arc<Level>>,
    /// No request takes more seats.
    width_max: u32,
}

/// What a request goes on with, or is refused with.
pub(crate) struct Admission {
    outcome: Outcome,
    named: Option<(HeaderValue, HeaderValue)>,
}

#[expect(dead_code, reason = "seats are held, not looked at")]
enum Outcome {
    Free,
    Seat(Seat),
    Counted(Counted),
    Refused { retry_after_seconds: u64 },
}

/// One of the requests under way; counted until dropped.
struct Counted(Arc<AtomicU32>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A request as its limits see it.
#[derive(Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub user: &'a User,
    pub info: &'a RequestInfo,
    pub query: &'a Query,
    /// How long the request may take in all.
    pub time: Duration,
}

impl Admission {
    /// The answer to a request that was refused.
    pub(crate) fn refusal(&self) -> Option<Response<Body>> {
        let Outcome::Refused {
            retry_after_seconds,
        } = self.outcome
        else {
            return None;
        };
        let text = "Too many requests, please try again later.\n";
        let mut refusal = answer::text(StatusCode::TOO_MANY_REQUESTS, text);
        let seconds = HeaderValue::from(retry_after_seconds);
        refusal.headers_mut().insert(header::RETRY_AFTER, seconds);
        Some(refusal)
    }

    /// Tells the client which schema and level its request met.
    pub(crate) fn name(&self, answer: &mut Response<Body>) {
        if let Some((schema, level)) = &self.named {
            let headers = answer.headers_mut();
            headers.insert(SCHEMA_UID, schema.clone());
            headers.insert(LEVEL_UID, level.clone());
        }
    }
}

impl Flow {
    pub(crate) fn new(limits: Limits) -> Flow {
        Flow {
            limits,
            reads: Arc::default(),
            writes: Arc::default(),
            plan: RwLock::new(None),
            hasher: RandomState::new(),
            started: Instant::now(),
        }
    }

    /// Waits until the request may go on, or refuses it.
    pub(crate) async fn admit(&self, resources: &Resources, asked: Asked<'_>) -> Admission {
        if asked.info.is_long_running() && asked.info.verb != "watch" {
            return Admission::free();
        }
        let plan = self.plan();
        let found = plan.as_ref().and_then(|plan| {
            let mut schemas = plan.schemas.iter();
            schemas.find(|(schema, _)| schema.matches(asked.user, asked.info))
        });
        let Some((schema, place)) = found else {
            return self.count(asked);
        };
        let named = Some((schema.uid.clone(), place.uid.clone()));
        let Some(level) = &place.level else {
            return Admission {
                outcome: Outcome::Free,
                named,
            };
        };
        let distinguisher = schema.distinguish(asked.user, asked.info);
        let flow = self.hasher.hash_one((schema.name.as_str(), distinguisher));
        let width = width(resources, asked, place.width_max).await;
        let now = Instant::now();
        let seat = match level.take(width, flow, now) {
            Taken::Seat(seat) => Some(seat),
            Taken::Refused => None,
            Taken::Wait(mut waiting) => {
                let wait = (asked.time / 4).min(WAIT_MAX);
                let waited = tokio::time::timeout(wait, waiting.seat()).await;
                waited.ok().flatten()
            }
        };
        let outcome = match seat {
            Some(seat) => Outcome::Seat(seat),
            None => Outcome::Refused {
                retry_after_seconds: level.refusals.count(self.started.elapsed().as_secs() + 1),
            },
        };
        Admission { outcome, named }
    }

    fn plan(&self) -> Option<Arc<Plan>> {
        let plan = self.plan.read().unwrap_or_else(PoisonError::into_inner);
        plan.clone()
    }

    /// The plain limits: so many reads and so many writes.
    fn count(&self, asked: Asked<'_>) -> Admission {
        if asked.info.verb == "watch" {
            return Admission::free();
        }
        let read = matches!(asked.info.verb, "get" | "list" | "watch");
        let (count, limit) = if read {
            (&self.reads, self.limits.reads_max)
        } else {
            (&self.writes, self.limits.writes_max)
        };
        if limit == 0 {
            return Admission::free();
        }
        let counted = Counted(Arc::clone(count));
        let before = count.fetch_add(1, Ordering::AcqRel);
        let outcome = if before < limit {
            Outcome::Counted(counted)
        } else if asked.user.is_master() {
            // Whoever has to put things right must get an answer.
            Outcome::Free
        } else {
            Outcome::Refused {
                retry_after_seconds: 1,
            }
        };
        Admission {
            outcome,
            named: None,
        }
    }

    /// Puts a new configuration in force. Levels keep their seats and queues by name.
    fn put(&self, plans: &[LevelPlan], schemas: Vec<Schema>, levels: &mut Levels) {
        let now = Instant::now();
        levels.configure(plans, self.total(), now);
        let places: HashMap<&str, Arc<Place>> = plans
            .iter()
            .map(|plan| {
                let kept = levels.0.get(&plan.name).filter(|_| !plan.exempt);
                let place = Place {
                    uid: plan.uid.clone(),
                    level: kept.map(|kept| Arc::clone(&kept.level)),
                    width_max: kept.map_or(1, |kept| (kept.nominal * 15).div_ceil(100).max(1)),
                };
                (plan.name.as_str(), Arc::new(place))
            })
            .collect();
        let mut schemas: Vec<(Schema, Arc<Place>)> = schemas
            .into_iter()
            .filter_map(|schema| {
                let place = Arc::clone(places.get(schema.level.as_str())?);
                Some((schema, place))
            })
            .collect();
        schemas.sort_by(|(one, _), (other, _)| {
            (one.precedence, &one.name).cmp(&(other.precedence, &other.name))
        });
        let plan = Arc::new(Plan { schemas });
        *self.plan.write().unwrap_or_else(PoisonError::into_inner) = Some(plan);
    }

    fn total(&self) -> u32 {
        self.limits.reads_max.saturating_add(self.limits.writes_max)
    }
}

impl Admission {
    fn free() -> Admission {
        Admission {
            outcome: Outcome::Free,
            named: None,
        }
    }
}

/// The limited levels by name, and what they lend each other.
#[derive(Default)]
struct Levels(HashMap<Text, Kept>);

struct Kept {
    level: Arc<Level>,
    nominal: u32,
    lendable: u32,
    borrowable: Option<u32>,
    /// What it wanted of late; falls slowly.
    demand: f64,
}

/// How much of the demand before counts in the demand of now.
const DEMAND_SMOOTHING: f64 = 0.977;

impl Levels {
    fn configure(&mut self, plans: &[LevelPlan], total: u32, now: Instant) {
        let shares: u64 = plans.iter().map(|plan| u64::from(plan.shares)).sum();
        self.0.retain(|name, _| {
            let mut plans = plans.iter();
            plans.any(|plan| plan.name == *name && !plan.exempt)
        });
        for plan in plans.iter().filter(|plan| !plan.exempt) {
            let nominal = (u64::from(total) * u64::from(plan.shares)).div_ceil(shares.max(1));
            let nominal = u32::try_from(nominal).unwrap_or(u32::MAX);
            let percent = |percent: u32| (nominal * percent + 50) / 100;
            let kept = self.0.entry(plan.name.clone()).or_insert_with(|| Kept {
                level: Level::new(nominal, plan.queuing, now),
                nominal,
                lendable: 0,
                borrowable: None,
                demand: 0.0,
            });
            kept.lendable = percent(plan.lendable_percent);
            kept.borrowable = plan.borrowing_percent.map(percent);
            kept.level.configure(plan.queuing);
            if kept.nominal != nominal {
                kept.nominal = nominal;
                kept.level.set_limit(nominal, now);
            }
        }
    }

    /// Lends seats of idle levels to busy ones.
    fn lend(&mut self, now: Instant) {
        let mut needs = Vec::with_capacity(self.0.len());
        for kept in self.0.values_mut() {
            let demand = f64::from(kept.level.take_demand());
            let smoothed = DEMAND_SMOOTHING * kept.demand + (1.0 - DEMAND_SMOOTHING) * demand;
            kept.demand = smoothed.max(demand);
            needs.push(lending::Need {
                nominal: kept.nominal,
                lendable: kept.lendable,
                borrowable: kept.borrowable,
                demand: kept.demand.ceil() as u32,
            });
        }
        for (kept, seats) in self.0.values().zip(lending::allocate(&needs)) {
            if kept.level.limit() != seats {
                kept.level.set_limit(seats, now);
            }
        }
    }
}

/// How many seats a request takes: lists by what they read, everything else one.
async fn width(resources: &Resources, asked: Asked<'_>, width_max: u32) -> u32 {
    let Some(path) = asked.info.resource.as_ref() else {
        return 1;
    };
    let lists = match asked.info.verb {
        "list" => true,
        "watch" => {
            let version = asked.query.text("resourceVersion").unwrap_or_default();
            asked.query.flag("sendInitialEvents") || matches!(version, "" | "0")
        }
        _ => false,
    };
    if !lists || !path.name.is_empty() {
        return 1;
    }
    let catalogue = resources.catalogue();
    let Some(kind) = catalogue.resource(&path.group, &path.version, &path.resource) else {
        return 1;
    };
    let prefix = match path.namespace.as_str() {
        "" => String::new(),
        namespace => format!("{namespace}/"),
    };
    let objects = resources.store().count(&kind.collection, &prefix).await;
    let limit = asked.query.text("limit").and_then(|text| text.parse().ok());
    let read = match limit {
        Some(limit) if limit > 0 => objects.min(limit),
        _ => objects,
    };
    let seats = read.div_ceil(OBJECTS_PER_SEAT).clamp(1, SEATS_PER_LIST_MAX);
    u32::try_from(seats).unwrap_or(1).min(width_max)
}
