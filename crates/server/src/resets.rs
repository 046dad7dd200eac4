//! Requests that their clients take back before they are answered, on one HTTP/2 connection.
//!
//! A stream costs its client a few bytes to open and fewer to reset, and us a request begun. Now
//! and then that is anybody's right; a connection that does little else is closed.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

/// So many may be taken back at once,
const BURST: u32 = 500;
/// and one more in this time, again and again.
const REFILL: Duration = Duration::from_millis(20);

/// What a connection may still take back.
pub(crate) struct Resets {
    left: Mutex<(u32, Instant)>,
    spent: Notify,
}

impl Resets {
    pub(crate) fn new() -> Resets {
        Resets {
            left: Mutex::new((BURST, Instant::now())),
            spent: Notify::new(),
        }
    }

    /// Waits until more was taken back than may be.
    pub(crate) async fn spent(&self) {
        self.spent.notified().await;
    }

    fn count(&self, now: Instant) {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut count, since) = *left;
        let periods = now.saturating_duration_since(since).as_nanos() / REFILL.as_nanos();
        let periods = u32::try_from(periods).unwrap_or(u32::MAX);
        count = count.saturating_add(periods).min(BURST);
        let since = if periods > 0 { now } else { since };
        match count.checked_sub(1) {
            Some(count) => *left = (count, since),
            None => {
                *left = (0, since);
                self.spent.notify_one();
            }
        }
    }
}

/// A request under way; one that is dropped before its answer is counted.
pub(crate) struct UnderWay {
    resets: std::sync::Arc<Resets>,
    answered: bool,
}

impl UnderWay {
    pub(crate) fn new(resets: &std::sync::Arc<Resets>) -> UnderWay {
        UnderWay {
            resets: std::sync::Arc::clone(resets),
            answered: false,
        }
    }

    pub(crate) fn answered(mut self) {
        self.answered = true;
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        if !self.answered {
            self.resets.count(Instant::now());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_flood_is_noticed_and_a_trickle_is_not() {
        let resets = Arc::new(Resets::new());
        for _ in 0..10 * BURST {
            drop(UnderWay::new(&resets));
            tokio::time::advance(REFILL).await;
        }
        assert_eq!(resets.spent().now_or_never(), None);
        for _ in 0..10 * BURST {
            UnderWay::new(&resets).answered();
        }
        assert_eq!(resets.spent().now_or_never(), None);
        for _ in 0..=BURST {
            drop(UnderWay::new(&resets));
        }
        assert_eq!(resets.spent().now_or_never(), Some(()));
    }
}
