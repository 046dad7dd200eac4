//! The scopes of a quota: which pods and claims it is about.

use std::collections::BTreeSet;

use object::labels::{Operator, Requirement};
use object::{Map, Text, Value};

const PRIORITY_CLASS: &str = "PriorityClass";
const ATTRIBUTES_CLASS: &str = "VolumeAttributesClass";

/// What scopes look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Scopes {
    /// A kind that no scope is about.
    None,
    /// A pod.
    Pod {
        terminating: bool,
        best_effort: bool,
        priority_class: Text,
        cross_namespace: bool,
    },
    /// A claim, and the classes of attributes that it names.
    Claim { classes: BTreeSet<Text> },
}

/// One condition of a quota.
#[derive(Clone, Debug)]
pub(crate) struct Selector {
    scope: Text,
    operator: Text,
    values: Vec<Text>,
}

impl Selector {
    /// The conditions of a quota.
    pub(crate) fn of_quota(quota: &Map) -> Vec<Selector> {
        let spec = quota.get("spec");
        let list = |value: Option<&Value>| {
            let list = value.and_then(Value::as_array).unwrap_or_default();
            list.to_vec()
        };
        let plain = list(spec.and_then(|spec| spec.get("scopes")));
        let plain = plain
            .iter()
            .filter_map(Value::as_str)
            .map(|scope| Selector {
                scope: scope.into(),
                operator: "Exists".into(),
                values: Vec::new(),
            });
        let expressions = spec.and_then(|spec| spec.at(&["scopeSelector", "matchExpressions"]));
        let expressions = list(expressions);
        let expressions = expressions.iter().map(|it| Selector {
            scope: it.str_at(&["scopeName"]).unwrap_or_default().into(),
            operator: it.str_at(&["operator"]).unwrap_or_default().into(),
            values: list(it.get("values"))
                .iter()
                .filter_map(Value::as_str)
                .map(Text::from)
                .collect(),
        });
        plain.chain(expressions).collect()
    }

    fn accepts(&self, class: Option<&str>) -> bool {
        let operator = match self.operator.as_str() {
            "In" => Operator::In,
            "NotIn" => Operator::NotIn,
            "Exists" => Operator::Exists,
            "DoesNotExist" => Operator::DoesNotExist,
            _ => return false,
        };
        let requirement = Requirement::new(&self.scope, operator, self.values.clone());
        requirement.is_ok_and(|requirement| requirement.matches(class))
    }
}

impl Scopes {
    pub(super) fn of_pod(pod: &Map, terminating: bool) -> Scopes {
        let text = |part: &str, field: &str| {
            let text = pod.get(part).and_then(|part| part.str_at(&[field]));
            text.unwrap_or_default()
        };
        Scopes::Pod {
            terminating,
            best_effort: text("status", "qosClass") == "BestEffort",
            priority_class: text("spec", "priorityClassName").into(),
            cross_namespace: crosses_namespaces(pod),
        }
    }

    pub(super) fn of_claim(claim: &Map) -> Scopes {
        let paths: [&[&str]; 3] = [
            &["spec", "volumeAttributesClassName"],
            &["status", "currentVolumeAttributesClassName"],
            &[
                "status",
                "modifyVolumeStatus",
                "targetVolumeAttributesClassName",
            ],
        ];
        let name = |path: &[&str]| {
            let (first, rest) = path.split_first()?;
            let name = claim.get(first)?.str_at(rest)?;
            (!name.is_empty()).then(|| Text::from(name))
        };
        Scopes::Claim {
            classes: paths.into_iter().filter_map(name).collect(),
        }
    }

    /// Whether all conditions hold.
    pub(crate) fn match_all(&self, selectors: &[Selector]) -> bool {
        selectors.iter().all(|selector| self.matches(selector))
    }

    fn matches(&self, selector: &Selector) -> bool {
        match self {
            Scopes::None => false,
            Scopes::Pod {
                terminating,
                best_effort,
                priority_class,
                cross_namespace,
            } => match selector.scope.as_str() {
                "Terminating" => *terminating,
                "NotTerminating" => !terminating,
                "BestEffort" => *best_effort,
                "NotBestEffort" => !best_effort,
                "CrossNamespacePodAffinity" => *cross_namespace,
                PRIORITY_CLASS => {
                    let class = Some(priority_class.as_str()).filter(|class| !class.is_empty());
                    selector.accepts(class)
                }
                _ => false,
            },
            Scopes::Claim { classes } if selector.scope == ATTRIBUTES_CLASS => {
                if classes.is_empty() {
                    return selector.accepts(None);
                }
                classes.iter().any(|class| selector.accepts(Some(class)))
            }
            Scopes::Claim { .. } => false,
        }
    }
}

/// Whether a pod's affinity looks at pods of other namespaces.
fn crosses_namespaces(pod: &Map) -> bool {
    let Some(affinity) = pod.get("spec").and_then(|spec| spec.get("affinity")) else {
        return false;
    };
    let crosses = |term: &Value| {
        let names = term.get("namespaces").and_then(Value::as_array);
        names.is_some_and(|names| !names.is_empty())
            || term
                .get("namespaceSelector")
                .is_some_and(|it| !it.is_null())
    };
    ["podAffinity", "podAntiAffinity"].into_iter().any(|side| {
        let terms = |list: &str| {
            let terms = affinity.at(&[side, list]).and_then(Value::as_array);
            terms.unwrap_or_default()
        };
        terms("requiredDuringSchedulingIgnoredDuringExecution")
            .iter()
            .any(crosses)
            || terms("preferredDuringSchedulingIgnoredDuringExecution")
                .iter()
                .filter_map(|it| it.get("podAffinityTerm"))
                .any(crosses)
    })
}
