//! Who is trusted beyond this server: issuers of tokens and whoever brings none.
//!
//! Both stand in a file that may change while the server runs, so both can be replaced.

use std::sync::{Arc, PoisonError, RwLock};

use crate::authenticate::Anonymous;
use crate::oidc::OidcTokens;
use crate::tokens::{Answer, Presented, TokenAuthenticator};

/// A handle on who is trusted; copies of it share what it holds.
#[derive(Clone)]
pub struct Trust(Arc<RwLock<Arc<Trusted>>>);

struct Trusted {
    anonymous: Anonymous,
    issuers: Vec<OidcTokens>,
}

impl Trust {
    /// Trusts no issuer.
    pub(crate) fn new(anonymous: Anonymous) -> Trust {
        let issuers = Vec::new();
        Trust(Arc::new(RwLock::new(Arc::new(Trusted {
            anonymous,
            issuers,
        }))))
    }

    /// Trusts these from now on, and nobody else.
    pub fn replace(&self, anonymous: Anonymous, issuers: Vec<OidcTokens>) {
        let trusted = Arc::new(Trusted { anonymous, issuers });
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = trusted;
    }

    /// Whether anybody may come in to a path.
    pub(crate) fn opens(&self, path: &str) -> bool {
        self.now().anonymous.may_come_to(path)
    }

    /// Whether nobody may come in without credentials.
    pub(crate) fn refuses_strangers(&self) -> bool {
        self.now().anonymous == Anonymous::Refused
    }

    fn now(&self) -> Arc<Trusted> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl TokenAuthenticator for Trust {
    fn who<'a>(&'a self, presented: Presented<'a>) -> Answer<'a> {
        Box::pin(async move {
            let mut errors = Vec::new();
            let trusted = self.now();
            for issuer in &trusted.issuers {
                match issuer.who(presented).await {
                    Ok(Some(known)) => return Ok(Some(known)),
                    Ok(None) => {}
                    Err(wrong) => errors.extend(wrong),
                }
            }
            if errors.is_empty() {
                Ok(None)
            } else {
                Err(errors)
            }
        })
    }
}
