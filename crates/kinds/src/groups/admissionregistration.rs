//! `admissionregistration.k8s.io`: webhooks and admission policies.

use super::strategy::{keep_status_or_rest, no_status, status_or_rest};
use crate::defaults::access;
use crate::{Generation, Rules};

pub(super) fn rules(kind: &str) -> Rules {
    let base = Rules {
        generation: Generation::AllButStatus,
        unconditional_update: false,
        ..Rules::default()
    };
    match kind {
        "MutatingWebhookConfiguration" => Rules {
            defaults: access::mutating_webhooks,
            generation: Generation::ExactAllButStatus,
            ..base
        },
        "ValidatingWebhookConfiguration" => Rules {
            defaults: access::validating_webhooks,
            generation: Generation::ExactAllButStatus,
            ..base
        },
        "MutatingAdmissionPolicy" => Rules {
            defaults: access::admission_policy,
            ..base
        },
        "ValidatingAdmissionPolicy" => Rules {
            defaults: access::admission_policy,
            prepare_create: no_status,
            prepare_update: keep_status_or_rest,
            reset_fields: status_or_rest,
            ..base
        },
        "MutatingAdmissionPolicyBinding" | "ValidatingAdmissionPolicyBinding" => Rules {
            defaults: access::admission_policy_binding,
            ..base
        },
        _ => Rules::default(),
    }
}
