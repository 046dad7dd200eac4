//! What users may do, as the configured modes decide it.
//!
//! Modes are asked in order; the first that allows or forbids counts, and what nobody allows is
//! refused. Members of `system:masters` may do everything, before any mode is asked.

mod node;

use std::sync::{Arc, PoisonError, RwLock};

use auth::{Actor, Attributes, Authorizer, Deciding, Decision, Refusal, User, Verdict, Wanted};

use crate::Resources;
use crate::error::Error;
pub use node::node_mode;

/// One way to decide.
#[derive(Clone)]
pub enum Mode {
    /// Roles and bindings.
    Rbac,
    /// Everything is allowed.
    AlwaysAllow,
    /// Nothing is allowed.
    AlwaysDeny,
    /// Somebody else decides.
    Asked(Arc<dyn Authorizer>),
}

/// The modes in force; copies share them.
#[derive(Clone)]
pub(crate) struct Modes(Arc<RwLock<Arc<[Mode]>>>);

impl Modes {
    pub(crate) fn new(modes: Vec<Mode>) -> Modes {
        Modes(Arc::new(RwLock::new(modes.into())))
    }

    /// Those of the moment.
    pub(crate) fn now(&self) -> Arc<[Mode]> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn replace(&self, modes: Vec<Mode>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = modes.into();
    }
}

impl Resources {
    /// Decides what users may do in these ways, in order.
    pub fn with_authorization(self, modes: Vec<Mode>) -> Resources {
        let modes = Modes::new(modes);
        Resources { modes, ..self }
    }

    /// Decides in other ways from now on, here and in all copies.
    pub fn replace_authorization(&self, modes: Vec<Mode>) {
        self.modes.replace(modes);
    }

    /// Whether `user` may do this.
    pub async fn authorize(
        &self,
        user: &User,
        attributes: Attributes<'_>,
    ) -> Result<Decision, Error> {
        if user.is_master() {
            return Ok(Decision::Allow);
        }
        for mode in self.modes.now().iter() {
            let decision = match mode {
                Mode::Rbac => self.rules().await?.authorize(user, attributes),
                Mode::AlwaysAllow => Decision::Allow,
                Mode::AlwaysDeny => Decision::Deny,
                Mode::Asked(other) => other.decide(user, attributes).await.decision,
            };
            if decision != Decision::Deny {
                return Ok(decision);
            }
        }
        Ok(Decision::Deny)
    }

    /// Whether `user` may do this, and why.
    pub async fn explain(&self, user: &User, attributes: Attributes<'_>) -> Result<Verdict, Error> {
        let mut reasons = Vec::new();
        if user.is_master() {
            return Ok(Verdict {
                decision: Decision::Allow,
                reason: String::new(),
            });
        }
        for mode in self.modes.now().iter() {
            let verdict = match mode {
                Mode::Rbac => self.rules().await?.explain(user, attributes),
                Mode::AlwaysAllow => Verdict {
                    decision: Decision::Allow,
                    reason: String::new(),
                },
                Mode::AlwaysDeny => Verdict {
                    decision: Decision::Deny,
                    reason: "Everything is forbidden.".to_owned(),
                },
                Mode::Asked(other) => other.decide(user, attributes).await,
            };
            if verdict.decision != Decision::Deny {
                return Ok(verdict);
            }
            reasons.push(verdict.reason);
        }
        reasons.retain(|reason| !reason.is_empty());
        Ok(Verdict {
            decision: Decision::Deny,
            reason: reasons.join("\n"),
        })
    }

    /// Refuses what `user` may not do; the outer error is one of the server's own.
    pub async fn permit(
        &self,
        user: &User,
        attributes: Attributes<'_>,
    ) -> Result<Result<(), Refusal>, Error> {
        if self.authorize(user, attributes).await? == Decision::Allow {
            return Ok(Ok(()));
        }
        let verdict = self.explain(user, attributes).await?;
        Ok(Err(Refusal::new(user, attributes, &verdict.reason)))
    }

    /// The user that `user` becomes for a request, if they may act as whom they want to be.
    pub async fn act_as(
        &self,
        user: &User,
        wanted: &Wanted,
        attributes: Attributes<'_>,
    ) -> Result<Result<Actor, Refusal>, Error> {
        // What cannot be read must not be taken for a refusal.
        self.rules().await?;
        let impersonation = &self.roles.impersonation;
        Ok(impersonation.act_as(self, user, wanted, attributes).await)
    }
}

impl Authorizer for Resources {
    fn decide<'a>(&'a self, user: &'a User, attributes: Attributes<'a>) -> Deciding<'a> {
        Box::pin(async move {
            let verdict = self.explain(user, attributes).await;
            verdict.unwrap_or_else(|error| Verdict {
                decision: Decision::Deny,
                reason: error.to_string(),
            })
        })
    }
}
