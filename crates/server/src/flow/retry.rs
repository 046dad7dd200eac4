//! How long a refused client is told to stay away: longer while many are refused.
//!
//! Contract: `dropped_requests_tracker.go` of the API server's `flowcontrol`.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// The longest a client is sent away for, in seconds.
const RETRY_AFTER_SECONDS_MAX: u64 = 32;

/// The refusals of a level, second by second.
#[derive(Default)]
pub(crate) struct Refusals(Mutex<History>);

struct History {
    retry_after: u64,
    /// When it was last raised.
    raised: u64,
    second: u64,
    count: u64,
    past: VecDeque<(u64, u64)>,
}

impl Default for History {
    fn default() -> History {
        History {
            retry_after: 1,
            raised: 0,
            second: 0,
            count: 0,
            past: VecDeque::new(),
        }
    }
}

impl Refusals {
    /// Counts a refusal in this second, and tells when to come back, in seconds.
    pub(crate) fn count(&self, second: u64) -> u64 {
        let mut history = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        history.count(second);
        history.retry_after
    }
}

impl History {
    fn count(&mut self, second: u64) {
        if self.second == second {
            self.count += 1;
            return;
        }
        self.past.push_back((self.second, self.count));
        let needed = (2 * self.retry_after).min(RETRY_AFTER_SECONDS_MAX);
        while let Some((first, _)) = self.past.front()
            && self.second.saturating_sub(*first) > needed
        {
            self.past.pop_front();
        }
        (self.second, self.count) = (second, 1);
        self.adjust(second);
    }

    fn adjust(&mut self, second: u64) {
        let recent = self
            .past
            .iter()
            .filter(|(past, _)| *past < second && second - *past <= self.retry_after);
        let refused: u64 = recent.map(|(_, count)| count).sum();
        let rested = second.saturating_sub(self.raised) >= self.retry_after;
        if rested && refused >= 3 * self.retry_after {
            self.retry_after = (2 * self.retry_after).min(RETRY_AFTER_SECONDS_MAX);
            self.raised = second;
        } else if refused < self.retry_after && self.retry_after > 1 {
            self.retry_after -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lasting_flood_is_sent_away_for_longer_and_then_less_long_again() {
        let refusals = Refusals::default();
        assert_eq!(refusals.count(100), 1);
        let mut told = 1;
        for second in 101..200 {
            for _ in 0..200 {
                told = refusals.count(second);
            }
        }
        assert_eq!(told, RETRY_AFTER_SECONDS_MAX);
        let calm: Vec<u64> = (0..40)
            .map(|step| refusals.count(300 + step * 40))
            .collect();
        assert_eq!(calm.last(), Some(&1));
    }

    #[test]
    fn a_few_refusals_do_not_raise_it() {
        let refusals = Refusals::default();
        assert!((0..100).all(|second| refusals.count(second) == 1));
    }
}
