//! Connections to the server of another API, kept for the next request.
//!
//! A connection goes back as soon as the head of an answer is there, and is taken again when its
//! body has been read: until then it says that it is busy. Those that ended, or lay idle too long,
//! are dropped when somebody looks for one.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use hyper::client::conn::http1::SendRequest;
use tokio::time::Instant;

/// A connection is not used again after this long: the other side may be about to close it.
const IDLE_MAX: Duration = Duration::from_secs(60);
/// So many are kept; the oldest goes first, and ends after the answer that it carries.
const KEPT_MAX: usize = 32;

/// Connections that may be used again.
pub(super) struct Pool<B>(Mutex<Vec<Kept<B>>>);

struct Kept<B> {
    place: String,
    sender: SendRequest<B>,
    since: Instant,
}

impl<B> Default for Pool<B> {
    fn default() -> Pool<B> {
        Pool(Mutex::default())
    }
}

impl<B> Pool<B> {
    /// A connection to this place that waits for a request.
    pub(super) fn take(&self, place: &str) -> Option<SendRequest<B>> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        kept.retain(|it| {
            let is_old = it.sender.is_ready() && now.duration_since(it.since) > IDLE_MAX;
            !it.sender.is_closed() && !is_old
        });
        let at = kept
            .iter()
            .rposition(|it| it.place == place && it.sender.is_ready())?;
        Some(kept.swap_remove(at).sender)
    }

    /// Keeps a connection whose last request is on its way.
    pub(super) fn put(&self, place: &str, sender: SendRequest<B>) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= KEPT_MAX {
            kept.remove(0);
        }
        kept.push(Kept {
            place: place.to_owned(),
            sender,
            since: Instant::now(),
        });
    }
}
