//! What the server fills in where a client said nothing, per kind.
//!
//! Each function changes the value tree of one object in place and is idempotent. They follow
//! `pkg/apis/*/v1*/defaults.go` of kube-apiserver v1.36 with its default feature gates. Empty maps
//! that upstream prints for structs are the decoder's business; only what upstream's code sets is
//! set here.

pub(crate) mod access;
pub(crate) mod autoscaling;
pub(crate) mod cluster;
pub(crate) mod core;
pub(crate) mod extensions;
pub(crate) mod fill;
mod image;
pub(crate) mod pod;
pub(crate) mod pod_resources;
mod quantities;
pub(crate) mod volumes;
pub(crate) mod workloads;
