//! The objects that exist from the first start on.
//!
//! They are written through the normal write path as manager `kube-apiserver`; what an operator
//! deleted comes back at the next start, what an operator changed stays changed.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;

use auth::User;
use kinds::{Catalogue, Kind};
use object::{Value, json, value};
use tokio::task::JoinSet;

use crate::body::{Body, Media};
use crate::error::Error;
use crate::options::WriteOptions;
use crate::{Request, Resources, Warnings};

/// One object a line: API version, resource, object.
const OBJECTS: &str = include_str!("bootstrap.jsonl");
/// The address of the API inside a cluster.
const SERVICE_ADDRESS: &str = "10.0.0.1";

impl Resources {
    /// Makes sure that every bootstrap object exists; `address` is where the server listens.
    pub async fn bootstrap(&self, address: SocketAddr) -> Result<(), Error> {
        self.load_allocations().await?;
        let mut namespaces = Vec::new();
        let mut others = Vec::new();
        for line in OBJECTS.lines() {
            let (kind, object) = self.read_line(line)?;
            if kind.kind == "Namespace" {
                namespaces.push((kind, object));
            } else {
                others.push((kind, object));
            }
        }
        others.extend(self.api_service(address)?);
        self.make_all(namespaces).await?;
        self.make_all(others).await
    }

    /// Makes objects side by side, so that they share the syncs of the store.
    async fn make_all(&self, objects: Vec<(Arc<Kind>, Value)>) -> Result<(), Error> {
        let mut tasks = JoinSet::new();
        for (kind, object) in objects {
            let resources = self.clone();
            tasks.spawn(async move { resources.make(&kind, object).await });
        }
        while let Some(done) = tasks.join_next().await {
            done.map_err(|error| Error::Internal(error.to_string()))??;
        }
        Ok(())
    }

    /// Makes an object unless there is one of its name.
    pub(crate) async fn make(&self, kind: &Arc<Kind>, object: Value) -> Result<(), Error> {
        let text = |field| {
            object
                .str_at(&["metadata", field])
                .unwrap_or_default()
                .to_owned()
        };
        let (namespace, name) = (text("namespace"), text("name"));
        match self.get(kind, &namespace, &name, None).await {
            Err(Error::NotFound(_)) => {}
            other => return other.map(|_| ()),
        }
        let options = WriteOptions {
            manager: "kube-apiserver".into(),
            ..WriteOptions::default()
        };
        let user = User::server();
        let request = Request {
            kind,
            namespace: &namespace,
            name: "",
            subresource: "",
            user: &user,
            options: &options,
            warnings: &Warnings::default(),
        };
        let body = Body {
            media: Media::Json,
            bytes: json::to_vec(&object).into(),
        };
        match self.create(&request, &body).await {
            Ok(_) | Err(Error::AlreadyExists(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn read_line(&self, line: &str) -> Result<(Arc<Kind>, Value), Error> {
        let damaged = || Error::Internal(format!("bootstrap object cannot be read: {line}"));
        let parsed = json::parse(line.as_bytes()).map_err(|_| damaged())?;
        let Value::Array(parts) = parsed else {
            return Err(damaged());
        };
        let [Value::String(api_version), Value::String(resource), object] = parts.as_slice() else {
            return Err(damaged());
        };
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let kind = Catalogue::builtin()
            .resource(group, version, resource)
            .ok_or_else(damaged)?;
        Ok((Arc::clone(kind), object.clone()))
    }

    /// The service that stands for the API itself, and where it really listens.
    fn api_service(&self, address: SocketAddr) -> Result<Vec<(Arc<Kind>, Value)>, Error> {
        let port = i64::from(address.port());
        let service = value!({
            "metadata": {
                "name": "kubernetes",
                "namespace": "default",
                "labels": {"component": "apiserver", "provider": "kubernetes"},
            },
            "spec": {
                "type": "ClusterIP",
                "clusterIP": SERVICE_ADDRESS,
                "clusterIPs": [SERVICE_ADDRESS],
                "ipFamilies": ["IPv4"],
                "ipFamilyPolicy": "SingleStack",
                "ports": [{"name": "https", "protocol": "TCP", "port": 443, "targetPort": port}],
            },
        });
        let kind = |resource| {
            let kind = Catalogue::builtin()
                .resource("", "v1", resource)
                .map(Arc::clone);
            kind.ok_or_else(|| Error::Internal(format!("{resource} are not served")))
        };
        let mut objects = vec![(kind("services")?, service)];
        if let Some(ip) = advertised(address.ip()) {
            let endpoints = value!({
                "metadata": {
                    "name": "kubernetes",
                    "namespace": "default",
                    "labels": {"endpointslice.kubernetes.io/skip-mirror": "true"},
                },
                "subsets": [{
                    "addresses": [{"ip": (ip.to_string())}],
                    "ports": [{"name": "https", "protocol": "TCP", "port": port}],
                }],
            });
            objects.push((kind("endpoints")?, endpoints));
        }
        Ok(objects)
    }
}

/// The address by which others reach this machine; endpoints may not name a loopback one.
fn advertised(listening: IpAddr) -> Option<IpAddr> {
    let usable = |ip: &IpAddr| !ip.is_loopback() && !ip.is_unspecified();
    if usable(&listening) {
        return Some(listening);
    }
    // Choosing a route sends nothing; the address is one reserved for documents.
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9)).ok()?;
    socket
        .local_addr()
        .ok()
        .map(|address| address.ip())
        .filter(usable)
}
