//! A server inside a test.
//!
//! [`TestServer::start`] runs the `windlass` binary on a free port and a fresh directory; dropped,
//! it is killed and the directory removed. Many may run at once.
//!
//! ```no_run
//! # fn main() -> Result<(), windlass_testkit::Error> {
//! use windlass_testkit::TestServer;
//!
//! let mut server = TestServer::start()?;
//! println!("try: KUBECONFIG={} kubectl get namespaces", server.kubeconfig().display());
//! server.kill();
//! server.restart()?; // the same objects, another port
//! # Ok(())
//! # }
//! ```

mod directory;
mod error;
mod process;

pub use error::Error;
pub use process::{Launch, TestServer};
