//! Merges an applied configuration into the live object.
//!
//! Contract: structured-merge-diff `typed/merge.go`. The configuration wins at leaves and nothing
//! is removed. Items of merged lists follow the configuration's order, with the live object's other
//! items in between. Both values must have been validated; the configuration is taken apart and
//! moved, the live object is copied only where it stays.

use std::{cmp::Ordering, slice};

use object::{Map, Text, Value, text_order};
use schema::{ListTopology, ListType, MapType, TypeId, Types};

use crate::typed::{Item, Keys, Shape, Typing, first_shape, identified_items, is_leaf, shape};

/// The live value with the configuration merged in.
pub fn merge(live: &Value, config: Value, typing: Typing<'_>) -> Value {
    let mut open: Vec<Open<'_>> = Vec::new();
    let mut done = begin(typing.types, Some(live), config, typing.root, &mut open);
    loop {
        match (done.take(), open.last_mut()) {
            (Some(value), None) => return value,
            (Some(value), Some(level)) => level.accept(value),
            (None, None) => unreachable!("a level is open until the root is done"),
            (None, Some(level)) => match level.next(typing.types) {
                Some(Task { live, config, ty }) => {
                    done = begin(typing.types, live, config, ty, &mut open);
                }
                None => {
                    let level = open.pop().expect("just looked at");
                    done = Some(level.finish());
                }
            },
        }
    }
}

/// Gives the merged value, or opens a level that will.
fn begin<'a>(
    types: &'a Types,
    live: Option<&'a Value>,
    config: Value,
    ty: TypeId,
    open: &mut Vec<Open<'a>>,
) -> Option<Value> {
    // Merging with nothing gives the configuration itself.
    let Some(live) = live else {
        return Some(config);
    };
    let ty = types.get(ty);
    // Where the kinds differ, the configuration's alternative decides.
    match shape(ty, &config).or_else(|| first_shape(ty)) {
        Some(Shape::Map(map)) if !map.atomic => begin_map(live, config, map, open),
        Some(Shape::List(list)) if list.topology != ListTopology::Atomic => {
            begin_list(types, live, config, list, open)
        }
        _ => Some(config),
    }
}

fn begin_map<'a>(
    live: &'a Value,
    config: Value,
    map: &'a MapType,
    open: &mut Vec<Open<'a>>,
) -> Option<Value> {
    let live = match live {
        Value::Object(live) if !live.is_empty() => live,
        _ => return Some(config),
    };
    match config {
        Value::Object(config) if !config.is_empty() => {
            open.push(Open::Map(OpenMap {
                out: Vec::with_capacity(live.len().max(config.len())),
                live: live.entries().iter(),
                config: config.into_iter(),
                keys: Keys::new(map),
                pending: None,
            }));
            None
        }
        _ => Some(Value::Object(live.clone())),
    }
}

fn begin_list<'a>(
    types: &'a Types,
    live: &'a Value,
    config: Value,
    list: &'a ListType,
    open: &mut Vec<Open<'a>>,
) -> Option<Value> {
    let live = match live {
        Value::Array(live) if !live.is_empty() => live,
        _ => return Some(config),
    };
    match config {
        Value::Array(config) if !config.is_empty() => {
            let Some(plan) = plan(types, list, live, &config) else {
                return Some(Value::Array(config));
            };
            open.push(Open::List(OpenList {
                out: Vec::with_capacity(plan.len()),
                plan: plan.into_iter(),
                live,
                config,
                element: list.element,
            }));
            None
        }
        _ => Some(Value::Array(live.clone())),
    }
}

/// A child to merge.
struct Task<'a> {
    live: Option<&'a Value>,
    config: Value,
    ty: TypeId,
}

enum Open<'a> {
    Map(OpenMap<'a>),
    List(OpenList<'a>),
}

struct OpenMap<'a> {
    live: slice::Iter<'a, (Text, Value)>,
    config: std::vec::IntoIter<(Text, Value)>,
    keys: Keys<'a>,
    out: Vec<(Text, Value)>,
    /// The key of the child that is being merged.
    pending: Option<Text>,
}

struct OpenList<'a> {
    plan: std::vec::IntoIter<Place>,
    live: &'a [Value],
    config: Vec<Value>,
    element: TypeId,
    out: Vec<Value>,
}

/// What stands at one place of a merged list, by position in the lists it comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Live(usize),
    Config { live: Option<usize>, config: usize },
}

impl<'a> Open<'a> {
    fn next(&mut self, types: &Types) -> Option<Task<'a>> {
        match self {
            Open::Map(level) => level.next(types),
            Open::List(level) => level.next(),
        }
    }

    fn accept(&mut self, value: Value) {
        match self {
            Open::Map(level) => {
                let key = level
                    .pending
                    .take()
                    .expect("a value is accepted for the child given");
                level.out.push((key, value));
            }
            Open::List(level) => level.out.push(value),
        }
    }

    fn finish(self) -> Value {
        match self {
            Open::Map(level) => Value::Object(Map::from_entries(level.out)),
            Open::List(level) => Value::Array(level.out),
        }
    }
}

