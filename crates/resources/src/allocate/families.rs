//! IP families of services, and how clusterIP and clusterIPs stay one thing.
//!
//! The server hands out IPv4 addresses only; IPv6 is named by services without a selector that
//! have no address at all.

use kinds::validation::service_addresses;
use object::addresses::parse_sloppy;
use object::field::{FieldError, Path};
use object::{Map, Value, value};

use super::{Problem, list, text};

/// The address of a service that wants none.
pub(super) const NONE: &str = "None";
const SINGLE: &str = "SingleStack";
const PREFER: &str = "PreferDualStack";
const REQUIRE: &str = "RequireDualStack";

/// Whether services of this type have addresses.
pub(super) fn needs_address(spec: &Map) -> bool {
    text(spec, "type") != "ExternalName"
}

/// Makes clusterIPs of clusterIP.
pub(super) fn align_new(spec: &mut Map) {
    if list(spec, "clusterIPs").is_empty() && !text(spec, "clusterIP").is_empty() {
        let first = Value::from(text(spec, "clusterIP"));
        spec.insert("clusterIPs", Value::Array(vec![first]));
    }
}

/// Lets clusterIPs follow clusterIP where a client changed only that.
pub(super) fn align_changed(spec: &mut Map, old: &Map) {
    let (new_address, old_address) = (text(spec, "clusterIP"), text(old, "clusterIP"));
    if new_address == old_address || list(spec, "clusterIPs") != list(old, "clusterIPs") {
        return;
    }
    if new_address.is_empty() {
        spec.remove("clusterIPs");
    } else {
        let first = Value::from(new_address);
        spec.insert("clusterIPs", Value::Array(vec![first]));
    }
}

/// An address that a client leaves out stays.
pub(super) fn carry_over(spec: &mut Map, old: &Map) {
    if !needs_address(spec) || !needs_address(old) {
        return;
    }
    let kept = text(old, "clusterIP");
    if text(spec, "clusterIP").is_empty() && !kept.is_empty() {
        spec.insert("clusterIP", Value::from(kept));
    }
    if list(spec, "clusterIPs").is_empty()
        && let Some(addresses) = old.get("clusterIPs")
    {
        spec.insert("clusterIPs", addresses.clone());
    }
}

/// Fills ipFamilies and ipFamilyPolicy; `old` is the stored spec when it is an update.
pub(super) fn fill(spec: &mut Map, old: Option<&Map>) -> Result<(), Problem> {
    if !needs_address(spec) || old.is_some_and(|old| is_same_preference(spec, old)) {
        return Ok(());
    }
    // A mistake here is told alone: nothing else is looked at before addresses are given.
    let errors = service_addresses(spec, old);
    if !errors.is_empty() {
        return Err(Problem::Fields(errors));
    }
    let addresses = list(spec, "clusterIPs").iter().filter_map(Value::as_str);
    let is_readable = addresses
        .clone()
        .all(|it| it == NONE || parse_sloppy(it).is_some());
    if !is_readable || addresses.count() != list(spec, "clusterIPs").len() {
        // Validation tells what is wrong with them.
        return Ok(());
    }
    let is_headless = text(spec, "clusterIP") == NONE;
    let selector = spec.get("selector").and_then(Value::as_object);
    let is_selectorless = is_headless && selector.is_none_or(Map::is_empty);
    if spec.get("ipFamilyPolicy").is_none_or(Value::is_null) {
        let before = old
            .map(|old| text(old, "ipFamilyPolicy"))
            .filter(|policy| !policy.is_empty());
        let usual = if is_selectorless { REQUIRE } else { SINGLE };
        let policy = Value::from(before.unwrap_or(usual));
        spec.insert("ipFamilyPolicy", policy);
    }
    if let Some(old) = old {
        shrink(spec, old)?;
    }
    check_policy(spec)?;
    infer(spec)?;
    if is_selectorless {
        fill_selectorless(spec);
        return Ok(());
    }
    check_configured(spec)?;
    if list(spec, "ipFamilies").is_empty() {
        spec.insert("ipFamilies", value!(["IPv4"]));
    }
    Ok(())
}

