//! The threads that answer requests, and how each is kept on a processor of its own.
//!
//! There are two for each processor: one that shares its work with others like it, and one, a
//! lane, that has connections of its own (`server/src/lanes.rs` tells which). Left alone, the
//! kernel often puts two of a sort on one processor, next to whoever woke them, and leaves another
//! one idle; and a worker that is moved finds none of its data in the caches. Writes, which wake a
//! worker for each answer, lose a tenth to a fifth of their rate to that, and their slowest answers
//! a third of their time.
//!
//! Only workers are kept in place. What they start, such as threads that block, may run anywhere.
//! Where a server may not use all the time of its processors there are fewer workers than those,
//! and nothing is kept.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::setpriority_process;
use rustix::thread::{CpuSet, Pid, gettid, sched_getaffinity, sched_setaffinity};
use tokio::runtime::{Builder, Runtime};
use tracing::debug;

use crate::failure::Failure;

/// Objects may nest 10,000 levels deep, and walks of them recurse. Only touched pages cost memory.
const STACK_BYTES: usize = 64 * 1024 * 1024;

/// How long workers get to start; whoever has not by then is not kept in place.
const START_MAX: Duration = Duration::from_millis(100);

/// How far a thread steps back that nobody waits for: the kernel then gives it a third of what it
/// gives to others, if they want the processor, and else all of it.
const BEHIND: i32 = 5;

/// Makes the calling thread less urgent than those that somebody waits for.
pub(crate) fn step_back() {
    // To Linux, a thread is a process of its own here.
    if let Err(error) = setpriority_process(None, BEHIND) {
        debug!(%error, "a thread in the background stays as urgent as the others");
    }
}

/// A runtime with this many workers, which run anywhere.
pub(crate) fn roaming(workers: usize) -> Result<Runtime, Failure> {
    let mut builder = builder();
    builder.worker_threads(workers);
    builder.build().map_err(Failure::Runtime)
}

/// Runtimes with as many workers as there are processors.
pub(crate) struct Runtimes {
    /// Its workers take work from each other.
    pub(crate) shared: Runtime,
    /// One worker each, for connections that are better served by the same one all the time; none
    /// where there is only one processor.
    pub(crate) lanes: Vec<Runtime>,
}

/// Runtimes with a worker for each processor, twice: those that share their work, and those that
/// do not. Each can be kept where it is.
pub(crate) fn one_a_processor() -> Result<(Runtimes, Workers), Failure> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let all = all_processors(processors);
    let (shared, started) = noting(processors, all)?;
    let mut workers = Workers(vec![started]);
    let mut lanes = Vec::new();
    if processors > 1 {
        for _ in 0..processors {
            let (lane, started) = noting(1, all)?;
            lanes.push(lane);
            workers.0.push(started);
        }
    }
    for started in &workers.0 {
        started.wait();
    }
    Ok((Runtimes { shared, lanes }, workers))
}

/// A runtime with this many workers, which are noted as they start.
fn noting(wanted: usize, all: Option<CpuSet>) -> Result<(Runtime, Arc<Started>), Failure> {
    let started = Arc::new(Started {
        wanted,
        all,
        threads: Mutex::default(),
    });
    let mut builder = builder();
    builder.worker_threads(wanted);
    if let Some(all) = all {
        let started = Arc::clone(&started);
        builder.on_thread_start(move || {
            if !started.note(gettid()) {
                // It was started by a worker and is where that worker is.
                let _ = sched_setaffinity(None, &all);
            }
        });
    }
    let runtime = builder.build().map_err(Failure::Runtime)?;
    Ok((runtime, started))
}

/// The workers of all runtimes: those that share their work first, then one for each lane.
pub(crate) struct Workers(Vec<Arc<Started>>);

impl Workers {
    /// Keeps each worker on a processor from now on.
    pub(crate) fn pin(&self) {
        let Some((shared, lanes)) = self.0.split_first() else {
            return;
        };
        shared.pin(0);
        for (processor, lane) in lanes.iter().enumerate() {
            lane.pin(processor);
        }
    }
}

fn builder() -> Builder {
    let mut builder = Builder::new_multi_thread();
    builder.enable_all().thread_stack_size(STACK_BYTES);
    builder
}

