//! The parameters of operations.

use object::{Value, value};

use super::document::Version;

/// A parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Parameter {
    pub(super) name: &'static str,
    /// Its OpenAPI type.
    kind: &'static str,
    pub(super) in_path: bool,
}

const fn query(name: &'static str, kind: &'static str) -> Parameter {
    Parameter {
        name,
        kind,
        in_path: false,
    }
}

const fn path(name: &'static str) -> Parameter {
    Parameter {
        name,
        kind: "string",
        in_path: true,
    }
}

pub(super) const NAME: Parameter = path("name");
pub(super) const NAMESPACE: Parameter = path("namespace");
pub(super) const PATH: Parameter = path("path");
pub(super) const PRETTY: Parameter = query("pretty", "string");

/// Of reading a custom object.
pub(super) const READ: &[Parameter] = &[query("resourceVersion", "string")];

/// Of creating and replacing.
pub(super) const WRITE: &[Parameter] = &[
    query("dryRun", "string"),
    query("fieldManager", "string"),
    query("fieldValidation", "string"),
];

pub(super) const PATCH: &[Parameter] = &[
    query("dryRun", "string"),
    query("fieldManager", "string"),
    query("fieldValidation", "string"),
    query("force", "boolean"),
];

pub(super) const LIST: &[Parameter] = &[
    query("allowWatchBookmarks", "boolean"),
    query("continue", "string"),
    query("fieldSelector", "string"),
    query("labelSelector", "string"),
    query("limit", "integer"),
    query("resourceVersion", "string"),
    query("resourceVersionMatch", "string"),
    query("sendInitialEvents", "boolean"),
    query("shardSelector", "string"),
    query("timeoutSeconds", "integer"),
    query("watch", "boolean"),
];

pub(super) const DELETE: &[Parameter] = &[
    query("dryRun", "string"),
    query("gracePeriodSeconds", "integer"),
    query(
        "ignoreStoreReadErrorWithClusterBreakingPotential",
        "boolean",
    ),
    query("orphanDependents", "boolean"),
    query("propagationPolicy", "string"),
];

pub(super) const DELETE_COLLECTION: &[Parameter] = &[
    query("continue", "string"),
    query("dryRun", "string"),
    query("fieldSelector", "string"),
    query("gracePeriodSeconds", "integer"),
    query(
        "ignoreStoreReadErrorWithClusterBreakingPotential",
        "boolean",
    ),
    query("labelSelector", "string"),
    query("limit", "integer"),
    query("orphanDependents", "boolean"),
    query("propagationPolicy", "string"),
    query("resourceVersion", "string"),
    query("resourceVersionMatch", "string"),
    query("sendInitialEvents", "boolean"),
    query("shardSelector", "string"),
    query("timeoutSeconds", "integer"),
];

pub(super) const LOG: &[Parameter] = &[
    query("container", "string"),
    query("follow", "boolean"),
    query("insecureSkipTLSVerifyBackend", "boolean"),
    query("limitBytes", "integer"),
    query("previous", "boolean"),
    query("sinceSeconds", "integer"),
    query("stream", "string"),
    query("tailLines", "integer"),
    query("timestamps", "boolean"),
];

/// What a connection takes, by the kind of its options.
pub(super) fn of_connection(options: &str) -> &'static [Parameter] {
    const PROXY: &[Parameter] = &[query("path", "string")];
    const PORT_FORWARD: &[Parameter] = &[query("ports", "integer")];
    const EXEC: &[Parameter] = &[
        query("command", "string"),
        query("container", "string"),
        query("stderr", "boolean"),
        query("stdin", "boolean"),
        query("stdout", "boolean"),
        query("tty", "boolean"),
    ];
    match options {
        "PodExecOptions" => EXEC,
        "PodAttachOptions" => &EXEC[1..],
        "PodPortForwardOptions" => PORT_FORWARD,
        _ => PROXY,
    }
}

impl Parameter {
    pub(super) fn document(&self, version: Version) -> Value {
        let place = if self.in_path { "path" } else { "query" };
        let kind = self.kind;
        let mut document = match version {
            Version::Two => {
                value!({"name": (self.name), "in": place, "type": kind, "uniqueItems": true})
            }
            Version::Three => {
                let schema = value!({"type": kind, "uniqueItems": true});
                value!({"name": (self.name), "in": place, "schema": schema})
            }
        };
        if let (true, Some(map)) = (self.in_path, document.as_object_mut()) {
            map.insert("required", true.into());
        }
        document
    }
}
