//! A timer for deadlines that are hardly ever met.
//!
//! Each request has two: one for its head and one for its answer. Arming and disarming a timer for
//! each costs more than all else that they do. An alarm is armed once and then left alone: later
//! deadlines only tell it how long to go on once it rings.

use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use tokio::time::{self, Sleep};

/// What wakes one task, for one deadline at a time. Clones are the same alarm.
#[derive(Clone, Default)]
pub(crate) struct Alarm(Arc<Mutex<Option<Pin<Box<Sleep>>>>>);

impl Alarm {
    /// What the future gives, or nothing if it takes longer than this.
    pub(crate) async fn within<F: Future>(&self, limit: Duration, future: F) -> Option<F::Output> {
        let mut future = pin!(future);
        let mut deadline = None;
        std::future::poll_fn(|context| {
            if let Poll::Ready(output) = future.as_mut().poll(context) {
                return Poll::Ready(Some(output));
            }
            let deadline = *deadline.get_or_insert_with(|| time::Instant::now() + limit);
            self.poll_until(deadline, context).map(|()| None)
        })
        .await
    }

    /// Whether a deadline is over; if not, the task is woken then, and perhaps before.
    fn poll_until(&self, deadline: time::Instant, context: &mut Context<'_>) -> Poll<()> {
        let mut armed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let armed = armed.get_or_insert_with(|| Box::pin(time::sleep_until(deadline)));
        if armed.deadline() > deadline {
            armed.as_mut().reset(deadline);
        }
        loop {
            ready!(armed.as_mut().poll(context));
            if armed.deadline() >= deadline {
                return Poll::Ready(());
            }
            // It rang for a deadline that is no more.
            armed.as_mut().reset(deadline);
        }
    }
}

impl hyper::rt::Timer for Alarm {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn hyper::rt::Sleep>> {
        self.sleep_until(self.now() + duration)
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn hyper::rt::Sleep>> {
        Box::pin(Until {
            alarm: self.clone(),
            deadline: deadline.into(),
        })
    }

    fn now(&self) -> Instant {
        time::Instant::now().into_std()
    }
}

/// Resolves at a deadline.
struct Until {
    alarm: Alarm,
    deadline: time::Instant,
}

impl Future for Until {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.alarm.poll_until(self.deadline, context)
    }
}

impl hyper::rt::Sleep for Until {}

#[cfg(test)]
mod tests {
    use hyper::rt::Timer as _;
    use tokio::time::sleep;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// How long a future takes, by the clock of the runtime.
    async fn time_of(future: impl Future) -> Duration {
        let began = time::Instant::now();
        future.await;
        began.elapsed().div_duration_f64(SECOND).round() as u32 * SECOND
    }

    #[tokio::test(start_paused = true)]
    async fn an_alarm_rings_at_its_deadline() {
        let alarm = Alarm::default();
        assert_eq!(time_of(alarm.sleep(30 * SECOND)).await, 30 * SECOND);
    }

    #[tokio::test(start_paused = true)]
    async fn later_and_earlier_deadlines_are_kept_after_one_that_was_not_met() {
        for next in [10, 30, 60] {
            let alarm = Alarm::default();
            let given_up = time::timeout(5 * SECOND, alarm.sleep(30 * SECOND));
            assert!(given_up.await.is_err());
            assert_eq!(time_of(alarm.sleep(next * SECOND)).await, next * SECOND);
            // Once it has rung it can be used again.
            assert_eq!(time_of(alarm.sleep(next * SECOND)).await, next * SECOND);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_future_is_given_up_when_its_time_is_over() {
        let alarm = Alarm::default();
        for _ in 0..3 {
            let soon = async {
                sleep(59 * SECOND).await;
                "done"
            };
            assert_eq!(alarm.within(60 * SECOND, soon).await, Some("done"));
            let never = std::future::pending::<()>();
            let given_up = async { assert_eq!(alarm.within(60 * SECOND, never).await, None) };
            assert_eq!(time_of(given_up).await, 60 * SECOND);
        }
    }
}