/// The processors that this process may use, if there are this many and more than one.
fn all_processors(wanted: usize) -> Option<CpuSet> {
    let all = sched_getaffinity(None).ok()?;
    (wanted > 1 && members(&all).count() == wanted).then_some(all)
}

fn members(set: &CpuSet) -> impl Iterator<Item = usize> {
    (0..CpuSet::MAX_CPU).filter(|processor| set.is_set(*processor))
}

/// The threads that a runtime started with. Those are its workers: others come once there are
/// tasks, and before that [`Started::wait`] is waited for.
struct Started {
    wanted: usize,
    /// Where they may run, if they are to be kept there.
    all: Option<CpuSet>,
    threads: Mutex<Threads>,
}

#[derive(Default)]
struct Threads {
    workers: Vec<Pid>,
    /// Whether whoever comes now is something else.
    complete: bool,
}

impl Started {
    fn threads(&self) -> MutexGuard<'_, Threads> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a thread if it is a worker.
    fn note(&self, thread: Pid) -> bool {
        let mut threads = self.threads();
        if threads.complete {
            return false;
        }
        threads.workers.push(thread);
        threads.complete = threads.workers.len() == self.wanted;
        true
    }

    /// Keeps each worker on a processor, beginning with the one at this place among all.
    fn pin(&self, first: usize) {
        let Some(all) = &self.all else { return };
        let processors = members(all).skip(first);
        for (worker, processor) in self.threads().workers.iter().zip(processors) {
            let mut place = CpuSet::new();
            place.set(processor);
            if let Err(error) = sched_setaffinity(Some(*worker), &place) {
                debug!(%error, processor, "a worker cannot be kept on a processor");
            }
        }
    }

    /// Waits until all workers have started, if that is noted at all.
    fn wait(&self) {
        let began = Instant::now();
        while self.all.is_some() && !self.threads().complete && began.elapsed() < START_MAX {
            std::thread::yield_now();
        }
        self.threads().complete = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where each of the threads that run a task may run.
    fn places(runtime: &Runtime, processors: usize) -> Vec<Vec<usize>> {
        let everyone = Arc::new(std::sync::Barrier::new(processors));
        let tasks: Vec<_> = (0..processors)
            .map(|_| {
                let everyone = Arc::clone(&everyone);
                runtime.spawn(async move {
                    // Each worker is held here until all of them are.
                    everyone.wait();
                    let set = sched_getaffinity(None).unwrap();
                    members(&set).collect::<Vec<_>>()
                })
            })
            .collect();
        let mut places: Vec<_> = tasks
            .into_iter()
            .map(|task| runtime.block_on(task).unwrap())
            .collect();
        places.sort();
        places
    }

    #[test]
    fn each_worker_has_a_processor_and_what_it_starts_has_all() {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let Some(all) = all_processors(processors) else {
            // One processor, or not all of their time: nothing is kept in place.
            return;
        };
        let all: Vec<usize> = members(&all).collect();
        let (Runtimes { shared, lanes }, workers) = one_a_processor().unwrap();
        let everywhere = |count| vec![all.clone(); count];
        assert_eq!(places(&shared, processors), everywhere(processors));
        assert_eq!(places(&lanes[0], 1), everywhere(1));
        workers.pin();
        let alone: Vec<Vec<usize>> = all.iter().map(|processor| vec![*processor]).collect();
        assert_eq!(places(&shared, processors), alone);
        let lanes: Vec<_> = lanes.iter().flat_map(|lane| places(lane, 1)).collect();
        assert_eq!(lanes, alone);
        let blocking = async {
            tokio::task::spawn_blocking(|| {
                members(&sched_getaffinity(None).unwrap()).collect::<Vec<_>>()
            })
            .await
        };
        let blocking = shared.block_on(shared.spawn(blocking)).unwrap().unwrap();
        assert_eq!(blocking, all);
    }

    #[test]
    fn roaming_workers_may_run_anywhere() {
        let all: Vec<usize> = members(&sched_getaffinity(None).unwrap()).collect();
        assert_eq!(places(&roaming(2).unwrap(), 2), [all.clone(), all]);
    }
}
