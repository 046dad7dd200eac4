//! Devices that others hold are given in namespaces of administrators only.
//!
//! No plugin upstream: the kinds check it with everything else, so it is told with everything else.

use object::Map;
use object::field::{FieldError, Mistake};

use super::lookup::Place;
use crate::error::Error;
use crate::meta::meta;
use crate::{Request, Resources};

const NAMESPACES: Place = ("", "v1", "namespaces");
const LABEL: &str = "resource.kubernetes.io/admin-access";

impl Resources {
    /// What is wrong with asking for it here, if the object does.
    pub(crate) async fn admin_access(
        &self,
        request: &Request<'_>,
        new: &Map,
        old: Option<&Map>,
    ) -> Result<Vec<FieldError>, Error> {
        let asks = request.kind.rules.asks_for_admin;
        let Some(field) = asks(new, old, request.subresource) else {
            return Ok(Vec::new());
        };
        let namespace = self.find(NAMESPACES, "", request.namespace).await?;
        let is_granted = namespace.is_some_and(|namespace| {
            let labels = meta(&namespace).get("labels");
            labels.and_then(|labels| labels.str_at(&[LABEL])) == Some("true")
        });
        if is_granted {
            return Ok(Vec::new());
        }
        let detail = format!(
            "admin access to devices requires the `{LABEL}: true` label on the containing namespace"
        );
        Ok(vec![FieldError {
            mistake: Mistake::Forbidden,
            field,
            value: None,
            detail,
        }])
    }
}
