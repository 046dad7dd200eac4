//! How work that nobody waits for gives way to commits.
//!
//! The checkpoint and old history want a processor as commits do, but they have time. A burst of
//! commits is over in a fraction of a second, so they wait for its end. Under a lasting load that
//! would only put the work off: then they go on.

use std::cell::Cell;
use std::time::{Duration, Instant};

use crate::record::Revision;
use crate::view::View;

/// How long work goes on before it looks whether anybody commits.
const SLICE: Duration = Duration::from_micros(500);
/// How long nobody has committed when a burst is over.
const PAUSE: Duration = Duration::from_millis(5);
/// What one piece of work waits in all.
const PATIENCE: Duration = Duration::from_millis(200);

/// The way of one piece of work.
pub(crate) struct Way<'v> {
    view: &'v View,
    looked_at: Cell<Instant>,
    seen: Cell<Revision>,
    patience: Cell<Duration>,
}

impl<'v> Way<'v> {
    pub(crate) fn new(view: &'v View) -> Way<'v> {
        Way {
            view,
            looked_at: Cell::new(Instant::now()),
            seen: Cell::new(view.visible()),
            patience: Cell::new(PATIENCE),
        }
    }

    /// To be called every few microseconds of work: waits while others commit.
    pub(crate) fn give(&self) {
        if self.looked_at.get().elapsed() < SLICE {
            return;
        }
        while self.has_moved() && !self.patience.get().is_zero() {
            std::thread::sleep(PAUSE);
            let left = self.patience.get().saturating_sub(PAUSE);
            self.patience.set(left);
        }
        self.looked_at.set(Instant::now());
    }

    /// Whether anything was committed since the last look.
    fn has_moved(&self) -> bool {
        let visible = self.view.visible();
        self.seen.replace(visible) != visible
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    fn work(way: &Way<'_>) {
        std::thread::sleep(SLICE);
        way.give();
    }

    #[test]
    fn work_waits_for_the_end_of_a_burst() {
        let view = View::default();
        let way = Way::new(&view);
        work(&way);
        assert_eq!(way.patience.get(), PATIENCE, "nobody commits");
        view.publish(Revision(1));
        work(&way);
        assert_eq!(way.patience.get(), PATIENCE - PAUSE, "somebody did");
        work(&way);
        assert_eq!(way.patience.get(), PATIENCE - PAUSE, "and no longer does");
    }

    #[test]
    fn work_goes_on_under_a_lasting_load() {
        let view = View::default();
        let way = Way::new(&view);
        let is_done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for revision in 1.. {
                    view.publish(Revision(revision));
                    if is_done.load(Ordering::Relaxed) {
                        return;
                    }
                    std::thread::yield_now();
                }
            });
            while !way.patience.get().is_zero() {
                work(&way);
            }
            work(&way);
            is_done.store(true, Ordering::Relaxed);
        });
    }
}
