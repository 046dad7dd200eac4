//! A token for a service account, signed while the client waits and stored nowhere.
//!
//! Contract: `pkg/registry/core/serviceaccount/storage/token.go`.

use auth::{Claims, Issuer, Named};
use kinds::validation;
use object::time::Time;
use object::{Map, Text, Value, value};

use crate::admission::Place;
use crate::body::{self, Body, Parsed};
use crate::error::{Error, Subject};
use crate::meta::{meta_mut, meta_text};
use crate::ownership::Owners;
use crate::write::{Written, WrittenObject, check_namespace};
use crate::{Request, Resources, ids, subject};

const GROUP: &str = "authentication.k8s.io";
const TOKEN_REQUEST: &str = "io.k8s.api.authentication.v1.TokenRequest";
const LIFETIME_SECONDS_DEFAULT: i64 = 3600;
const ACCOUNTS: Place = ("", "v1", "serviceaccounts");
const PODS: Place = ("", "v1", "pods");
const NODES: Place = ("", "v1", "nodes");
const SECRETS: Place = ("", "v1", "secrets");

impl Resources {
    /// `POST` of a TokenRequest to a service account.
    pub(super) async fn issue_token(
        &self,
        request: &Request<'_>,
        body: &Body,
    ) -> Result<Written, Error> {
        let Some(issuer) = &self.issuer else {
            return Err(Error::MethodNotAllowed);
        };
        let kind = self.sent_kind(request.kind, (GROUP, "v1", "TokenRequest"), TOKEN_REQUEST)?;
        let sent = Request {
            kind: &kind,
            ..*request
        };
        let Parsed { mut wanted, .. } = body::read(&self.catalogue(), &sent, body)?;
        let object = &mut wanted.object;
        check_namespace(&sent, object)?;
        let spec = object.object_at("spec");
        if spec.get("expirationSeconds").is_none_or(Value::is_null) {
            spec.insert("expirationSeconds", Value::Int(LIFETIME_SECONDS_DEFAULT));
        }
        let owners = Owners::of_created(self, &sent, &mut wanted);
        let mut object = wanted.object;
        self.admission
            .mutate(self, request, &mut object, None)
            .await?;
        owners.show_in(&mut object);
        let mut object = self.admit_view(request, &kind, object, None).await?;
        let now = self.now();
        let account = self.check_account(request, &mut object).await?;
        name_audiences(issuer, &mut object);
        self.check_view(request, &kind, kind.print(object.clone()), None)
            .await?;
        let claims = self.claims(request, &object, account).await?;
        let seconds = shorten(request, issuer, &mut object);
        let lifetime = issuer.lifetime(seconds, claims.pod.is_some(), &claims.audiences);
        let token = issuer.sign(&claims, now, lifetime).ok_or_else(|| {
            Error::Internal("failed to generate token: the system gives no randomness".to_owned())
        })?;
        let key = "authentication.kubernetes.io/issued-credential-id".to_owned();
        request.warnings.annotate(key, format!("JTI={}", claims.id));
        let until = Time::from_unix_seconds(now.saturating_add(seconds));
        let status = value!({"token": token, "expirationTimestamp": (until.to_string())});
        let mut object = kind.print(object);
        object.insert("status", status);
        Ok(Written {
            object: WrittenObject::Virtual(object),
            created: true,
        })
    }

    /// Finds the account, and makes the request say whose token it is.
    async fn check_account(&self, request: &Request<'_>, object: &mut Map) -> Result<Named, Error> {
        let asked = subject_of(request.name);
        let found = meta_text(object, "name");
        if !found.is_empty() && found != request.name {
            let root = object::field::Path::root();
            let detail = "must match the service account name if specified";
            let path = root.field("metadata");
            let error = object::field::FieldError::invalid(
                &path.field("name"),
                &Value::from(found),
                detail,
            );
            return Err(Error::Invalid {
                subject: asked,
                errors: vec![error],
            });
        }
        let account = self.find(ACCOUNTS, request.namespace, request.name).await?;
        let Some(account) = account else {
            return Err(Error::NotFound(subject(request.kind, request.name)));
        };
        let (uid, wanted) = (meta_text(&account, "uid"), meta_text(object, "uid"));
        if !wanted.is_empty() && wanted != uid {
            return Err(Error::Conflict {
                subject: asked,
                detail: format!(
                    "the UID in the token request ({wanted}) does not match the UID of the service \
                     account ({uid})"
                ),
            });
        }
        let account = Named {
            name: request.name.into(),
            uid: uid.into(),
        };
        let metadata = meta_mut(object);
        metadata.insert("name", Value::String(account.name.clone()));
        metadata.insert("uid", Value::String(account.uid.clone()));
        metadata.insert("creationTimestamp", Value::String(self.now_text()));
        object.remove("status");
        let errors = validation::token_request(object);
        if errors.is_empty() {
            return Ok(account);
        }
        Err(Error::Invalid {
            subject: subject_of(""),
            errors,
        })
    }

