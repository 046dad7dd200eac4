//! Lists of resources: amounts are kept to a thousandth, and can be summed up.

use std::collections::BTreeMap;

use object::quantity::Quantity;
use object::{Map, Text, Value};

/// The exponent of a thousandth.
const MILLI: i32 = -3;

/// Rounds the amounts of a list up to a thousandth.
pub(crate) fn round_up_list(owner: &mut Map, key: &str) {
    let Some(list) = owner.get_mut(key).and_then(Value::as_object_mut) else {
        return;
    };
    for (_, value) in list.iter_mut() {
        let Some(amount) = value.as_str().filter(|text| may_be_finer(text)) else {
            continue;
        };
        let Ok(exact) = Quantity::parse(amount) else {
            continue;
        };
        let mut rounded = exact.clone();
        rounded.round_up(MILLI);
        if rounded != exact {
            *value = rounded.to_string().into();
        }
    }
}

/// Whether an amount could be finer than a thousandth; most are plainly not.
fn may_be_finer(amount: &str) -> bool {
    amount.contains(['n', 'u', '.', 'e', 'E'])
}

/// Amounts by the name of their resource.
pub(super) type Amounts = BTreeMap<Text, Quantity>;

/// The amounts of a list; what cannot be read is left out.
pub(super) fn amounts(list: &Map) -> impl Iterator<Item = (&Text, Quantity)> {
    list.iter()
        .filter_map(|(name, value)| Some((name, Quantity::from_value(value).ok()?)))
}

/// Adds one amount to what is there.
pub(super) fn add(total: &mut Amounts, name: &Text, amount: &Quantity) {
    match total.get_mut(name) {
        Some(sum) => sum.add(amount),
        None => {
            total.insert(name.clone(), amount.clone());
        }
    }
}

/// Raises what is there to at least this amount.
pub(super) fn raise(total: &mut Amounts, name: &Text, amount: &Quantity) {
    if total.get(name).is_none_or(|sum| sum < amount) {
        total.insert(name.clone(), amount.clone());
    }
}
