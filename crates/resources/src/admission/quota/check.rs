//! Whether a write fits into the quotas of its namespace.
//!
//! Pure: quotas and usage in, new usage or a refusal out. Contract: `CheckRequest` of
//! `apiserver/pkg/admission/plugin/resourcequota/controller.go`.

use std::collections::{BTreeMap, BTreeSet};

use object::{Map, Text};

use super::scope::{Scopes, Selector};
use super::usage::{Meter, must_be_stated};
use crate::admission::amounts::{self, Amounts};
use crate::meta::meta_text;

/// A quota as far as it is enforced: its limits are those of its status.
#[derive(Clone, Debug)]
pub(super) struct Quota {
    pub name: Text,
    selectors: Vec<Selector>,
    hard: Amounts,
    pub used: Amounts,
    /// Whether `used` is not what is stored.
    pub changed: bool,
}

impl Quota {
    pub(super) fn new(quota: &Map) -> Quota {
        let status = |field| {
            let status = quota.get("status");
            amounts::read(status.and_then(|status| status.get(field)))
        };
        Quota {
            name: meta_text(quota, "name").into(),
            selectors: Selector::of_quota(quota),
            hard: status("hard"),
            used: status("used"),
            changed: false,
        }
    }
}

/// What a write uses, measured once.
#[derive(Clone, Debug)]
pub(super) struct Consumer {
    meter: Meter,
    usage: Amounts,
    scopes: Scopes,
    /// The same of the object that is replaced.
    before: Option<(Amounts, Scopes)>,
    stated: Vec<(Text, BTreeSet<Text>)>,
    /// What controllers report is counted, and never refused.
    reported: bool,
}

impl Consumer {
    pub(super) fn new(
        meter: Meter,
        subresource: &str,
        object: &Map,
        old: Option<&Map>,
        now: i64,
    ) -> Consumer {
        Consumer {
            usage: meter.usage(object, now),
            scopes: meter.scopes(object),
            before: old.map(|old| (meter.usage(old, now), meter.scopes(old))),
            stated: meter.stated(object),
            reported: subresource == "status",
            meter,
        }
    }

    /// What is missing in which containers, of the resources that they have to state.
    fn missing(&self, restricted: &[Text]) -> Option<String> {
        let mut missing: BTreeMap<&Text, BTreeSet<&str>> = BTreeMap::new();
        for name in restricted.iter().filter(|name| must_be_stated(name)) {
            for (container, stated) in &self.stated {
                if !stated.contains(name) {
                    missing.entry(name).or_default().insert(container);
                }
            }
        }
        let texts: Vec<String> = missing
            .into_iter()
            .map(|(name, containers)| {
                let containers: Vec<&str> = containers.into_iter().collect();
                format!("{name} for: {}", containers.join(","))
            })
            .collect();
        (!texts.is_empty()).then(|| format!("must specify {}", texts.join("; ")))
    }

    /// What comes on top of the usage that a quota knows.
    fn delta(&self, quota: &Quota) -> Amounts {
        let mut delta = self.usage.clone();
        if let Some((usage, scopes)) = &self.before
            && scopes.match_all(&quota.selectors)
        {
            for (name, amount) in &mut delta {
                if let Some(before) = usage.get(name) {
                    amount.sub(before);
                }
            }
        }
        delta.retain(|_, amount| amount.sign() > 0);
        delta
    }
}

/// Charges a write to every quota that is about it, or to none and tells why.
pub(super) fn charge(quotas: &mut [Quota], consumer: &Consumer) -> Result<(), String> {
    let mut interesting = Vec::new();
    for (place, quota) in quotas.iter().enumerate() {
        let restricted = consumer.meter.matching(quota.hard.keys());
        if restricted.is_empty() || !consumer.scopes.match_all(&quota.selectors) {
            continue;
        }
        let name = &quota.name;
        if let Some(missing) = consumer.missing(&restricted) {
            return Err(format!("failed quota: {name}: {missing}"));
        }
        if restricted.iter().any(|it| !quota.used.contains_key(it)) {
            let resources = list(restricted.iter());
            return Err(format!(
                "status unknown for quota: {name}, resources: {resources}"
            ));
        }
        interesting.push(place);
    }
    let negative = consumer.usage.iter().filter(|(_, it)| it.sign() < 0);
    let negative: Vec<&Text> = negative.map(|(name, _)| name).collect();
    if !negative.is_empty() && !interesting.is_empty() {
        return Err(format!(
            "quota usage is negative for resource(s): {}",
            list(negative.into_iter())
        ));
    }
    let mut charged = Vec::new();
    for place in interesting {
        let quota = &quotas[place];
        let requested = amounts::mask(&consumer.delta(quota), quota.hard.keys());
        if requested.is_empty() {
            continue;
        }
        let mut used = quota.used.clone();
        amounts::add(&mut used, &requested);
        if !consumer.reported {
            check(quota, &requested, &used)?;
        }
        charged.push((place, used));
    }
    for (place, used) in charged {
        quotas[place].used = used;
        quotas[place].changed = true;
    }
    Ok(())
}

fn check(quota: &Quota, requested: &Amounts, used: &Amounts) -> Result<(), String> {
    let is_exceeded = |name: &&Text| match (used.get(*name), quota.hard.get(*name)) {
        (Some(used), Some(hard)) => used > hard,
        _ => false,
    };
    let exceeded: Vec<&Text> = requested.keys().filter(is_exceeded).collect();
    if exceeded.is_empty() {
        return Ok(());
    }
    let shown = |amounts: &Amounts| {
        let parts = exceeded.iter().filter_map(|name| {
            let amount = amounts.get(*name)?;
            Some(format!("{name}={amount}"))
        });
        parts.collect::<Vec<String>>().join(",")
    };
    Err(format!(
        "exceeded quota: {}, requested: {}, used: {}, limited: {}",
        quota.name,
        shown(requested),
        shown(&quota.used),
        shown(&quota.hard),
    ))
}

/// Names in order, with commas.
fn list<'a>(names: impl Iterator<Item = &'a Text>) -> String {
    let mut names: Vec<&str> = names.map(Text::as_str).collect();
    names.sort_unstable();
    names.join(",")
}

#[cfg(test)]
mod tests;
