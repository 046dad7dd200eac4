//! A priority level: seats, and fair queues before them.
//!
//! The state machine has no clock and does no waiting: moments are handed in, and whoever has to
//! wait gets a channel on which the seat arrives. Contract: `queueset.go` of the API server's
//! `fairqueuing`: shuffle sharding over queues, and between queues the one whose next request
//! would finish first in virtual time, so that a flow gets its share however much it asks for.
//!
//! Invariant: seats are handed over outside the lock, for a seat that nobody takes returns itself.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::retry::Refusals;

/// How long a request is thought to take until it has ended, in seconds.
const SERVICE_SECONDS: f64 = 0.003;
/// No hand has more cards.
const HAND_MAX: usize = 15;

/// How a level treats what it has no seat for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Queuing {
    /// How many queues there are; none: what finds no seat is refused.
    pub queues: usize,
    /// How many of them a flow may use.
    pub hand: usize,
    /// How many requests wait in one queue at most.
    pub length_max: usize,
}

impl Queuing {
    /// No queues: what finds no seat is refused.
    pub(crate) const NONE: Queuing = Queuing {
        queues: 0,
        hand: 0,
        length_max: 0,
    };
}

/// A limited priority level at work. It outlives changes of its configuration.
pub(crate) struct Level {
    state: Mutex<State>,
    /// What clients are told about coming back.
    pub refusals: Refusals,
}

/// What became of a request for seats.
pub(crate) enum Taken {
    /// Go on.
    Seat(Seat),
    /// Wait for one.
    Wait(Waiting),
    /// Neither a seat nor room in the queue.
    Refused,
}

/// Seats that are held until this is dropped.
pub(crate) struct Seat {
    level: Arc<Level>,
    queue: Option<usize>,
    width: u32,
    began: Instant,
}

/// A place in a queue, given up when this is dropped.
pub(crate) struct Waiting {
    level: Arc<Level>,
    queue: usize,
    id: u64,
    seat: oneshot::Receiver<Seat>,
}

struct State {
    queuing: Queuing,
    limit: u32,
    in_use: u32,
    executing: u32,
    waiting: usize,
    waiting_seats: u32,
    /// The most seats that were in use or wanted since this was last asked.
    demand_max: u32,
    queues: Vec<Queue>,
    active_queues: u32,
    /// Seat-seconds of service that each active queue was due so far.
    virtual_time: f64,
    updated: Instant,
    next_id: u64,
    /// Where the search for the next queue begins, so that equal ones take turns.
    turn: usize,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Waiter>,
    waiting_seats: u32,
    executing: u32,
    /// When the next request may begin, in virtual time.
    next_dispatch: f64,
}

struct Waiter {
    id: u64,
    width: u32,
    arrived: f64,
    grant: oneshot::Sender<Seat>,
}

impl Queue {
    fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.executing == 0
    }
}

impl Level {
    /// A level with this many seats.
    pub(crate) fn new(limit: u32, queuing: Queuing, now: Instant) -> Arc<Level> {
        let state = State {
            queuing,
            limit,
            in_use: 0,
            executing: 0,
            waiting: 0,
            waiting_seats: 0,
            demand_max: 0,
            queues: Vec::new(),
            active_queues: 0,
            virtual_time: 0.0,
            updated: now,
            next_id: 0,
            turn: 0,
        };
        let level = Arc::new(Level {
            state: Mutex::new(state),
            refusals: Refusals::default(),
        });
        level.configure(queuing);
        level
    }

    /// Changes the queues. Those that are no longer dealt out are worked off.
    pub(crate) fn configure(&self, queuing: Queuing) {
        let mut state = self.lock();
        state.queuing = queuing;
        if state.queues.len() < queuing.queues {
            state.queues.resize_with(queuing.queues, Queue::default);
        }
    }

    /// Changes the number of seats.
    pub(crate) fn set_limit(self: &Arc<Level>, limit: u32, now: Instant) {
        let mut state = self.lock();
        state.advance(now);
        state.limit = limit;
        let granted = state.dispatch();
        drop(state);
        self.hand_over(granted, now);
    }

    /// The seats there are.
    pub(crate) fn limit(&self) -> u32 {
        self.lock().limit
    }

