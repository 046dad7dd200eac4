//! A server inside a test.
//!
//! [`TestServer::start`] runs the `windlass` binary on a free port and a fresh directory; dropped,
//! it is killed and the directory removed. Many may run at once.
//!
//! ```no_run
//! use k8s_openapi::api::core::v1::Namespace;
//! use kube::config::{Config, Kubeconfig};
//! use kube::{Api, Client};
//! use windlass_testkit::TestServer;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = TestServer::start()?;
//! let kubeconfig = Kubeconfig::read_from(server.kubeconfig())?;
//! let config = Config::from_custom_kubeconfig(kubeconfig, &Default::default()).await?;
//! let namespaces: Api<Namespace> = Api::all(Client::try_from(config)?);
//! assert!(namespaces.get_opt("default").await?.is_some());
//! # Ok(())
//! # }
//! ```

mod directory;
mod error;
mod process;

pub use error::Error;
pub use process::{Launch, TestServer};
