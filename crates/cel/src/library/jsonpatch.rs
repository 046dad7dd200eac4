//! Help for JSON patches of mutating policies.
//!
//! Contract: `k8s.io/apiserver/pkg/cel/library/jsonpatch.go`.

use crate::evaluate::Fault;
use crate::function::Declaration;
use crate::value::Value;

pub(crate) const FUNCTIONS: &[Declaration] = &[Declaration {
    name: "jsonpatch.escapeKey",
    overloads: &[("string_jsonpatch_escapeKey_string", "(string) -> string")],
    native: |arguments, _| match arguments {
        [Value::String(key)] => {
            let escaped = key.replace('~', "~0").replace('/', "~1");
            Ok(Value::owned_text(escaped))
        }
        _ => Err(Fault::no_overload()),
    },
}];
