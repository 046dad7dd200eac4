//! Which plugins there are, in the order in which they run, and which of them are switched on.
//!
//! The order and what is on by default are upstream's (`pkg/kubeapiserver/options/plugins.go`).
//! Some names are known and have nothing to do here, because the kinds or features they guard are
//! off by default; they may be named all the same.

/// Whether a plugin is on when nobody says anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Usual {
    On,
    Off,
    /// Known upstream, and not built here.
    Absent,
}

/// Declares the plugins once: the type, their names and what is usual.
macro_rules! plugins {
    ($($name:ident: $usual:ident,)*) => {
        /// A plugin of the chain, in upstream's order.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Plugin {
            $($name,)*
        }

        const PLUGINS: &[(Plugin, &str, Usual)] = &[
            $((Plugin::$name, stringify!($name), Usual::$usual),)*
        ];
    };
}

plugins! {
    AlwaysAdmit: Off,
    NamespaceAutoProvision: Off,
    NamespaceLifecycle: On,
    NamespaceExists: Off,
    LimitPodHardAntiAffinityTopology: Off,
    LimitRanger: On,
    ServiceAccount: On,
    NodeRestriction: Off,
    TaintNodesByCondition: On,
    AlwaysPullImages: Off,
    ImagePolicyWebhook: Absent,
    PodSecurity: On,
    PodNodeSelector: Off,
    Priority: On,
    DefaultTolerationSeconds: On,
    PodTolerationRestriction: Off,
    EventRateLimit: Absent,
    ExtendedResourceToleration: Off,
    DefaultStorageClass: On,
    StorageObjectInUseProtection: On,
    PodGroupProtection: On,
    OwnerReferencesPermissionEnforcement: Off,
    PersistentVolumeClaimResize: On,
    RuntimeClass: On,
    CertificateApproval: On,
    CertificateSigning: On,
    ClusterTrustBundleAttest: On,
    CertificateSubjectRestriction: On,
    DefaultIngressClass: On,
    DenyServiceExternalIPs: Off,
    PodTopologyLabels: On,
    PodGroupWorkloadExists: On,
    NodeDeclaredFeatureValidator: On,
    JobValidation: On,
    PodResizeValidator: On,
    MutatingAdmissionPolicy: On,
    MutatingAdmissionWebhook: On,
    ValidatingAdmissionPolicy: On,
    ValidatingAdmissionWebhook: On,
    ResourceQuota: On,
    AlwaysDeny: Off,
}

/// The plugins that are switched on.
#[derive(Clone, Debug)]
pub struct Chain {
    /// One flag a plugin, in the order of [`PLUGINS`].
    on: [bool; PLUGINS.len()],
}

impl Default for Chain {
    fn default() -> Chain {
        Chain::with(&[], &[])
    }
}

/// Why a set of plugins cannot be switched on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChainError {
    /// There is no such plugin.
    #[error("there is no admission plugin {name}; known are: {}", Chain::names().join(", "))]
    Unknown {
        /// What was asked for.
        name: String,
    },
    /// Upstream has it, this server has not.
    #[error("the admission plugin {name} is not built into this server")]
    Absent {
        /// What was asked for.
        name: String,
    },
    /// It cannot be both.
    #[error("the admission plugin {name} is both enabled and disabled")]
    Both {
        /// What was asked for.
        name: String,
    },
}

impl Chain {
    /// What is on by default, and these, but not those.
    pub fn new(enabled: &[String], disabled: &[String]) -> Result<Chain, ChainError> {
        for name in enabled.iter().chain(disabled) {
            Chain::check_name(name)?;
        }
        for name in enabled {
            let name = name.clone();
            if disabled.contains(&name) {
                return Err(ChainError::Both { name });
            }
            let mut absent = PLUGINS.iter().filter(|it| it.2 == Usual::Absent);
            if absent.any(|(_, known, _)| *known == name) {
                return Err(ChainError::Absent { name });
            }
        }
        Ok(Chain::with(enabled, disabled))
    }

    /// Everything that is on by default, but not those.
    pub fn without(disabled: &[String]) -> Chain {
        Chain::with(&[], disabled)
    }

    fn with(enabled: &[String], disabled: &[String]) -> Chain {
        let named = |list: &[String], name: &str| list.iter().any(|one| one == name);
        let mut on = [false; PLUGINS.len()];
        for (flag, (_, name, usual)) in on.iter_mut().zip(PLUGINS) {
            *flag = (*usual == Usual::On && !named(disabled, name)) || named(enabled, name);
        }
        Chain { on }
    }

    /// Refuses a name that no plugin has.
    pub fn check_name(name: &str) -> Result<(), ChainError> {
        if PLUGINS.iter().any(|(_, known, _)| *known == name) {
            return Ok(());
        }
        Err(ChainError::Unknown {
            name: name.to_owned(),
        })
    }

    /// The names of all plugins, sorted.
    fn names() -> Vec<&'static str> {
        let mut names: Vec<&str> = PLUGINS.iter().map(|(_, name, _)| *name).collect();
        names.sort_unstable();
        names
    }

    /// Whether a plugin is switched on.
    pub(crate) fn has(&self, plugin: Plugin) -> bool {
        self.on[plugin as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn each_plugin_stands_at_its_own_place() {
        for (place, (plugin, name, _)) in PLUGINS.iter().enumerate() {
            assert_eq!(*plugin as usize, place, "{name}");
        }
    }

    #[test]
    fn which_plugins_are_on() {
        let chain = Chain::new(&list(&["AlwaysDeny"]), &list(&["Priority"])).unwrap();
        for (plugin, on) in [
            (Plugin::AlwaysDeny, true),
            (Plugin::Priority, false),
            (Plugin::LimitRanger, true),
            (Plugin::NodeRestriction, false),
        ] {
            assert_eq!(chain.has(plugin), on, "{plugin:?}");
        }
    }

    #[test]
    fn which_choices_are_refused() {
        let refused = |enabled: &[&str], disabled: &[&str]| {
            let chain = Chain::new(&list(enabled), &list(disabled));
            chain.unwrap_err().to_string()
        };
        let unknown = refused(&["LimitRangers"], &[]);
        assert!(
            unknown.starts_with(
                "there is no admission plugin LimitRangers; known are: AlwaysAdmit, AlwaysDeny, "
            ),
            "{unknown}"
        );
        assert_eq!(
            refused(&["Priority"], &["Priority"]),
            "the admission plugin Priority is both enabled and disabled"
        );
        assert_eq!(
            refused(&["ImagePolicyWebhook"], &[]),
            "the admission plugin ImagePolicyWebhook is not built into this server"
        );
    }
}