/// A service that prefers two families is neither up- nor downgraded by an update that does not
/// ask for it.
fn is_same_preference(spec: &Map, old: &Map) -> bool {
    let prefers = |spec| text(spec, "ipFamilyPolicy") == PREFER;
    prefers(spec)
        && prefers(old)
        && list(spec, "clusterIPs") == list(old, "clusterIPs")
        && list(spec, "ipFamilies") == list(old, "ipFamilies")
        && needs_address(old)
}

/// One family alone drops the second address and family, if the client left them as they were.
fn shrink(spec: &mut Map, old: &Map) -> Result<(), Problem> {
    let is_single = text(spec, "ipFamilyPolicy") == SINGLE;
    let mut errors = Vec::new();
    for (field, what) in [("clusterIPs", "cluster IP"), ("ipFamilies", "IP family")] {
        let (new, before) = (list(spec, field), list(old, field));
        if is_single && new == before && new.len() > 1 {
            let first = new[..1].to_vec();
            spec.insert(field, Value::Array(first));
        } else if !is_single && new.len() < before.len() && !new.is_empty() && new == &before[..1] {
            let detail = format!("must be 'SingleStack' to release the secondary {what}");
            errors.push(policy_error(spec, detail));
        }
    }
    none_or(errors)
}

fn check_policy(spec: &Map) -> Result<(), Problem> {
    let mut errors = Vec::new();
    if text(spec, "ipFamilyPolicy") == SINGLE {
        for (field, what) in [("clusterIPs", "cluster IPs"), ("ipFamilies", "IP families")] {
            if list(spec, field).len() == 2 {
                let detail = format!(
                    "must be 'RequireDualStack' or 'PreferDualStack' when multiple {what} are \
                     specified"
                );
                errors.push(policy_error(spec, detail));
            }
        }
    }
    none_or(errors)
}

/// Families that a client leaves out follow from the addresses.
fn infer(spec: &mut Map) -> Result<(), Problem> {
    let mut families = list(spec, "ipFamilies").to_vec();
    let known = families.len();
    let mut errors = Vec::new();
    let root = Path::root();
    let field = root.field("spec");
    let addresses = list(spec, "clusterIPs");
    for (place, address) in addresses
        .iter()
        .filter_map(Value::as_str)
        .enumerate()
        .skip(known)
    {
        if address == NONE {
            break;
        }
        if parse_sloppy(address).is_some_and(|address| address.is_ipv4()) {
            families.push("IPv4".into());
        } else {
            let detail = "IPv6 is not configured on this cluster";
            let path = field.field("clusterIPs");
            let all = Value::Array(addresses.to_vec());
            errors.push(FieldError::invalid(&path.index(place), &all, detail));
        }
    }
    none_or(errors)?;
    if families.len() > known {
        spec.insert("ipFamilies", Value::Array(families));
    }
    Ok(())
}

fn fill_selectorless(spec: &mut Map) {
    let mut families = list(spec, "ipFamilies").to_vec();
    if families.is_empty() {
        families.push("IPv4".into());
    }
    if families.len() < 2 && text(spec, "ipFamilyPolicy") != SINGLE {
        let other = if families[0].as_str() == Some("IPv4") {
            "IPv6"
        } else {
            "IPv4"
        };
        families.push(other.into());
    }
    spec.insert("ipFamilies", Value::Array(families));
}

fn check_configured(spec: &Map) -> Result<(), Problem> {
    let mut errors = Vec::new();
    if text(spec, "ipFamilyPolicy") == REQUIRE {
        let detail = "this cluster is not configured for dual-stack services";
        errors.push(policy_error(spec, detail.to_owned()));
    }
    let root = Path::root();
    let field = root.field("spec");
    let path = field.field("ipFamilies");
    for (place, family) in list(spec, "ipFamilies").iter().enumerate() {
        if family.as_str() == Some("IPv6") {
            let detail = "not configured on this cluster";
            errors.push(FieldError::invalid(&path.index(place), family, detail));
        }
    }
    none_or(errors)
}

fn policy_error(spec: &Map, detail: String) -> FieldError {
    let root = Path::root();
    let field = root.field("spec");
    let policy = Value::from(text(spec, "ipFamilyPolicy"));
    FieldError::invalid(&field.field("ipFamilyPolicy"), &policy, detail)
}

fn none_or(errors: Vec<FieldError>) -> Result<(), Problem> {
    if errors.is_empty() {
        Ok(())
    } else {
        Err(Problem::Fields(errors))
    }
}