    /// The most seats that were in use or wanted since this was last asked.
    pub(crate) fn take_demand(&self) -> u32 {
        let mut state = self.lock();
        let now = state.in_use + state.waiting_seats;
        std::mem::replace(&mut state.demand_max, now)
    }

    /// Asks for seats; `flow` tells whose request it is.
    pub(crate) fn take(self: &Arc<Level>, width: u32, flow: u64, now: Instant) -> Taken {
        let mut state = self.lock();
        state.advance(now);
        if state.queuing.queues == 0 {
            if !state.fits(width) {
                return Taken::Refused;
            }
            state.occupy(None, width);
            return Taken::Seat(self.seat(None, width, now));
        }
        let queue = state.deal(flow);
        if state.queues[queue].is_idle() {
            state.queues[queue].next_dispatch = state.virtual_time;
        }
        if state.waiting == 0 && state.fits(width) {
            state.occupy(Some(queue), width);
            return Taken::Seat(self.seat(Some(queue), width, now));
        }
        let full = state.queues[queue].waiting.len() >= state.queuing.length_max;
        if state.in_use >= state.limit && full {
            return Taken::Refused;
        }
        let (id, seat) = state.enqueue(queue, width);
        let granted = state.dispatch();
        drop(state);
        self.hand_over(granted, now);
        Taken::Wait(Waiting {
            level: Arc::clone(self),
            queue,
            id,
            seat,
        })
    }

    fn seat(self: &Arc<Level>, queue: Option<usize>, width: u32, began: Instant) -> Seat {
        Seat {
            level: Arc::clone(self),
            queue,
            width,
            began,
        }
    }

