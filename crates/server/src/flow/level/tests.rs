//! What seats and queues promise.

use std::time::Duration;

use super::*;

const FAIR: Queuing = Queuing {
    queues: 64,
    hand: 1,
    length_max: 50,
};

fn is_seat(taken: &Taken) -> bool {
    matches!(taken, Taken::Seat(_))
}

fn granted(taken: &mut Taken) -> Option<Seat> {
    match taken {
        Taken::Wait(waiting) => waiting.seat.try_recv().ok(),
        _ => None,
    }
}

#[test]
fn a_level_without_queues_refuses_beyond_its_seats() {
    let now = Instant::now();
    let level = Level::new(2, Queuing::NONE, now);
    let first = level.take(1, 1, now);
    let second = level.take(1, 2, now);
    assert!(is_seat(&first) && is_seat(&second));
    assert!(matches!(level.take(1, 3, now), Taken::Refused));
    drop(first);
    assert!(is_seat(&level.take(1, 3, now)));
}

#[test]
fn a_request_wider_than_its_level_runs_alone() {
    let now = Instant::now();
    let level = Level::new(2, Queuing::NONE, now);
    let wide = level.take(5, 1, now);
    assert!(is_seat(&wide));
    assert!(matches!(level.take(1, 2, now), Taken::Refused));
    drop(wide);
    let narrow = level.take(1, 2, now);
    assert!(is_seat(&narrow));
    assert!(matches!(level.take(5, 1, now), Taken::Refused));
}

#[test]
fn a_queue_takes_so_many_and_refuses_the_next() {
    let now = Instant::now();
    let queuing = Queuing {
        length_max: 3,
        ..FAIR
    };
    let level = Level::new(1, queuing, now);
    let seat = level.take(1, 7, now);
    assert!(is_seat(&seat));
    let waiting: Vec<Taken> = (0..3).map(|_| level.take(1, 7, now)).collect();
    assert!(waiting.iter().all(|taken| matches!(taken, Taken::Wait(_))));
    assert!(matches!(level.take(1, 7, now), Taken::Refused));
    // Another flow has its own queue.
    assert!(matches!(level.take(1, 8, now), Taken::Wait(_)));
}

#[test]
fn whoever_gives_up_leaves_the_queue() {
    let now = Instant::now();
    let queuing = Queuing {
        length_max: 1,
        ..FAIR
    };
    let level = Level::new(1, queuing, now);
    let seat = level.take(1, 7, now);
    let waiting = level.take(1, 7, now);
    assert!(matches!(level.take(1, 7, now), Taken::Refused));
    drop(waiting);
    let mut next = level.take(1, 7, now);
    assert!(matches!(next, Taken::Wait(_)));
    drop(seat);
    assert!(granted(&mut next).is_some());
    let state = level.lock();
    assert_eq!(
        (state.in_use, state.waiting, state.active_queues),
        (0, 0, 0)
    );
}

#[test]
fn a_seat_that_nobody_takes_returns_itself() {
    let now = Instant::now();
    let level = Level::new(1, FAIR, now);
    let seat = level.take(1, 1, now);
    let first = level.take(1, 1, now);
    let mut second = level.take(1, 1, now);
    drop(seat);
    // The first was granted the seat and is dropped before it looks.
    drop(first);
    assert!(granted(&mut second).is_some());
}

#[tokio::test(start_paused = true)]
async fn a_flood_does_not_starve_another_flow() {
    let now = Instant::now();
    let level = Level::new(1, FAIR, now);
    let seat = level.take(1, 1, now);
    let mut flood: Vec<Taken> = (0..40).map(|_| level.take(1, 1, now)).collect();
    let mut other: Vec<Taken> = (0..3).map(|_| level.take(1, 2, now)).collect();
    let mut current = match seat {
        Taken::Seat(seat) => Some(seat),
        _ => None,
    };
    let mut order = String::new();
    while let Some(seat) = current.take() {
        tokio::time::advance(Duration::from_millis(5)).await;
        drop(seat);
        for (name, flow) in [('f', &mut flood), ('o', &mut other)] {
            for taken in flow.iter_mut() {
                if let Some(seat) = granted(taken) {
                    order.push(name);
                    assert!(current.replace(seat).is_none(), "two hold the one seat");
                }
            }
        }
    }
    assert_eq!(order.len(), 43, "{order}");
    let last = order.rfind('o').unwrap();
    assert!(last < 8, "the small flow waited for the flood: {order}");
}

#[tokio::test(start_paused = true)]
async fn a_flow_of_slow_requests_gets_no_more_time_than_others() {
    let began = Instant::now();
    let level = Level::new(1, FAIR, began);
    let seat = level.take(1, 3, began);
    let mut quick: Vec<Taken> = (0..40).map(|_| level.take(1, 1, began)).collect();
    let mut slow: Vec<Taken> = (0..3).map(|_| level.take(1, 2, began)).collect();
    drop(seat);
    let mut given = [Duration::ZERO; 2];
    while quick.iter().any(|taken| matches!(taken, Taken::Wait(_))) {
        for (which, flow, takes) in [(0, &mut quick, 5), (1, &mut slow, 50)] {
            let Some(at) = flow.iter_mut().position(|taken| match granted(taken) {
                Some(seat) => {
                    *taken = Taken::Seat(seat);
                    true
                }
                None => false,
            }) else {
                continue;
            };
            let takes = Duration::from_millis(takes);
            tokio::time::advance(takes).await;
            given[which] += takes;
            flow.remove(at);
            if !flow.is_empty() {
                let apart = given[0].abs_diff(given[1]);
                assert!(apart <= Duration::from_millis(60), "{given:?}");
            }
        }
    }
}

#[test]
fn a_wide_request_gets_its_turn_among_narrow_ones() {
    let now = Instant::now();
    let level = Level::new(4, FAIR, now);
    let mut seats: Vec<Taken> = (0..4).map(|_| level.take(1, 1, now)).collect();
    let mut wide = level.take(4, 2, now);
    let mut narrow: Vec<Taken> = (0..4).map(|_| level.take(1, 1, now)).collect();
    for _ in 0..4 {
        assert!(granted(&mut wide).is_none());
        seats.pop();
    }
    let early = narrow.iter_mut().filter_map(granted).count();
    assert!(
        granted(&mut wide).is_some() || early < 4,
        "the wide one starves"
    );
}

#[test]
fn more_seats_let_in_who_waits() {
    let now = Instant::now();
    let level = Level::new(1, FAIR, now);
    let seat = level.take(1, 1, now);
    assert!(is_seat(&seat));
    let mut waiting = level.take(1, 2, now);
    assert!(granted(&mut waiting).is_none());
    level.set_limit(2, now + Duration::from_secs(1));
    assert!(granted(&mut waiting).is_some());
    assert_eq!(level.limit(), 2);
    assert_eq!(level.take_demand(), 2);
}

#[test]
fn a_hand_holds_different_cards_of_the_deck() {
    for flow in [0, 1, 12_345, u64::MAX, 0x5555_5555_5555_5555] {
        let mut hand = [0; HAND_MAX];
        let hand = deal(flow, 16, 8, &mut hand);
        let mut cards = hand.to_vec();
        cards.sort_unstable();
        cards.dedup();
        assert_eq!(cards.len(), 8, "{hand:?}");
        assert!(cards.iter().all(|card| *card < 16), "{hand:?}");
    }
    let mut one = [0; HAND_MAX];
    assert_eq!(deal(9, 1, 6, &mut one), [0]);
}
