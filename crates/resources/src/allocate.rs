//! Addresses and node ports of services.
//!
//! Nothing is stored beside the services themselves: what is taken is read from them once, before
//! the first write, and kept in memory. A write takes what it needs before it commits; a [`Lease`]
//! gives it back unless the commit succeeded. Contract: `pkg/registry/core/service/storage`.

mod families;
mod ports;
mod range;

use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use object::addresses::parse_sloppy;
use object::field::{FieldError, Path};
use object::{Map, Value};
use tokio::sync::OnceCell;

use crate::admission::Place;
use crate::error::Error;
use crate::meta::meta_text;
use crate::{Request, Resources, kind_subject};
use families::NONE;
use range::{Range, Taken};

/// Where the addresses of services come from.
pub(crate) const SERVICE_RANGE: &str = "10.0.0.0/24";
pub(crate) const SERVICES: Place = ("", "v1", "services");

/// What is taken, once it has been read.
#[derive(Clone, Default)]
pub(crate) struct Allocations(Arc<OnceCell<Mutex<State>>>);

struct State {
    addresses: Range,
    node_ports: Range,
}

/// What a write took and what it gives up. Dropped without [`Lease::keep`], it gives back the
/// former and keeps the latter.
#[derive(Default)]
pub(crate) struct Lease {
    allocations: Allocations,
    taken: Vec<Item>,
    released: Vec<Item>,
    /// Nothing is kept in the end, and a node port outside the range is let through.
    dry_run: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Item {
    Address(u32),
    NodePort(u32),
}

impl Lease {
    /// The write is committed.
    pub(crate) fn keep(mut self) {
        self.taken.clear();
        let released = std::mem::take(&mut self.released);
        self.allocations.give_back(&released);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.allocations
            .lock()
            .expect("a lease is made after what is taken has been read")
    }

    fn take_address(&mut self, wanted: Option<u32>) -> Result<u32, Taken> {
        let address = self.lock().addresses.take(wanted)?;
        self.taken.push(Item::Address(address));
        Ok(address)
    }

    fn take_port(&mut self, wanted: Option<u32>) -> Result<u32, Taken> {
        let port = match (self.lock().node_ports.take(wanted), wanted) {
            (Err(Taken::NotInRange), Some(wanted)) if self.dry_run => return Ok(wanted),
            (taken, _) => taken?,
        };
        self.taken.push(Item::NodePort(port));
        Ok(port)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let taken = std::mem::take(&mut self.taken);
        self.allocations.give_back(&taken);
    }
}

impl Allocations {
    fn lock(&self) -> Option<MutexGuard<'_, State>> {
        // A panic leaves at most an address too many taken.
        self.0
            .get()
            .map(|state| state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn give_back(&self, items: &[Item]) {
        if items.is_empty() {
            return;
        }
        if let Some(mut state) = self.lock() {
            for item in items {
                match *item {
                    Item::Address(address) => state.addresses.release(address),
                    Item::NodePort(port) => state.node_ports.release(port),
                }
            }
        }
    }
}

impl Resources {
    /// Gives a new service its address and ports.
    pub(crate) async fn allocate_new(
        &self,
        request: &Request<'_>,
        service: &mut Map,
    ) -> Result<Lease, Error> {
        if !is_about_services(request) {
            return Ok(Lease::default());
        }
        let mut lease = self.lease().await?;
        lease.dry_run = request.options.dry_run;
        let spec = service.object_at("spec");
        families::align_new(spec);
        let allocated = families::fill(spec, None)
            .and_then(|()| allocate_address(spec, &mut lease))
            .and_then(|()| ports::allocate_new(spec, &mut lease));
        allocated.map_err(|problem| problem.about(request, service))?;
        Ok(lease)
    }

    /// Gives a changed service what it needs now, and notes what it no longer needs.
    pub(crate) async fn allocate_changed(
        &self,
        request: &Request<'_>,
        service: &mut Map,
        old: &Map,
    ) -> Result<Lease, Error> {
        let Some(old) = old.get("spec").and_then(Value::as_object) else {
            return Ok(Lease::default());
        };
        if !is_about_services(request) {
            return Ok(Lease::default());
        }
        let mut lease = self.lease().await?;
        lease.dry_run = request.options.dry_run;
        let spec = service.object_at("spec");
        families::carry_over(spec, old);
        ports::carry_over(spec, old);
        families::align_changed(spec, old);
        let allocated = families::fill(spec, Some(old))
            .and_then(|()| change_address(spec, old, &mut lease))
            .and_then(|()| ports::allocate_changed(spec, old, &mut lease));
        allocated.map_err(|problem| problem.about(request, service))?;
        Ok(lease)
    }

    /// Gives back what a removed object held.
    pub(crate) fn release_allocated(&self, request: &Request<'_>, object: &Map) {
        let (group, _, resource) = SERVICES;
        if request.kind.group == group && request.kind.resource == resource {
            self.allocations.give_back(&held(object));
        }
    }

