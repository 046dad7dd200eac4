//! The functions that expressions can call, by library.
//!
//! Contract: the base environment of `k8s.io/apiserver/pkg/cel/environment` for v1.36: standard
//! functions, extended strings, lists and sets of cel-go, and the libraries of Kubernetes.

pub(crate) mod authorization;
pub(crate) mod format;
pub(crate) mod jsonpatch;
pub(crate) mod lists;
pub(crate) mod network;
pub(crate) mod optional;
pub(crate) mod quantity;
pub(crate) mod regex;
pub(crate) mod semver;
pub(crate) mod sets;
pub(crate) mod standard;
pub(crate) mod string_format;
pub(crate) mod strings;
pub(crate) mod time;
pub(crate) mod url;

use crate::function::Declaration;

/// All declarations; a name may occur in several of them.
pub(crate) const ALL: &[&[Declaration]] = &[
    standard::FUNCTIONS,
    time::FUNCTIONS,
    url::FUNCTIONS,
    regex::FUNCTIONS,
    lists::FUNCTIONS,
    authorization::FUNCTIONS,
    optional::FUNCTIONS,
    quantity::FUNCTIONS,
    strings::FUNCTIONS,
    sets::FUNCTIONS,
    network::FUNCTIONS,
    format::FUNCTIONS,
    semver::FUNCTIONS,
    jsonpatch::FUNCTIONS,
];