    fn hand_over(self: &Arc<Level>, granted: Vec<(usize, Waiter)>, now: Instant) {
        for (queue, waiter) in granted {
            // One that nobody waits for any more is dropped here, and so returned.
            let _ = waiter.grant.send(self.seat(Some(queue), waiter.width, now));
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    /// Resolves when the request may go on; `None` if its level is gone.
    pub(crate) async fn seat(&mut self) -> Option<Seat> {
        (&mut self.seat).await.ok()
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.level.lock().forget(self.queue, self.id);
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let now = Instant::now();
        let mut state = self.level.lock();
        state.advance(now);
        state.release(self.queue, self.width, now.duration_since(self.began));
        let granted = state.dispatch();
        drop(state);
        self.level.hand_over(granted, now);
    }
}

impl State {
    /// Lets virtual time pass: the seats in use, shared by the queues that want them.
    fn advance(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.updated).as_secs_f64();
        self.updated = self.updated.max(now);
        if self.active_queues > 0 {
            let wanted = (self.in_use + self.waiting_seats).min(self.limit);
            self.virtual_time += passed * f64::from(wanted) / f64::from(self.active_queues);
        }
    }

    fn fits(&self, width: u32) -> bool {
        // A request wider than the level runs alone, or it would never run.
        (width > self.limit && self.executing == 0) || self.in_use + width <= self.limit
    }

    /// The queue of the flow's hand with the least waiting.
    fn deal(&mut self, flow: u64) -> usize {
        let mut hand = [0; HAND_MAX];
        let hand = deal(flow, self.queuing.queues, self.queuing.hand, &mut hand);
        self.turn = self.turn.wrapping_add(1);
        let first = self.turn % hand.len();
        let turns = hand[first..].iter().chain(&hand[..first]);
        *turns
            .min_by_key(|queue| self.queues[**queue].waiting_seats)
            .expect("a hand has at least one card")
    }

    fn occupy(&mut self, queue: Option<usize>, width: u32) {
        self.executing += 1;
        self.in_use += width;
        self.demand_max = self.demand_max.max(self.in_use + self.waiting_seats);
        if let Some(queue) = queue {
            let queue = &mut self.queues[queue];
            if queue.is_idle() {
                self.active_queues += 1;
            }
            queue.executing += 1;
            queue.next_dispatch += f64::from(width) * SERVICE_SECONDS;
        }
    }

    fn release(&mut self, queue: Option<usize>, width: u32, took: std::time::Duration) {
        self.executing -= 1;
        self.in_use -= width;
        if let Some(queue) = queue {
            let queue = &mut self.queues[queue];
            queue.executing -= 1;
            // What the request really took replaces what it was thought to take.
            queue.next_dispatch += f64::from(width) * (took.as_secs_f64() - SERVICE_SECONDS);
            if queue.is_idle() {
                self.active_queues -= 1;
            }
        }
    }

    fn enqueue(&mut self, queue: usize, width: u32) -> (u64, oneshot::Receiver<Seat>) {
        let (grant, seat) = oneshot::channel();
        self.next_id += 1;
        let id = self.next_id;
        let place = &mut self.queues[queue];
        if place.is_idle() {
            self.active_queues += 1;
        }
        place.waiting_seats += width;
        place.waiting.push_back(Waiter {
            id,
            width,
            arrived: self.virtual_time,
            grant,
        });
        self.waiting += 1;
        self.waiting_seats += width;
        self.demand_max = self.demand_max.max(self.in_use + self.waiting_seats);
        (id, seat)
    }

    /// Takes out whoever gave up waiting, if they still wait.
    fn forget(&mut self, queue: usize, id: u64) {
        let place = &mut self.queues[queue];
        let Some(at) = place.waiting.iter().position(|waiter| waiter.id == id) else {
            return;
        };
        let Some(waiter) = place.waiting.remove(at) else {
            return;
        };
        place.waiting_seats -= waiter.width;
        if place.is_idle() {
            self.active_queues -= 1;
        }
        self.waiting -= 1;
        self.waiting_seats -= waiter.width;
    }

    /// Takes as many from the queues as there are seats for.
    fn dispatch(&mut self) -> Vec<(usize, Waiter)> {
        let mut granted = Vec::new();
        while self.waiting > 0 && self.in_use < self.limit {
            let Some(queue) = self.next_queue() else {
                break;
            };
            let place = &mut self.queues[queue];
            let Some(width) = place.waiting.front().map(|waiter| waiter.width) else {
                break;
            };
            // The one whose turn it is waits for its seats, or wide ones would wait for ever.
            if !self.fits(width) {
                break;
            }
            self.waiting -= 1;
            self.waiting_seats -= width;
            self.occupy(Some(queue), width);
            let place = &mut self.queues[queue];
            let Some(waiter) = place.waiting.pop_front() else {
                break;
            };
            place.waiting_seats -= width;
            // A queue gains no credit for the time before its request came.
            if let Some(next) = place.waiting.front() {
                place.next_dispatch = place.next_dispatch.max(next.arrived);
            }
            granted.push((queue, waiter));
        }
        granted
    }

    /// The queue whose next request would end first.
    fn next_queue(&mut self) -> Option<usize> {
        let count = self.queues.len();
        let mut best: Option<(usize, f64)> = None;
        for step in 1..=count {
            let at = self.turn.wrapping_add(step) % count;
            let queue = &self.queues[at];
            let Some(head) = queue.waiting.front() else {
                continue;
            };
            let end = queue.next_dispatch + f64::from(head.width) * SERVICE_SECONDS;
            if best.is_none_or(|(_, earliest)| end < earliest) {
                best = Some((at, end));
            }
        }
        let (at, _) = best?;
        self.turn = at;
        Some(at)
    }
}

/// Deals `hand` different cards of a deck of `deck`, chosen by `flow`.
fn deal(flow: u64, deck: usize, hand: usize, out: &mut [usize; HAND_MAX]) -> &[usize] {
    let hand = hand.clamp(1, HAND_MAX.min(deck));
    let mut places = [0; HAND_MAX];
    let mut left = flow;
    for (dealt, place) in places[..hand].iter_mut().enumerate() {
        let cards = (deck - dealt) as u64;
        *place = (left % cards) as usize;
        left /= cards;
    }
    for dealt in 0..hand {
        // A place counts the cards that are left: step back through the deals to count them all.
        let mut card = places[dealt];
        for before in places[..dealt].iter().rev() {
            if card >= *before {
                card += 1;
            }
        }
        out[dealt] = card;
    }
    &out[..hand]
}

#[cfg(test)]
mod tests;
