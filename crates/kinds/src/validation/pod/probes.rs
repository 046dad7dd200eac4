//! Probes and lifecycle hooks: what is run, asked or called on a container.

use object::field::Path;
use object::{Map, names};

use super::Context;
use crate::validation::check::{self, Errors, Report};
use crate::validation::read::{Read, maps};

const WINDOWS_SIGNALS: &[&str] = &["SIGKILL", "SIGTERM"];

/// Checks one of a container's probes, if it has it.
pub(super) fn probe(
    container: &Map,
    key: &str,
    context: &Context<'_>,
    path: &Path<'_>,
    errors: &mut Errors,
) {
    let Some(probe) = container.object(key) else {
        return;
    };
    let path = path.field(key);
    handler(
        probe,
        &["exec", "httpGet", "tcpSocket", "grpc"],
        context,
        &path,
        errors,
    );
    check::not_negative(
        probe,
        &[
            "initialDelaySeconds",
            "timeoutSeconds",
            "periodSeconds",
            "successThreshold",
            "failureThreshold",
        ],
        &path,
        errors,
    );
    let grace = probe.int("terminationGracePeriodSeconds");
    if let Some(grace) = grace.filter(|grace| *grace <= 0) {
        let path = path.field("terminationGracePeriodSeconds");
        errors.invalid(&path, grace, "must be greater than 0");
    }
    if key == "readinessProbe" {
        if let Some(grace) = grace {
            let path = path.field("terminationGracePeriodSeconds");
            errors.invalid(&path, grace, "must not be set for readinessProbes");
        }
    } else {
        let threshold = probe.int("successThreshold").unwrap_or_default();
        if threshold != 1 {
            errors.invalid(&path.field("successThreshold"), threshold, "must be 1");
        }
    }
}

/// Checks what is done when a container starts and stops.
pub(super) fn lifecycle(
    container: &Map,
    context: &Context<'_>,
    path: &Path<'_>,
    errors: &mut Errors,
) {
    let Some(lifecycle) = container.object("lifecycle") else {
        return;
    };
    let path = path.field("lifecycle");
    for key in ["postStart", "preStop"] {
        if let Some(hook) = lifecycle.object(key) {
            let kinds = ["exec", "httpGet", "tcpSocket", "sleep"];
            handler(hook, &kinds, context, &path.field(key), errors);
        }
    }
    if lifecycle.has("stopSignal") {
        let path = path.field("stopSignal");
        let signal = lifecycle.text("stopSignal");
        match context.os {
            "" => errors.forbidden(
                &path,
                "may not be set for containers with empty `spec.os.name`",
            ),
            "windows" => check::choice_or_empty(signal, WINDOWS_SIGNALS, &path, errors),
            _ => {}
        }
    }
}

fn handler(
    handler: &Map,
    kinds: &[&str],
    context: &Context<'_>,
    path: &Path<'_>,
    errors: &mut Errors,
) {
    let mut found = false;
    for kind in kinds {
        let Some(action) = handler.object(kind) else {
            continue;
        };
        let path = path.field(kind);
        if found {
            errors.forbidden(&path, "may not specify more than 1 handler type");
            continue;
        }
        found = true;
        match *kind {
            "exec" if action.list("command").is_empty() => {
                errors.required(&path.field("command"), "");
            }
            "exec" => {}
            "httpGet" => http_get(action, &path, errors),
            "tcpSocket" => {
                check::port_number_or_name(action.value("port"), &path.field("port"), errors);
            }
            "grpc" => {
                let port = action.int("port").unwrap_or_default();
                check::port_number(port, &path.field("port"), errors);
            }
            _ => sleep(action, context, &path, errors),
        }
    }
    if !found {
        errors.required(path, "must specify a handler type");
    }
}

fn http_get(action: &Map, path: &Path<'_>, errors: &mut Errors) {
    if action.text("path").is_empty() {
        errors.required(&path.field("path"), "");
    }
    check::port_number_or_name(action.value("port"), &path.field("port"), errors);
    let scheme = action.text("scheme");
    check::choice_or_empty(scheme, &["HTTP", "HTTPS"], &path.field("scheme"), errors);
    for (_, header) in maps(action.list("httpHeaders")) {
        let name = header.text("name");
        let complaints = names::http_header_name(name);
        errors.each(&path.field("httpHeaders"), name, complaints);
    }
}

fn sleep(action: &Map, context: &Context<'_>, path: &Path<'_>, errors: &mut Errors) {
    let seconds = action.int("seconds").unwrap_or_default();
    if let Some(grace) = context.grace_period
        && !(0..=grace).contains(&seconds)
    {
        let detail =
            format!("must be non-negative and less than terminationGracePeriodSeconds ({grace})");
        errors.invalid(path, seconds, detail);
    }
}
