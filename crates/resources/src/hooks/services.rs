//! Where the services are that webhooks live behind.
//!
//! An address that is ready is taken directly, because a server outside the cluster's network
//! proxies reaches pods sooner than virtual addresses; a service that nobody keeps addresses of is
//! tried at its virtual one. Contract: `apiserver/pkg/util/proxy/proxy.go`.

use admission::client::{Resolving, Service, Services};
use object::{Map, Value};

use crate::Resources;
use crate::admission::Place;
use crate::meta::meta;

const SERVICES: Place = ("", "v1", "services");
const SLICES: Place = ("discovery.k8s.io", "v1", "endpointslices");
const ENDPOINTS: Place = ("", "v1", "endpoints");
/// The label by which a slice names its service.
const SERVICE_NAME: &str = "kubernetes.io/service-name";

impl Services for Resources {
    fn resolve<'a>(&'a self, service: &'a Service) -> Resolving<'a> {
        Box::pin(self.address_of(service))
    }
}

impl Resources {
    async fn address_of(&self, service: &Service) -> Result<String, String> {
        let (namespace, name) = (service.namespace.as_str(), service.name.as_str());
        let failed = |error: crate::Error| error.to_string();
        let found = self.find(SERVICES, namespace, name).await.map_err(failed)?;
        let found = found.ok_or_else(|| format!("service \"{name}\" not found"))?;
        let spec = found.get("spec").unwrap_or(&Value::Null);
        if spec.str_at(&["type"]) == Some("ExternalName") {
            let host = spec.str_at(&["externalName"]).unwrap_or_default();
            return Ok(format!("{host}:{}", service.port));
        }
        let port = port_name(spec, service.port).ok_or_else(|| {
            format!(
                "no service port {} found for service \"{name}\"",
                service.port
            )
        })?;
        let mut slices = self.find_all(SLICES, namespace).await.map_err(failed)?;
        slices.retain(|slice| {
            let labels = meta(slice).get("labels");
            labels.and_then(|labels| labels.get(SERVICE_NAME)?.as_str()) == Some(name)
        });
        let endpoints = self
            .find(ENDPOINTS, namespace, name)
            .await
            .map_err(failed)?;
        let known = !slices.is_empty() || endpoints.is_some();
        let ready = slices.iter().find_map(|slice| ready_in_slice(slice, port));
        let ready = ready.or_else(|| ready_in_endpoints(endpoints.as_ref()?, port));
        let virtual_address = spec
            .str_at(&["clusterIP"])
            .filter(|ip| !matches!(*ip, "" | "None"));
        match (ready, virtual_address) {
            (Some(address), _) => Ok(address),
            (None, Some(ip)) if !known => Ok(join(ip, service.port.into())),
            _ => Err(format!("no endpoints available for service \"{name}\"")),
        }
    }
}

/// The name of a service's port, which addresses know it by.
fn port_name(spec: &Value, port: u16) -> Option<&str> {
    let ports = spec.get("ports")?.as_array()?;
    let number = |it: &&Value| it.get("port").and_then(Value::as_int) == Some(port.into());
    let found = ports.iter().find(number)?;
    Some(found.str_at(&["name"]).unwrap_or_default())
}

fn port_number(ports: Option<&Value>, name: &str) -> Option<i64> {
    let mut ports = ports?.as_array()?.iter();
    let found = ports.find(|port| port.str_at(&["name"]).unwrap_or_default() == name)?;
    found.get("port")?.as_int()
}

fn ready_in_slice(slice: &Map, port: &str) -> Option<String> {
    let port = port_number(slice.get("ports"), port)?;
    let mut endpoints = slice.get("endpoints")?.as_array()?.iter();
    let ready = endpoints.find(|endpoint| {
        let ready = endpoint.at(&["conditions", "ready"]);
        ready.and_then(Value::as_bool) != Some(false)
    })?;
    let address = ready.get("addresses")?.as_array()?.first()?.as_str()?;
    Some(join(address, port))
}

fn ready_in_endpoints(endpoints: &Map, port: &str) -> Option<String> {
    let subsets = endpoints.get("subsets")?.as_array()?;
    subsets.iter().find_map(|subset| {
        let port = port_number(subset.get("ports"), port)?;
        let address = subset.get("addresses")?.as_array()?.first()?;
        Some(join(address.str_at(&["ip"])?, port))
    })
}

fn join(host: &str, port: i64) -> String {
    if host.contains(':') {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::value;

    fn map(value: Value) -> Map {
        value.as_object().cloned().unwrap()
    }

    #[test]
    fn an_address_is_ready_unless_it_says_that_it_is_not() {
        let slice = map(value!({
            "endpoints": [
                {"addresses": ["192.0.2.1"], "conditions": {"ready": false}},
                {"addresses": ["2001:db8::1"], "conditions": {}},
            ],
            "ports": [{"name": "other", "port": 1}, {"name": "https", "port": 8443}],
        }));
        let address = ready_in_slice(&slice, "https");
        assert_eq!(address.as_deref(), Some("[2001:db8::1]:8443"));
        assert_eq!(ready_in_slice(&slice, ""), None);
    }

    #[test]
    fn endpoints_of_old_name_what_is_ready() {
        let endpoints = map(value!({"subsets": [
            {"notReadyAddresses": [{"ip": "192.0.2.1"}], "ports": [{"port": 443}]},
            {"addresses": [{"ip": "192.0.2.2"}], "ports": [{"port": 444}]},
        ]}));
        let address = ready_in_endpoints(&endpoints, "");
        assert_eq!(address.as_deref(), Some("192.0.2.2:444"));
    }
}