impl<'a> OpenMap<'a> {
    fn next(&mut self, types: &Types) -> Option<Task<'a>> {
        loop {
            let order = match (self.live.as_slice().first(), self.config.as_slice().first()) {
                (None, None) => return None,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(live), Some(config)) => text_order(&live.0, &config.0),
            };
            let live = if order.is_le() {
                self.live.next()
            } else {
                None
            };
            let config = if order.is_ge() {
                self.config.next()
            } else {
                None
            };
            match (live, config) {
                (Some(live), None) => self.out.push(live.clone()),
                (live, Some((key, config))) => {
                    let ty = self.keys.ty(&key);
                    match (live, ty) {
                        (Some((_, live)), Some(ty)) if !is_leaf(types.get(ty)) => {
                            self.pending = Some(key);
                            return Some(Task {
                                live: Some(live),
                                config,
                                ty,
                            });
                        }
                        _ => self.out.push((key, config)),
                    }
                }
                (None, None) => return None,
            }
        }
    }
}

impl<'a> OpenList<'a> {
    fn next(&mut self) -> Option<Task<'a>> {
        loop {
            match self.plan.next()? {
                Place::Live(at) => self.out.push(self.live[at].clone()),
                Place::Config { live, config } => {
                    let config = std::mem::take(&mut self.config[config]);
                    match live {
                        Some(at) => {
                            return Some(Task {
                                live: Some(&self.live[at]),
                                config,
                                ty: self.element,
                            });
                        }
                        None => self.out.push(config),
                    }
                }
            }
        }
    }
}

/// Where the items of both lists go; `None` if they cannot be told apart.
fn plan(types: &Types, list: &ListType, live: &[Value], config: &[Value]) -> Option<Vec<Place>> {
    let live = identified_items(types, list, live).ok()?;
    let config = identified_items(types, list, config).ok()?;
    let paired = |(live, config): (&Item<'_>, &Item<'_>)| live.0.compare(&config.0).is_eq();
    if live.len() == config.len() && live.iter().zip(&config).all(paired) {
        let place = |at| Place::Config {
            live: Some(at),
            config: at,
        };
        return Some((0..live.len()).map(place).collect());
    }
    let identities = Identities::number(&live, &config);
    Some(weave(&identities))
}

/// The identities of two lists as small numbers, and where each is found.
struct Identities {
    live: Vec<usize>,
    config: Vec<usize>,
    /// For each identity: its only place in the live list.
    live_at: Vec<Found>,
    /// For each identity: its place in the configuration.
    config_at: Vec<Option<usize>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Found {
    Nowhere,
    Once(usize),
    Repeated,
}

impl Identities {
    fn number<'a>(live: &[Item<'a>], config: &[Item<'a>]) -> Identities {
        let mut all: Vec<(usize, &Item<'a>)> = live.iter().chain(config).enumerate().collect();
        all.sort_by(|left, right| left.1.0.compare(&right.1.0));
        let mut numbers = vec![0; all.len()];
        let mut number = 0;
        for (at, item) in all.iter().enumerate() {
            if at > 0 && all[at - 1].1.0.compare(&item.1.0).is_ne() {
                number += 1;
            }
            numbers[item.0] = number;
        }
        let config = numbers.split_off(live.len());
        let mut identities = Identities {
            live: numbers,
            config,
            live_at: vec![Found::Nowhere; number + 1],
            config_at: vec![None; number + 1],
        };
        for (at, number) in identities.live.iter().enumerate() {
            let found = &mut identities.live_at[*number];
            *found = match *found {
                Found::Nowhere => Found::Once(at),
                _ => Found::Repeated,
            };
        }
        for (at, number) in identities.config.iter().enumerate() {
            identities.config_at[*number] = Some(at);
        }
        identities
    }
}

/// Puts the configuration's items in their order and the other live items between them.
fn weave(identities: &Identities) -> Vec<Place> {
    let Identities {
        live,
        config,
        live_at,
        config_at,
    } = identities;
    let is_shared = |identity: &&usize| live_at[**identity] != Found::Nowhere;
    let mut shared = config.iter().filter(is_shared).copied();
    let mut next_shared = shared.next();
    let mut merged = vec![false; config_at.len()];
    let mut plan = Vec::with_capacity(live.len() + config.len());
    let (mut at_live, mut at_config) = (0, 0);
    while at_live < live.len() || at_config < config.len() {
        if let (Some(mine), Some(theirs)) = (live.get(at_live), config.get(at_config)) {
            if mine == theirs {
                merged[*mine] = true;
                plan.push(from_config(identities, at_config));
                (at_live, at_config) = (at_live + 1, at_config + 1);
                next_shared = shared.next();
                continue;
            }
            if config_at[*mine].is_some() && next_shared.is_some_and(|next| next != *mine) {
                // It is emitted at the configuration's place.
                at_live += 1;
                continue;
            }
        }
        if let Some(mine) = live.get(at_live) {
            if config_at[*mine].is_none() {
                plan.push(Place::Live(at_live));
                at_live += 1;
                continue;
            }
            if merged[*mine] {
                at_live += 1;
            }
        }
        if let Some(theirs) = config.get(at_config) {
            merged[*theirs] = true;
            plan.push(from_config(identities, at_config));
            at_config += 1;
            if next_shared == Some(*theirs) {
                next_shared = shared.next();
            }
        }
    }
    plan
}

/// An item of the configuration, merged with the live one unless that is repeated.
fn from_config(identities: &Identities, config: usize) -> Place {
    let live = match identities.live_at[identities.config[config]] {
        Found::Once(at) => Some(at),
        Found::Nowhere | Found::Repeated => None,
    };
    Place::Config { live, config }
}
