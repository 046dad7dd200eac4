//! Questions to the authorizer.
//!
//! Contract: `k8s.io/apiserver/pkg/cel/library/authz.go`.

use crate::authorize::{Decision, GroupCheck, PathCheck, ResourceCheck, ResourceSubject, Subject};
use crate::evaluate::{Fault, Meter};
use crate::function::Declaration;
use crate::value::{Library, Value};
use object::names;
use std::sync::Arc;

type Outcome<'v> = Result<Value<'v>, Fault>;

pub(crate) const FUNCTIONS: &[Declaration] = &[
    Declaration {
        name: "path",
        overloads: &[("authorizer_path", "Authorizer.(string) -> PathCheck")],
        native: path,
    },
    Declaration {
        name: "group",
        overloads: &[("authorizer_group", "Authorizer.(string) -> GroupCheck")],
        native: |arguments, _| match arguments {
            [
                Value::Library(Library::Authorizer(authorizer)),
                Value::String(group),
            ] => {
                let check = GroupCheck {
                    authorizer: authorizer.clone(),
                    group: group.to_string(),
                };
                Ok(Value::Library(Library::GroupCheck(Arc::new(check))))
            }
            _ => Err(Fault::no_overload()),
        },
    },
    Declaration {
        name: "serviceAccount",
        overloads: &[(
            "authorizer_serviceaccount",
            "Authorizer.(string, string) -> Authorizer",
        )],
        native: service_account,
    },
    Declaration {
        name: "resource",
        overloads: &[(
            "groupcheck_resource",
            "GroupCheck.(string) -> ResourceCheck",
        )],
        native: resource,
    },
    Declaration {
        name: "subresource",
        overloads: &[(
            "resourcecheck_subresource",
            "ResourceCheck.(string) -> ResourceCheck",
        )],
        native: |arguments, meter| with(arguments, meter, |it, text| it.subresource = text),
    },
    Declaration {
        name: "namespace",
        overloads: &[(
            "resourcecheck_namespace",
            "ResourceCheck.(string) -> ResourceCheck",
        )],
        native: |arguments, meter| with(arguments, meter, |it, text| it.namespace = text),
    },
    Declaration {
        name: "name",
        overloads: &[(
            "resourcecheck_name",
            "ResourceCheck.(string) -> ResourceCheck",
        )],
        native: |arguments, meter| with(arguments, meter, |it, text| it.name = text),
    },
    Declaration {
        name: "fieldSelector",
        overloads: &[(
            "authorizer_fieldselector",
            "ResourceCheck.(string) -> ResourceCheck",
        )],
        native: |arguments, meter| with(arguments, meter, |it, text| it.field_selector = text),
    },
    Declaration {
        name: "labelSelector",
        overloads: &[(
            "authorizer_labelselector",
            "ResourceCheck.(string) -> ResourceCheck",
        )],
        native: |arguments, meter| with(arguments, meter, |it, text| it.label_selector = text),
    },
    Declaration {
        name: "check",
        overloads: &[
            ("pathcheck_check", "PathCheck.(string) -> Decision"),
            ("resourcecheck_check", "ResourceCheck.(string) -> Decision"),
        ],
        native: check,
    },
    Declaration {
        name: "errored",
        overloads: &[("decision_errored", "Decision.() -> bool")],
        native: |arguments, _| Ok(Value::Bool(decision(arguments)?.error.is_some())),
    },
    Declaration {
        name: "error",
        overloads: &[("decision_error", "Decision.() -> string")],
        native: |arguments, _| {
            let error = decision(arguments)?.error.clone();
            Ok(Value::owned_text(error.unwrap_or_default()))
        },
    },
    Declaration {
        name: "allowed",
        overloads: &[("decision_allowed", "Decision.() -> bool")],
        native: |arguments, _| Ok(Value::Bool(decision(arguments)?.is_allowed)),
    },
    Declaration {
        name: "reason",
        overloads: &[("decision_reason", "Decision.() -> string")],
        native: |arguments, _| Ok(Value::owned_text(decision(arguments)?.reason.as_str())),
    },
];

fn decision<'a>(arguments: &'a [Value<'_>]) -> Result<&'a Decision, Fault> {
    match arguments {
        [Value::Library(Library::Decision(decision))] => Ok(decision),
        _ => Err(Fault::no_overload()),
    }
}

fn path<'v>(arguments: &[Value<'v>], _: &mut Meter) -> Outcome<'v> {
    let [
        Value::Library(Library::Authorizer(authorizer)),
        Value::String(path),
    ] = arguments
    else {
        return Err(Fault::no_overload());
    };
    if path.trim().is_empty() {
        return Err(Fault::new("path must not be empty"));
    }
    let check = PathCheck {
        authorizer: authorizer.clone(),
        path: path.to_string(),
    };
    Ok(Value::Library(Library::PathCheck(Arc::new(check))))
}

fn service_account<'v>(arguments: &[Value<'v>], _: &mut Meter) -> Outcome<'v> {
    let [
        Value::Library(Library::Authorizer(authorizer)),
        Value::String(namespace),
        Value::String(name),
    ] = arguments
    else {
        return Err(Fault::no_overload());
    };
    if !names::name_is_dns_subdomain(name, false).is_empty() {
        return Err(Fault::new("Invalid service account name"));
    }
    if !names::name_is_dns_label(namespace, false).is_empty() {
        return Err(Fault::new("Invalid service account namespace"));
    }
    let authorizer = authorizer.as_service_account(namespace, name);
    Ok(Value::Library(Library::Authorizer(authorizer)))
}

fn resource<'v>(arguments: &[Value<'v>], _: &mut Meter) -> Outcome<'v> {
    let [
        Value::Library(Library::GroupCheck(check)),
        Value::String(resource),
    ] = arguments
    else {
        return Err(Fault::no_overload());
    };
    if resource.trim().is_empty() {
        return Err(Fault::new("resource must not be empty"));
    }
    let check = ResourceCheck {
        authorizer: check.authorizer.clone(),
        subject: ResourceSubject {
            group: check.group.clone(),
            resource: resource.to_string(),
            ..ResourceSubject::default()
        },
    };
    Ok(Value::Library(Library::ResourceCheck(Arc::new(check))))
}

fn with<'v>(
    arguments: &[Value<'v>],
    _: &mut Meter,
    change: fn(&mut ResourceSubject, String),
) -> Outcome<'v> {
    let [
        Value::Library(Library::ResourceCheck(check)),
        Value::String(text),
    ] = arguments
    else {
        return Err(Fault::no_overload());
    };
    let mut check = ResourceCheck::clone(check);
    change(&mut check.subject, text.to_string());
    Ok(Value::Library(Library::ResourceCheck(Arc::new(check))))
}

fn check<'v>(arguments: &[Value<'v>], _: &mut Meter) -> Outcome<'v> {
    let decision = match arguments {
        [
            Value::Library(Library::PathCheck(check)),
            Value::String(verb),
        ] => check
            .authorizer
            .ask(verb, Subject::Path(check.path.clone())),
        [
            Value::Library(Library::ResourceCheck(check)),
            Value::String(verb),
        ] => check
            .authorizer
            .ask(verb, Subject::Resource(check.subject.clone())),
        _ => return Err(Fault::no_overload()),
    };
    Ok(Value::Library(Library::Decision(Arc::new(decision))))
}
