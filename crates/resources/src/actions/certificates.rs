//! Certificate signing requests: who asks is what the server knows, never what a client says.

use object::{Map, Text, Value};

use crate::Request;

/// Writes into a new signing request who asks for the certificate.
pub(crate) fn name_requester(request: &Request<'_>, object: &mut Map) {
    let kind = request.kind;
    if kind.group != "certificates.k8s.io" || kind.resource != "certificatesigningrequests" {
        return;
    }
    let user = request.user;
    let spec = object.object_at("spec");
    spec.insert("username", Value::String(user.name.clone()));
    if !user.uid.is_empty() {
        spec.insert("uid", Value::String(user.uid.clone()));
    }
    if !user.groups.is_empty() {
        let groups = user.groups.iter().cloned().map(Value::String).collect();
        spec.insert("groups", Value::Array(groups));
    }
    if !user.extra.is_empty() {
        let list =
            |values: &[Text]| Value::Array(values.iter().cloned().map(Value::String).collect());
        let extra = user
            .extra
            .iter()
            .map(|(key, values)| (key.clone(), list(values)));
        spec.insert("extra", Value::Object(extra.collect()));
    }
}
