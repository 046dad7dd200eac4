//! Asking other servers: the door through which this room reaches the network, opened by others.

use std::pin::Pin;

/// An answer that is being waited for: its body, or what went wrong.
pub type Asking<'a> = Pin<Box<dyn Future<Output = Result<Vec<u8>, String>> + Send + 'a>>;

/// Reaches other servers over HTTPS. Answers are bounded in size and time.
pub trait Outside: Send + Sync {
    /// Sends JSON, or only asks if there is none.
    fn ask<'a>(&'a self, url: &'a str, body: Option<Vec<u8>>) -> Asking<'a>;
}
