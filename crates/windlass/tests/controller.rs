//! A controller as users write them with the `kube` crate, through its whole loop: a derived
//! definition, a finalizer, a child by Server-Side Apply, the status, repair and deletion.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::runtime::controller::{Action, Controller};
use kube::runtime::finalizer::{self, Event, finalizer};
use kube::runtime::wait::{Condition, await_condition, conditions};
use kube::runtime::watcher;
use kube::{Api, Client, CustomResource, CustomResourceExt as _, Resource as _, ResourceExt as _};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::rust_client::{client, start};

const FINALIZER: &str = "lamps.example.com/switch-off";
const MANAGER: &str = "lamp-controller";
/// Long enough for a busy machine; reached only when the loop does not close.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "example.com",
    version = "v1",
    kind = "Lamp",
    namespaced,
    status = "LampStatus"
)]
struct LampSpec {
    colour: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
struct LampStatus {
    lit: String,
    generation: i64,
}

struct Context {
    client: Client,
    switched_off: AtomicUsize,
}

type Failure = finalizer::Error<kube::Error>;

async fn reconcile(lamp: Arc<Lamp>, context: Arc<Context>) -> Result<Action, Failure> {
    let lamps: Api<Lamp> = Api::default_namespaced(context.client.clone());
    finalizer(&lamps, FINALIZER, lamp, |event| async {
        match event {
            Event::Apply(lamp) => light(&lamp, &context.client).await,
            Event::Cleanup(_) => {
                context.switched_off.fetch_add(1, Ordering::SeqCst);
                Ok(Action::await_change())
            }
        }
    })
    .await
}

/// Makes the child as the lamp wants it, and says so in the status.
async fn light(lamp: &Lamp, client: &Client) -> Result<Action, kube::Error> {
    let parameters = PatchParams::apply(MANAGER).force();
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let child = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": lamp.name_any(), "ownerReferences": [lamp.controller_owner_ref(&())]},
        "data": {"colour": lamp.spec.colour},
    });
    maps.patch(&lamp.name_any(), &parameters, &Patch::Apply(child))
        .await?;
    let lamps: Api<Lamp> = Api::default_namespaced(client.clone());
    let status = LampStatus {
        lit: lamp.spec.colour.clone(),
        generation: lamp.metadata.generation.unwrap_or_default(),
    };
    let status = json!({"apiVersion": "example.com/v1", "kind": "Lamp", "status": status});
    lamps
        .patch_status(&lamp.name_any(), &parameters, &Patch::Apply(status))
        .await?;
    Ok(Action::await_change())
}

async fn wait_for<K>(api: &Api<K>, name: &str, condition: impl Condition<K>)
where
    K: kube::Resource + Clone + std::fmt::Debug + Send + serde::de::DeserializeOwned + 'static,
{
    tokio::time::timeout(PATIENCE, await_condition(api.clone(), name, condition))
        .await
        .expect("the loop closes in time")
        .unwrap();
}

fn has_colour(colour: &'static str) -> impl Condition<ConfigMap> {
    move |map: Option<&ConfigMap>| {
        let data = map.and_then(|map| map.data.as_ref());
        data.and_then(|data| data.get("colour"))
            .is_some_and(|found| found == colour)
    }
}

fn is_lit(colour: &'static str, generation: i64) -> impl Condition<Lamp> {
    move |lamp: Option<&Lamp>| {
        let wanted = LampStatus {
            lit: colour.to_owned(),
            generation,
        };
        lamp.and_then(|lamp| lamp.status.as_ref()) == Some(&wanted)
    }
}

#[tokio::test]
async fn a_controller_of_a_derived_kind_runs_its_whole_loop() {
    let server = start();
    let client = client(&server).await;
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let definition = Lamp::crd();
    definitions
        .patch(
            &definition.name_any(),
            &PatchParams::apply("installer"),
            &Patch::Apply(&definition),
        )
        .await
        .unwrap();
    let established = conditions::is_crd_established();
    wait_for(&definitions, &definition.name_any(), established).await;

    let lamps: Api<Lamp> = Api::default_namespaced(client.clone());
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let context = Arc::new(Context {
        client: client.clone(),
        switched_off: AtomicUsize::new(0),
    });
    let controller = Controller::new(lamps.clone(), watcher::Config::default())
        .owns(maps.clone(), watcher::Config::default())
        .run(
            reconcile,
            |_, _, _| Action::requeue(Duration::from_millis(100)),
            Arc::clone(&context),
        )
        .for_each(|_| async {});
    let controller = tokio::spawn(controller);

    let lamp = Lamp::new(
        "desk",
        LampSpec {
            colour: "amber".to_owned(),
        },
    );
    lamps.create(&PostParams::default(), &lamp).await.unwrap();
    wait_for(&maps, "desk", has_colour("amber")).await;
    wait_for(&lamps, "desk", is_lit("amber", 1)).await;

    let change = json!({"spec": {"colour": "green"}});
    lamps
        .patch("desk", &PatchParams::default(), &Patch::Merge(change))
        .await
        .unwrap();
    wait_for(&maps, "desk", has_colour("green")).await;
    wait_for(&lamps, "desk", is_lit("green", 2)).await;

    // What somebody else breaks, the controller repairs.
    let broken = maps.get("desk").await.unwrap().uid().unwrap();
    maps.delete("desk", &DeleteParams::default()).await.unwrap();
    wait_for(&maps, "desk", has_colour("green")).await;
    let child = maps.get("desk").await.unwrap();
    assert_ne!(child.uid().unwrap(), broken);
    let managers = child.metadata.managed_fields.unwrap();
    assert_eq!(managers.len(), 1);
    assert_eq!(managers[0].manager.as_deref(), Some(MANAGER));
    assert_eq!(managers[0].operation.as_deref(), Some("Apply"));

    let lamp = lamps.get("desk").await.unwrap();
    assert_eq!(lamp.finalizers(), [FINALIZER]);
    lamps
        .delete("desk", &DeleteParams::default())
        .await
        .unwrap();
    wait_for(&lamps, "desk", conditions::is_deleted(&lamp.uid().unwrap())).await;
    let child = child.metadata.uid.unwrap();
    wait_for(&maps, "desk", conditions::is_deleted(&child)).await;
    assert_eq!(context.switched_off.load(Ordering::SeqCst), 1);
    controller.abort();
}
