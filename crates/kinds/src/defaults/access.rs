//! Defaults of the kinds that decide who may do what: roles' bindings, admission, flow control.

use object::{Map, value};

use super::fill::{each, fill, fill_number, fill_text, text, within};

const RBAC_GROUP: &str = "rbac.authorization.k8s.io";

/// Fills a binding of roles, in a namespace or cluster-wide.
pub(crate) fn role_binding(binding: &mut Map) {
    fill_text(binding.object_at("roleRef"), "apiGroup", RBAC_GROUP);
    each(binding, "subjects", |subject| {
        if matches!(text(subject, "kind"), "User" | "Group") {
            fill_text(subject, "apiGroup", RBAC_GROUP);
        }
    });
}

/// Fills a configuration of mutating webhooks.
pub(crate) fn mutating_webhooks(configuration: &mut Map) {
    each(configuration, "webhooks", |hook| {
        webhook(hook);
        fill(hook, "reinvocationPolicy", "Never");
    });
}

/// Fills a configuration of validating webhooks.
pub(crate) fn validating_webhooks(configuration: &mut Map) {
    each(configuration, "webhooks", webhook);
}

fn webhook(hook: &mut Map) {
    fill(hook, "failurePolicy", "Fail");
    fill(hook, "timeoutSeconds", 10);
    matching(hook);
    within(hook, "clientConfig", |client| {
        within(client, "service", service_port)
    });
    each(hook, "rules", |rule| fill(rule, "scope", "*"));
}

/// Fills the port of a service that the server calls.
pub(crate) fn service_port(service: &mut Map) {
    fill(service, "port", 443);
}

fn matching(owner: &mut Map) {
    fill(owner, "matchPolicy", "Equivalent");
    fill(owner, "namespaceSelector", value!({}));
    fill(owner, "objectSelector", value!({}));
}

/// Fills an admission policy, validating or mutating.
pub(crate) fn admission_policy(policy: &mut Map) {
    let spec = policy.object_at("spec");
    fill(spec, "failurePolicy", "Fail");
    within(spec, "matchConstraints", match_resources);
}

/// Fills a binding of an admission policy.
pub(crate) fn admission_policy_binding(binding: &mut Map) {
    within(binding, "spec", |spec| {
        within(spec, "matchResources", match_resources)
    });
}

fn match_resources(resources: &mut Map) {
    matching(resources);
    for rules in ["resourceRules", "excludeResourceRules"] {
        each(resources, rules, |rule| fill(rule, "scope", "*"));
    }
}

/// Fills a flow schema.
pub(crate) fn flow_schema(schema: &mut Map) {
    fill_number(schema.object_at("spec"), "matchingPrecedence", 1000);
}

/// Fills a priority level.
pub(crate) fn priority_level(level: &mut Map) {
    let spec = level.object_at("spec");
    within(spec, "limited", |limited| {
        fill(limited, "nominalConcurrencyShares", 30);
        fill(limited, "lendablePercent", 0);
        within(limited, "limitResponse", |response| {
            within(response, "queuing", |queuing| {
                fill_number(queuing, "handSize", 8);
                fill_number(queuing, "queues", 64);
                fill_number(queuing, "queueLengthLimit", 50);
            });
        });
    });
    within(spec, "exempt", |exempt| {
        fill(exempt, "nominalConcurrencyShares", 0);
        fill(exempt, "lendablePercent", 0);
    });
}

/// Fills a request for a token.
pub(crate) fn token_request(request: &mut Map) {
    fill(request.object_at("spec"), "expirationSeconds", 3600);
}
