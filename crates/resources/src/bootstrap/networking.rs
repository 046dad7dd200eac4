//! Where the API is reached from inside a cluster, and which addresses services get.
//!
//! Unlike other bootstrap objects these follow the server: what they say about its address is set
//! again at every start. Contract: `pkg/controlplane/controller/kubernetesservice`,
//! `pkg/controlplane/reconcilers` and `pkg/controlplane/controller/defaultservicecidr`.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;

use auth::User;
use kinds::{Catalogue, Kind};
use object::{Map, Value, value};
use tracing::warn;

use crate::admission::Place;
use crate::allocate::{SERVICE_RANGE, SERVICES};
use crate::error::Error;
use crate::options::WriteOptions;
use crate::{Request, Resources, Warnings};

/// The name of all objects here.
const NAME: &str = "kubernetes";
/// The address of the API inside a cluster.
const SERVICE_ADDRESS: &str = "10.0.0.1";
const ENDPOINTS: Place = ("", "v1", "endpoints");
const SLICES: Place = ("discovery.k8s.io", "v1", "endpointslices");
const SERVICE_RANGES: Place = ("networking.k8s.io", "v1", "servicecidrs");
/// The manager of the status that says that services get their addresses.
const RANGE_MANAGER: &str = "kubernetes-service-cidr-controller";

/// An object, and the fields that the server sets again.
pub(super) struct Own {
    pub kind: Arc<Kind>,
    pub object: Value,
    kept: &'static [&'static [&'static str]],
}

impl Own {
    fn new(
        place: Place,
        object: Value,
        kept: &'static [&'static [&'static str]],
    ) -> Result<Own, Error> {
        let (group, version, resource) = place;
        let kind = Catalogue::builtin().resource(group, version, resource);
        let kind = kind.ok_or_else(|| Error::Internal(format!("{resource} are not served")))?;
        Ok(Own {
            kind: Arc::clone(kind),
            object,
            kept,
        })
    }

    /// Sets the fields of a stored object; says whether they were different.
    fn renew(&self, live: &mut Map) -> bool {
        // The family of a slice cannot change; the server came back with an address of another.
        if live.get("addressType") != self.object.get("addressType") {
            return false;
        }
        let mut differs = false;
        for path in self.kept {
            let (Some(wanted), Some((last, parents))) = (self.object.at(path), path.split_last())
            else {
                continue;
            };
            let inside = parents
                .iter()
                .fold(&mut *live, |map, key| map.object_at(key));
            differs |= inside.get(last) != Some(wanted);
            inside.insert(*last, wanted.clone());
        }
        differs
    }
}

/// The service that stands for the API itself, where it really listens, and the range that
/// services get their addresses from.
pub(super) fn own_objects(address: SocketAddr) -> Result<Vec<Own>, Error> {
    let port = i64::from(address.port());
    let service = value!({
        "metadata": {
            "name": NAME,
            "namespace": "default",
            "labels": {"component": "apiserver", "provider": "kubernetes"},
        },
        "spec": {
            "type": "ClusterIP",
            "clusterIP": SERVICE_ADDRESS,
            "ipFamilyPolicy": "SingleStack",
            "ports": [{"name": "https", "protocol": "TCP", "port": 443, "targetPort": port}],
        },
    });
    let range = value!({"metadata": {"name": NAME}, "spec": {"cidrs": [SERVICE_RANGE]}});
    let mut all = vec![
        Own::new(SERVICES, service, &[&["spec", "ports"]])?,
        Own::new(SERVICE_RANGES, range, &[])?,
    ];
    let Some(ip) = advertised(address.ip()) else {
        return Ok(all);
    };
    let ports = value!([{"name": "https", "protocol": "TCP", "port": port}]);
    let endpoints = value!({
        "metadata": {
            "name": NAME,
            "namespace": "default",
            "labels": {"endpointslice.kubernetes.io/skip-mirror": "true"},
        },
        "subsets": [{"addresses": [{"ip": (ip.to_string())}], "ports": (ports.clone())}],
    });
    let slice = value!({
        "metadata": {
            "name": NAME,
            "namespace": "default",
            "labels": {"kubernetes.io/service-name": NAME},
        },
        "addressType": (if ip.is_ipv4() { "IPv4" } else { "IPv6" }),
        "endpoints": [{"addresses": [(ip.to_string())], "conditions": {"ready": true}}],
        "ports": ports,
    });
    all.push(Own::new(ENDPOINTS, endpoints, &[&["subsets"]])?);
    all.push(Own::new(SLICES, slice, &[&["endpoints"], &["ports"]])?);
    Ok(all)
}

impl Resources {
    /// Sets what objects of an earlier start say about the server's address.
    pub(super) async fn keep_current(&self, all: &[Own]) {
        let user = User::server();
        let options = WriteOptions {
            manager: "kube-apiserver".into(),
            ..WriteOptions::default()
        };
        for own in all {
            let request = Request {
                kind: &own.kind,
                namespace: own
                    .object
                    .str_at(&["metadata", "namespace"])
                    .unwrap_or_default(),
                name: NAME,
                subresource: "",
                user: &user,
                options: &options,
                warnings: &Warnings::default(),
            };
            // Whoever made something else of the object keeps it.
            if let Err(error) = self.edit(&request, |live| own.renew(live)).await {
                warn!(resource = %own.kind.resource, %error, "the server's address is not told");
            }
        }
    }

    /// Says that services get their addresses, unless that has been said.
    pub(super) async fn report_service_range(&self) -> Result<(), Error> {
        let conditions = self
            .find(SERVICE_RANGES, "", NAME)
            .await?
            .and_then(|range| {
                let status = range.get("status")?.get("conditions")?;
                Some(!status.as_array()?.is_empty())
            });
        if conditions == Some(true) {
            return Ok(());
        }
        let condition = [
            ("type", "Ready"),
            ("status", "True"),
            ("message", "Kubernetes default Service CIDR is ready"),
        ];
        let kind = self.built_in(SERVICE_RANGES)?;
        self.apply_condition(kind, NAME, RANGE_MANAGER, &condition)
            .await
    }
}

/// The address by which others reach this machine; endpoints may not name one that only this
/// machine or its neighbours know.
pub fn advertised(listening: IpAddr) -> Option<IpAddr> {
    let is_local = |ip: &IpAddr| match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    };
    let usable = |ip: &IpAddr| !ip.is_loopback() && !ip.is_unspecified() && !is_local(ip);
    if usable(&listening) {
        return Some(listening);
    }
    // Choosing a route sends nothing; the address is one reserved for documents.
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9)).ok()?;
    let address = socket.local_addr().ok()?;
    Some(address.ip()).filter(usable)
}
