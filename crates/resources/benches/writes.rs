//! What a write costs without network and disk: bodies in, committed records out.
//!
//! `cargo bench -p windlass-resources` measures every workload, `-- NAME` one of them. The objects
//! live in memory; each line gives the best of ten rounds, because anything else measures the
//! machine's other work.

#![allow(clippy::print_stdout, reason = "the figures are what it is for")]

use std::{hint::black_box, sync::Arc, time::Instant};

use auth::User;
use object::Text;
use resources::admission::Chain;
use resources::body::{Body, Media};
use resources::options::WriteOptions;
use resources::{Error, Request, Resources, Warnings, Written};
use store::{Options, Store, SystemClock};
use windlass_resources as resources;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const ROUNDS: usize = 10;
const OBJECTS: usize = 300;

/// Workloads in the order in which they build on each other.
const WORKLOADS: [(&str, Write); 6] = [
    ("create", Write::Create),
    ("update", Write::Update),
    (
        "apply-create",
        Write::Apply {
            by: "new",
            force: false,
        },
    ),
    (
        "apply-change",
        Write::Apply {
            by: "one",
            force: false,
        },
    ),
    (
        "apply-second",
        Write::Apply {
            by: "two",
            force: true,
        },
    ),
    (
        "apply-conflict",
        Write::Apply {
            by: "three",
            force: false,
        },
    ),
];

#[derive(Clone, Copy)]
enum Write {
    Create,
    Update,
    Apply { by: &'static str, force: bool },
}

fn main() {
    let chosen = std::env::args().skip(1).find(|it| !it.starts_with('-'));
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let runtime = runtime.expect("a runtime of one thread");
    runtime.block_on(async {
        let bench = Bench::new().await;
        for (name, write) in WORKLOADS {
            if chosen.as_deref().is_none_or(|chosen| chosen == name) {
                let best = bench.best(write).await;
                println!("{name:<16} {best:>8.1} us");
            }
        }
    });
}

struct Bench {
    resources: Resources,
    user: User,
}

impl Bench {
    async fn new() -> Bench {
        let clock = Arc::new(SystemClock);
        let store = Store::memory(Options {
            clock: clock.clone(),
            ..Options::default()
        });
        let chain = Chain::without(&["ServiceAccount".to_owned()]);
        let resources = Resources::new(store, clock, chain);
        let address = "127.0.0.1:6443".parse().expect("an address");
        let bootstrap = resources.bootstrap(address).await;
        bootstrap.expect("objects of the start can be written");
        let user = User::authenticated("admin", "admin", &["system:masters"]);
        Bench { resources, user }
    }

    /// Microseconds of one write in the fastest round.
    async fn best(&self, write: Write) -> f64 {
        self.prepare(write).await;
        let mut best = f64::INFINITY;
        for round in 0..ROUNDS {
            let bodies: Vec<(String, Body)> = (0..OBJECTS)
                .map(|number| match write {
                    Write::Create => config_map(&format!("new-{round}-{number}"), round),
                    Write::Update => config_map(&format!("old-{number}"), round + 1),
                    Write::Apply { by: "new", .. } => {
                        deployment(&format!("new-{round}-{number}"), "app")
                    }
                    Write::Apply { by, .. } => {
                        deployment(&format!("old-{number}"), &format!("{by}:{round}"))
                    }
                })
                .collect();
            let start = Instant::now();
            for (name, body) in &bodies {
                let _ = black_box(self.write(write, name, body).await);
            }
            let each = start.elapsed().as_secs_f64() * 1e6 / OBJECTS as f64;
            best = best.min(each);
        }
        best
    }

    /// Makes the objects that the workload changes.
    async fn prepare(&self, write: Write) {
        for number in 0..OBJECTS {
            let name = format!("old-{number}");
            let (_, map) = config_map(&name, 0);
            let (_, dep) = deployment(&name, "app:1");
            let first = Write::Apply {
                by: "one",
                force: true,
            };
            let wanted = match write {
                Write::Update => self.write(Write::Create, &name, &map).await,
                Write::Apply { by, .. } if by != "new" => self.write(first, &name, &dep).await,
                _ => continue,
            };
            wanted.expect("an object of the workload can be made");
        }
    }

    async fn write(&self, write: Write, name: &str, body: &Body) -> Result<Written, Error> {
        let (group, resource) = match write {
            Write::Apply { .. } => ("apps", "deployments"),
            Write::Create | Write::Update => ("", "configmaps"),
        };
        let catalogue = kinds::Catalogue::builtin();
        let kind = catalogue.resource(group, "v1", resource);
        let (manager, force) = match write {
            Write::Apply { by, force } => (by, force),
            Write::Create | Write::Update => ("bench", false),
        };
        let options = WriteOptions {
            manager: Text::from(manager),
            force,
            ..WriteOptions::default()
        };
        let created = matches!(write, Write::Create);
        let request = Request {
            kind: kind.expect("the kind is built in"),
            namespace: "default",
            name: if created { "" } else { name },
            subresource: "",
            user: &self.user,
            options: &options,
            warnings: &Warnings::default(),
        };
        match write {
            Write::Create => self.resources.create(&request, body).await,
            Write::Update => self.resources.update(&request, body).await,
            Write::Apply { .. } => self.resources.apply(&request, body).await,
        }
    }
}

fn config_map(name: &str, value: usize) -> (String, Body) {
    let text = format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}","labels":
        {{"app":"bench","shard":"s1"}}}},"data":{{"value":"{value}","payload":"{}"}}}}"#,
        "x".repeat(900)
    );
    (name.to_owned(), body(text))
}

fn deployment(name: &str, image: &str) -> (String, Body) {
    let text = format!(
        r#"{{"apiVersion":"apps/v1","kind":"Deployment","metadata":{{"name":"{name}","labels":
        {{"app":"bench"}}}},"spec":{{"replicas":3,"selector":{{"matchLabels":{{"app":"{name}"}}}},
        "template":{{"metadata":{{"labels":{{"app":"{name}"}}}},"spec":{{"containers":[{{"name":
        "main","image":"{image}","ports":[{{"containerPort":8080,"name":"http"}}],"env":[{{"name":
        "A","value":"1"}},{{"name":"B","value":"2"}},{{"name":"C","value":"3"}}],"resources":
        {{"requests":{{"cpu":"100m","memory":"64Mi"}},"limits":{{"memory":"128Mi"}}}},
        "volumeMounts":[{{"name":"cfg","mountPath":"/etc/cfg"}}],"readinessProbe":{{"httpGet":
        {{"path":"/ready","port":8080}}}}}},{{"name":"sidecar","image":"proxy:1","args":["-c",
        "/etc/proxy.yaml"]}}],"volumes":[{{"name":"cfg","configMap":{{"name":"cfg"}}}}]}}}}}}}}"#
    );
    (name.to_owned(), body(text))
}

fn body(text: String) -> Body {
    Body {
        media: Media::Json,
        bytes: text.into_bytes().into(),
    }
}
