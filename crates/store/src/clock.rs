//! The time, handed in: history ages and keys expire by this clock and no other.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Tells the time of day.
pub trait Clock: Send + Sync + 'static {
    /// Milliseconds since the start of 1970, UTC.
    fn now_millis(&self) -> u64;
}

/// The clock of the machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now_millis(&self) -> u64 {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        // A clock before 1970 is a broken clock; the store only needs it not to go backwards.
        since.map_or(0, |elapsed| {
            u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX)
        })
    }
}

/// A clock that moves only when told to.
#[derive(Debug, Default)]
pub struct FalseClock(AtomicU64);

impl FalseClock {
    /// A clock that stands at `millis`.
    pub fn new(millis: u64) -> FalseClock {
        FalseClock(AtomicU64::new(millis))
    }

    /// Moves the clock on.
    pub fn advance(&self, by: Duration) {
        let millis = u64::try_from(by.as_millis()).unwrap_or(u64::MAX);
        self.0.fetch_add(millis, Ordering::SeqCst);
    }
}

impl Clock for FalseClock {
    fn now_millis(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}