    /// What the token will say.
    async fn claims(
        &self,
        request: &Request<'_>,
        object: &Map,
        account: Named,
    ) -> Result<Claims, Error> {
        let spec = object.get("spec");
        let audiences = spec.and_then(|spec| spec.get("audiences"));
        let audiences = audiences.and_then(Value::as_array).unwrap_or_default();
        let audiences = audiences.iter().filter_map(Value::as_str);
        let audiences = audiences.map(Text::from).collect();
        let claims = Claims {
            namespace: request.namespace.into(),
            account,
            id: ids::uuid().into(),
            audiences,
            ..Claims::default()
        };
        match spec.and_then(|spec| spec.get("boundObjectRef")) {
            Some(Value::Object(bound)) => self.bind_token(request, bound, claims).await,
            _ => Ok(claims),
        }
    }

    /// Ties a token to the object that it shall die with.
    async fn bind_token(
        &self,
        request: &Request<'_>,
        bound: &Map,
        mut claims: Claims,
    ) -> Result<Claims, Error> {
        let text = |field: &str| bound.get(field).and_then(Value::as_str).unwrap_or_default();
        let (version, kind, name) = (text("apiVersion"), text("kind"), text("name"));
        // A version that is none counts as none.
        let (group, version) = match version.split_once('/') {
            None => ("", version),
            Some((_, rest)) if rest.contains('/') => ("", ""),
            Some(parts) => parts,
        };
        let place = match (group, kind) {
            ("", "Pod") => PODS,
            ("", "Node") => NODES,
            ("", "Secret") => SECRETS,
            _ => {
                return Err(Error::BadRequest(format!(
                    "cannot bind token to object of type {group}/{version}, Kind={kind}"
                )));
            }
        };
        if name.is_empty() {
            let text = "Name parameter required.";
            return Err(Error::BadRequest(text.to_owned()));
        }
        let namespace = if kind == "Node" {
            ""
        } else {
            request.namespace
        };
        let Some(object) = self.find(place, namespace, name).await? else {
            return Err(Error::NotFound(subject(self.built_in(place)?, name)));
        };
        let named = named(&object);
        if kind == "Pod" {
            claims.node = self.check_pod(request, &object).await?;
        }
        let wanted = text("uid");
        if !wanted.is_empty() && wanted != named.uid {
            return Err(Error::Conflict {
                subject: Subject {
                    group: Text::default(),
                    resource: kind.into(),
                    name: name.into(),
                },
                detail: format!(
                    "the UID in the bound object reference ({wanted}) does not match the UID in \
                     record. The object might have been deleted and then recreated"
                ),
            });
        }
        let place = match kind {
            "Pod" => &mut claims.pod,
            "Secret" => &mut claims.secret,
            _ => &mut claims.node,
        };
        *place = Some(named);
        Ok(claims)
    }

    /// Checks that a pod runs as the account; gives the node it runs on.
    async fn check_pod(&self, request: &Request<'_>, pod: &Map) -> Result<Option<Named>, Error> {
        let spec = |field: &str| {
            let spec = pod.get("spec").and_then(|spec| spec.str_at(&[field]));
            spec.unwrap_or_default()
        };
        if spec("serviceAccountName") != request.name {
            return Err(Error::BadRequest(format!(
                "cannot bind token for serviceaccount {} to pod running with different \
                 serviceaccount name.",
                object::field::quote(request.name)
            )));
        }
        let node = spec("nodeName");
        if node.is_empty() {
            return Ok(None);
        }
        let found = self.find(NODES, "", node).await?;
        Ok(Some(found.map_or_else(
            || Named {
                name: node.into(),
                uid: Text::default(),
            },
            |node| named(&node),
        )))
    }
}

/// Makes a token that is meant for nobody in particular one for this server.
fn name_audiences(issuer: &Issuer, object: &mut Map) {
    let spec = object.object_at("spec");
    let given = spec.get("audiences").and_then(Value::as_array);
    if given.unwrap_or_default().is_empty() {
        let list = issuer.audiences().iter().cloned().map(Value::String);
        spec.insert("audiences", Value::Array(list.collect()));
    }
}

/// Keeps a token from living longer than any may.
fn shorten(request: &Request<'_>, issuer: &Issuer, object: &mut Map) -> i64 {
    let spec = object.object_at("spec");
    let seconds = spec.get("expirationSeconds").and_then(Value::as_int);
    let seconds = seconds.unwrap_or(LIFETIME_SECONDS_DEFAULT);
    match issuer.lifetime_seconds_max() {
        Some(limit) if limit < seconds => {
            let text =
                format!("requested expiration of {seconds} seconds shortened to {limit} seconds");
            request.warnings.add([text]);
            spec.insert("expirationSeconds", Value::Int(limit));
            limit
        }
        _ => seconds,
    }
}

fn named(object: &Map) -> Named {
    Named {
        name: meta_text(object, "name").into(),
        uid: meta_text(object, "uid").into(),
    }
}

fn subject_of(name: &str) -> Subject {
    Subject {
        group: GROUP.into(),
        resource: "TokenRequest".into(),
        name: name.into(),
    }
}
