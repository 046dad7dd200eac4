//! Keeps the configuration of flow control as it is stored, and tells schemas how they stand.
//!
//! One task: it reads schemas and levels, follows their changes, lends seats every ten seconds and
//! writes the `Dangling` condition of schemas through the same write path as everyone else.

use std::sync::Arc;
use std::time::Duration;

use kinds::{Catalogue, Kind};
use object::{Map, Value};
use resources::record::Stored;
use resources::{Error, Record, Resources};
use store::Range;
use tokio::time::{Instant, interval, sleep};
use tracing::{debug, warn};

use super::schema::{LevelPlan, Schema};
use super::{Flow, Levels};

const GROUP: &str = "flowcontrol.apiserver.k8s.io";
const MANAGER: &str = "api-priority-and-fairness-config-consumer-v1";
/// How often seats of idle levels are lent anew.
const LEND_EVERY: Duration = Duration::from_secs(10);
const AGAIN_AFTER: Duration = Duration::from_millis(200);

/// A level as it is written down, with its name first.
type Objects = Vec<Map>;

impl Flow {
    /// Reads the configuration, so that it holds from the first request on, and then follows it.
    pub(crate) async fn follow(&self, resources: &Resources) {
        if !self.limits.fair {
            return;
        }
        let mut levels = Levels::default();
        loop {
            // It ends when it fell behind the history: then everything is read again.
            if let Err(error) = self.run(resources, &mut levels).await {
                debug!(%error, "flow control reads its configuration again");
            }
            sleep(AGAIN_AFTER).await;
        }
    }

    /// Reads the configuration once.
    pub(crate) async fn load(&self, resources: &Resources) -> Result<(), store::Error> {
        if self.limits.fair {
            let (schemas, levels) = kinds();
            let schemas = read(resources, schemas).await?;
            let plans = read(resources, levels).await?;
            self.put_objects(&schemas, &plans, &mut Levels::default());
        }
        Ok(())
    }

    async fn run(&self, resources: &Resources, levels: &mut Levels) -> Result<(), store::Error> {
        let (schema_kind, level_kind) = kinds();
        let store = resources.store();
        let from = store.revision();
        let mut schema_events = store.watch(&schema_kind.collection, from).await?;
        let mut level_events = store.watch(&level_kind.collection, from).await?;
        let mut lend = interval(LEND_EVERY);
        loop {
            let schemas = read(resources, schema_kind).await?;
            let plans = read(resources, level_kind).await?;
            self.put_objects(&schemas, &plans, levels);
            tell(resources, schema_kind, &schemas, &plans).await;
            loop {
                tokio::select! {
                    event = schema_events.next() => { event?; break }
                    event = level_events.next() => { event?; break }
                    _ = lend.tick() => levels.lend(Instant::now()),
                }
            }
            // What changed together is taken in together.
            while schema_events.try_next()?.is_some() {}
            while level_events.try_next()?.is_some() {}
        }
    }

    fn put_objects(&self, schemas: &Objects, plans: &Objects, levels: &mut Levels) {
        let plans: Vec<LevelPlan> = plans.iter().filter_map(LevelPlan::read).collect();
        let schemas: Vec<Schema> = schemas.iter().filter_map(Schema::read).collect();
        self.put(&plans, schemas, levels);
    }
}

fn kinds() -> (&'static Arc<Kind>, &'static Arc<Kind>) {
    let kind = |resource| {
        let kind = Catalogue::builtin().resource(GROUP, "v1", resource);
        kind.expect("flow control is built in")
    };
    (kind("flowschemas"), kind("prioritylevelconfigurations"))
}

async fn read(resources: &Resources, kind: &Arc<Kind>) -> Result<Objects, store::Error> {
    let page = resources
        .store()
        .range(&kind.collection, Range::default())
        .await?;
    let tree = |record: &Record| {
        let stored = Stored::new(&record.value).ok()?;
        stored.tree(Some(record.revision)).ok()
    };
    Ok(page.records.iter().filter_map(tree).collect())
}

/// Writes into each schema whether its level exists, where that is not there yet.
async fn tell(resources: &Resources, kind: &Arc<Kind>, schemas: &Objects, plans: &Objects) {
    let name_of = |object: &Map| {
        let name = object
            .get("metadata")
            .and_then(|meta| meta.str_at(&["name"]));
        name.unwrap_or_default().to_owned()
    };
    let mut tasks = tokio::task::JoinSet::new();
    for schema in schemas {
        let level = object_text(schema, &["priorityLevelConfiguration", "name"]);
        let exists = plans.iter().any(|plan| name_of(plan) == level);
        let (status, reason, tail) = if exists {
            ("False", "Found", "and it exists")
        } else {
            ("True", "NotFound", "but there is no such object")
        };
        let message = format!(
            "This FlowSchema references the PriorityLevelConfiguration object named \"{level}\" \
             {tail}"
        );
        if is_told(schema, [status, reason, &message]) {
            continue;
        }
        let name = name_of(schema);
        let (resources, kind) = (resources.clone(), Arc::clone(kind));
        tasks.spawn(async move {
            let condition = [
                ("type", "Dangling"),
                ("status", status),
                ("reason", reason),
                ("message", &message),
            ];
            resources
                .apply_condition(&kind, &name, MANAGER, &condition)
                .await
        });
    }
    while let Some(done) = tasks.join_next().await {
        match done {
            Ok(Ok(()) | Err(Error::NotFound(_))) => {}
            Ok(Err(error)) => warn!(%error, "cannot write the condition of a flow schema"),
            Err(error) => warn!(%error, "cannot write the condition of a flow schema"),
        }
    }
}

fn object_text<'a>(schema: &'a Map, path: &[&str]) -> &'a str {
    let spec = schema.get("spec");
    spec.and_then(|spec| spec.str_at(path)).unwrap_or_default()
}

fn is_told(schema: &Map, told: [&str; 3]) -> bool {
    let conditions = schema
        .get("status")
        .and_then(|status| status.get("conditions"))
        .and_then(Value::as_array)
        .unwrap_or_default();
    let dangling = conditions
        .iter()
        .find(|condition| condition.str_at(&["type"]) == Some("Dangling"));
    dangling.is_some_and(|condition| {
        ["status", "reason", "message"].map(|field| condition.str_at(&[field])) == told.map(Some)
    })
}
