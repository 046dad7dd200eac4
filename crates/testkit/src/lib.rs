//! A server inside a test.
//!
//! [`InProcess::start`] runs one on threads of the test itself, with its objects in memory;
//! [`TestServer::start`] runs the `windlass` binary, which can be killed as a machine fails. Either
//! has a free port and a fresh directory of its own, so many may run at once; dropped, it is
//! stopped and the directory removed.
//!
//! ```
//! use k8s_openapi::api::core::v1::Namespace;
//! use kube::config::{Config, Kubeconfig};
//! use kube::{Api, Client};
//! use windlass_testkit::InProcess;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = InProcess::start()?;
//! let kubeconfig = Kubeconfig::read_from(server.kubeconfig())?;
//! let config = Config::from_custom_kubeconfig(kubeconfig, &Default::default()).await?;
//! let namespaces: Api<Namespace> = Api::all(Client::try_from(config)?);
//! assert!(namespaces.get_opt("default").await?.is_some());
//! # Ok(())
//! # }
//! ```
//!
//! [`Launch`] passes flags of `windlass serve` to either form:
//!
//! ```
//! use windlass_testkit::{Launch, Storage};
//!
//! # fn main() -> Result<(), windlass_testkit::Error> {
//! let mut server = Launch::new()
//!     .flag("--controllers=none")
//!     .start_in_process(Storage::Disk)?;
//! server.restart()?;
//! # Ok(())
//! # }
//! ```

mod directory;
mod error;
mod in_process;
mod process;

pub use error::Error;
pub use in_process::{InProcess, Storage};
pub use process::{Launch, TestServer};