    /// Reads what stored services hold, unless that has been done.
    pub(crate) async fn load_allocations(&self) -> Result<(), Error> {
        let load = || async {
            let services = self.find_all(SERVICES, "").await?;
            let mut state = State {
                addresses: range::addresses(),
                node_ports: range::ports(),
            };
            for item in services.iter().flat_map(held) {
                // Two services that hold the same cannot be told apart here; both keep it.
                match item {
                    Item::Address(address) => drop(state.addresses.take(Some(address))),
                    Item::NodePort(port) => drop(state.node_ports.take(Some(port))),
                }
            }
            Ok(Mutex::new(state))
        };
        self.allocations.0.get_or_try_init(load).await.map(|_| ())
    }

    async fn lease(&self) -> Result<Lease, Error> {
        self.load_allocations().await?;
        let allocations = self.allocations.clone();
        Ok(Lease {
            allocations,
            taken: Vec::new(),
            released: Vec::new(),
            dry_run: false,
        })
    }
}

fn is_about_services(request: &Request<'_>) -> bool {
    let (group, _, resource) = SERVICES;
    request.subresource.is_empty()
        && request.kind.group == group
        && request.kind.resource == resource
}

/// Everything that a service holds.
fn held(service: &Map) -> Vec<Item> {
    let Some(spec) = service.get("spec").and_then(Value::as_object) else {
        return Vec::new();
    };
    let addresses = list(spec, "clusterIPs").iter().filter_map(Value::as_str);
    let addresses = addresses.filter_map(address_number).map(Item::Address);
    addresses
        .chain(ports::held(spec).into_iter().map(Item::NodePort))
        .collect()
}

fn address_number(text: &str) -> Option<u32> {
    match parse_sloppy(text)? {
        std::net::IpAddr::V4(address) => Some(address.to_bits()),
        std::net::IpAddr::V6(_) => None,
    }
}

/// Takes the address that a service names, or any.
fn allocate_address(spec: &mut Map, lease: &mut Lease) -> Result<(), Problem> {
    let first = list(spec, "clusterIPs")
        .first()
        .and_then(Value::as_str)
        .unwrap_or_default();
    if !families::needs_address(spec) || first == NONE {
        return Ok(());
    }
    let named = match first {
        "" => None,
        // What is no address of ours is for validation to refuse.
        first => match address_number(first) {
            Some(number) => Some(number),
            None => return Ok(()),
        },
    };
    match lease.take_address(named) {
        Ok(number) if named.is_none() => {
            let address = Value::from(Ipv4Addr::from_bits(number).to_string());
            spec.insert("clusterIP", address.clone());
            spec.insert("clusterIPs", Value::Array(vec![address]));
            Ok(())
        }
        Ok(_) => Ok(()),
        Err(Taken::Full) => Err(Problem::Internal(format!(
            "failed to allocate a serviceIP: {}",
            Taken::Full
        ))),
        Err(problem) => {
            let detail = match problem {
                Taken::NotInRange if lease.dry_run => format!(
                    "the provided IP ({first}) is not in the valid range. The range of valid IPs \
                     is {SERVICE_RANGE}"
                ),
                Taken::NotInRange => {
                    "the provided network does not match the current range".to_owned()
                }
                Taken::Already | Taken::Full => "provided IP is already allocated".to_owned(),
            };
            let detail = format!("failed to allocate IP {first}: {detail}");
            let root = Path::root();
            let field = root.field("spec");
            let value = spec.get("clusterIPs").cloned().unwrap_or_default();
            Err(FieldError::invalid(&field.field("clusterIPs"), &value, detail).into())
        }
    }
}

fn change_address(spec: &mut Map, old: &Map, lease: &mut Lease) -> Result<(), Problem> {
    let first = |spec: &Map| {
        list(spec, "clusterIPs")
            .first()
            .and_then(Value::as_str)
            .map(str::len)
    };
    match (families::needs_address(old), families::needs_address(spec)) {
        (false, true) => allocate_address(spec, lease),
        (true, false) => {
            let addresses = list(old, "clusterIPs").iter().filter_map(Value::as_str);
            let addresses = addresses.filter_map(address_number).map(Item::Address);
            lease.released.extend(addresses);
            Ok(())
        }
        // Services written before addresses were handed out get theirs now.
        (true, true) if first(old).is_none() && first(spec).is_none() => {
            allocate_address(spec, lease)
        }
        _ => Ok(()),
    }
}

/// Why a service cannot have what it wants.
enum Problem {
    Fields(Vec<FieldError>),
    Internal(String),
}

impl Problem {
    fn about(self, request: &Request<'_>, service: &Map) -> Error {
        match self {
            Problem::Fields(errors) => {
                let subject = kind_subject(request.kind, meta_text(service, "name"));
                Error::Invalid { subject, errors }
            }
            Problem::Internal(text) => Error::Internal(text),
        }
    }
}

impl From<FieldError> for Problem {
    fn from(error: FieldError) -> Problem {
        Problem::Fields(vec![error])
    }
}

fn text<'a>(map: &'a Map, field: &str) -> &'a str {
    map.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn list<'a>(map: &'a Map, field: &str) -> &'a [Value] {
    map.get(field).and_then(Value::as_array).unwrap_or_default()
}

fn number(map: &Map, field: &str) -> i64 {
    map.get(field).and_then(Value::as_int).unwrap_or(0)
}
