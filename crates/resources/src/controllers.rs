//! Small controllers for a server without a kube-controller-manager.
//!
//! They do what users expect of a server that stands alone, write through the same path as
//! everyone else, and can be left out one by one. Each is a task that starts over when it falls
//! behind the history.

mod garbage;
mod namespaces;
mod policies;
mod quota;
mod roles;

use std::sync::Arc;
use std::time::Duration;

use auth::User;
use kinds::Kind;
use tokio::task::JoinSet;
use tracing::debug;

use crate::options::WriteOptions;
use crate::{Request, Resources, Warnings};

/// A controller that failed is started again after this long.
const START_OVER: Duration = Duration::from_millis(50);
/// What is not done is looked at again after this long, then after longer.
const AGAIN_FIRST: Duration = Duration::from_millis(50);
const AGAIN_LAST: Duration = Duration::from_secs(5);
/// Objects that are written side by side, so that they share syncs.
const WRITES_AT_A_TIME: usize = 64;
/// Whose fields they are that controllers write; upstream they all live in one process.
const MANAGER: &str = "kube-controller-manager";

/// A controller, by the name that kube-controller-manager gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Controller {
    /// Aggregates cluster roles.
    ClusterRoleAggregation,
    /// Collects dependents whose owners are gone.
    GarbageCollector,
    /// Empties namespaces that are deleted.
    Namespace,
    /// Counts what quotas limit.
    ResourceQuota,
    /// Puts the certificate of the API into each namespace.
    RootCertificate,
    /// Makes the service account `default` in each namespace.
    ServiceAccount,
    /// Says which expressions of policies do not fit the kinds they match.
    PolicyStatus,
}

impl Controller {
    /// All of them, by name.
    pub const ALL: [Controller; 7] = [
        Controller::ClusterRoleAggregation,
        Controller::GarbageCollector,
        Controller::Namespace,
        Controller::ResourceQuota,
        Controller::RootCertificate,
        Controller::ServiceAccount,
        Controller::PolicyStatus,
    ];

    /// The name.
    pub fn name(self) -> &'static str {
        match self {
            Controller::ClusterRoleAggregation => "clusterrole-aggregation-controller",
            Controller::GarbageCollector => "garbage-collector-controller",
            Controller::Namespace => "namespace-controller",
            Controller::ResourceQuota => "resourcequota-controller",
            Controller::RootCertificate => "root-ca-certificate-publisher-controller",
            Controller::ServiceAccount => "serviceaccount-controller",
            Controller::PolicyStatus => "validatingadmissionpolicy-status-controller",
        }
    }
}

impl Resources {
    /// Runs controllers until the task is dropped; `certificate` is that of the API's authority.
    pub async fn run_controllers(self, which: Vec<Controller>, certificate: String) {
        let mut tasks = JoinSet::new();
        let runs = |controller| which.contains(&controller);
        if runs(Controller::GarbageCollector) {
            tasks.spawn(garbage::run(self.clone()));
        }
        if runs(Controller::ClusterRoleAggregation) {
            tasks.spawn(roles::run(self.clone()));
        }
        if runs(Controller::PolicyStatus) {
            tasks.spawn(policies::run(self.clone()));
        }
        if runs(Controller::ResourceQuota) {
            tasks.spawn(quota::run(self.clone()));
        }
        let of_namespaces = namespaces::Tasks {
            empty: runs(Controller::Namespace),
            account: runs(Controller::ServiceAccount),
            certificate: runs(Controller::RootCertificate).then_some(certificate),
        };
        tasks.spawn(namespaces::run(self, of_namespaces));
        while tasks.join_next().await.is_some() {}
    }

    /// Every kind whose objects can be deleted, once, in the form that is stored.
    fn deletable_kinds(&self) -> Vec<Arc<Kind>> {
        let deletable = |kind: &&Arc<Kind>| kind.verbs.iter().any(|verb| verb == "delete");
        let catalogue = self.catalogue();
        let kinds = catalogue.stored_forms().filter(deletable);
        kinds.map(Arc::clone).collect()
    }
}

/// Who a controller is when it writes.
#[derive(Clone)]
struct Identity {
    user: Arc<User>,
    options: WriteOptions,
}

impl Identity {
    fn new(manager: &str) -> Identity {
        Identity {
            user: Arc::new(User::server()),
            options: WriteOptions {
                manager: manager.into(),
                ..WriteOptions::default()
            },
        }
    }

    /// A request about the object of a stored name, `namespace/name` or `name`.
    fn request<'a>(
        &'a self,
        kind: &'a Arc<Kind>,
        stored_name: &'a str,
        warnings: &'a Warnings,
    ) -> Request<'a> {
        let (namespace, name) = stored_name.rsplit_once('/').unwrap_or(("", stored_name));
        Request {
            kind,
            namespace,
            name,
            subresource: "",
            user: &self.user,
            options: &self.options,
            warnings,
        }
    }
}

/// Runs a controller again and again: it ends when it fell behind the history.
async fn again_and_again<F, R>(name: &str, mut start: F)
where
    F: FnMut() -> R,
    R: Future<Output = Result<(), store::Error>>,
{
    loop {
        match start().await {
            Ok(()) | Err(store::Error::Closed) => return,
            Err(error) => debug!(controller = name, %error, "a controller starts over"),
        }
        tokio::time::sleep(START_OVER).await;
    }
}
