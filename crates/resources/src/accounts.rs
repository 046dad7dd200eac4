//! Whom the tokens of service accounts and of new nodes stand for.
//!
//! A token is verified once and remembered as long as it is good. What it depends on, the account
//! and what it is bound to, is looked at with every use: if one of them is not the version that was
//! looked at before, everything is checked again. So a token ends with its account, at once.
//! Contract: `pkg/serviceaccount` and `plugin/pkg/auth/authenticator/token/bootstrap`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use auth::{
    Answer, Cache, Claims, Issuer, Known, LEEWAY_SECONDS, Named, Presented, TokenAuthenticator,
    User, implied_audiences,
};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use object::time::Time;
use object::{Map, Text, Value};
use store::Revision;
use tracing::warn;

use crate::admission::Place;
use crate::meta::{meta, meta_mut, meta_text};
use crate::options::WriteOptions;
use crate::read::store_name;
use crate::{Request, Resources, Warnings};

const ACCOUNTS: Place = ("", "v1", "serviceaccounts");
const PODS: Place = ("", "v1", "pods");
const NODES: Place = ("", "v1", "nodes");
const SECRETS: Place = ("", "v1", "secrets");
/// Tokens that are remembered; see [`Cache`] for what happens at the limit.
const REMEMBERED_TOKENS_MAX: usize = 32_768;
/// A token without an end is looked at anew after this long.
const REMEMBERED_SECONDS_MAX: i64 = DAY_SECONDS;
const DAY_SECONDS: i64 = 24 * 60 * 60;
/// The label of a Secret that says on which day its token was last used.
const LAST_USED: &str = "kubernetes.io/legacy-token-last-used";
const INVALIDATED: &str = "service account token has been invalidated";

/// The tokens of service accounts.
pub struct AccountTokens {
    resources: Resources,
    issuer: Arc<Issuer>,
    seen: Cache<Arc<Seen>>,
}

/// A token that was good.
struct Seen {
    known: Known,
    shown_to: Vec<Text>,
    depends_on: Vec<Dependence>,
    /// The store's revision when the dependences were last found unchanged.
    checked: AtomicU64,
}

/// A version of an object without which a token is worthless.
struct Dependence {
    collection: Text,
    name: String,
    revision: Revision,
}

/// What a check has found so far.
struct Findings {
    depends_on: Vec<Dependence>,
    /// The token is worthless from then on.
    until: i64,
}

impl AccountTokens {
    /// Reads tokens of `issuer` for the accounts among these objects.
    pub fn new(resources: Resources, issuer: Arc<Issuer>) -> AccountTokens {
        AccountTokens {
            resources,
            issuer,
            seen: Cache::new(REMEMBERED_TOKENS_MAX),
        }
    }

    async fn verify(&self, presented: Presented<'_>) -> Result<Option<Known>, String> {
        if let Some(seen) = self.seen.get(&presented.digest, presented.now)
            && seen.shown_to == presented.audiences
        {
            if self.is_unchanged(&seen).await {
                return Ok(Some(seen.known.clone()));
            }
            self.seen.forget(&presented.digest);
        }
        let checked = self.resources.store.revision();
        let Some(claims) = self.issuer.read(presented)? else {
            return Ok(None);
        };
        let mut findings = Findings {
            depends_on: Vec::new(),
            until: claims
                .expires
                .map_or(i64::MAX, |end| end.saturating_add(LEEWAY_SECONDS + 1))
                .min(presented.now.saturating_add(REMEMBERED_SECONDS_MAX)),
        };
        if claims.is_legacy {
            self.check_legacy(presented, &claims, &mut findings).await?;
        } else {
            self.check_bound(presented.now, &claims, &mut findings)
                .await?;
        }
        let user = Arc::new(claims.user());
        let known = Known {
            user,
            audiences: claims.audiences,
        };
        let seen = Seen {
            known: known.clone(),
            shown_to: presented.audiences.to_vec(),
            depends_on: findings.depends_on,
            checked: AtomicU64::new(checked.0),
        };
        self.seen.put(
            presented.digest,
            Arc::new(seen),
            findings.until,
            presented.now,
        );
        Ok(Some(known))
    }

    /// Whether everything that a token depends on is as it was.
    async fn is_unchanged(&self, seen: &Seen) -> bool {
        let store = &self.resources.store;
        let newest = store.revision();
        if seen.checked.load(Ordering::Acquire) == newest.0 {
            return true;
        }
        for dependence in &seen.depends_on {
            let found = store.get(&dependence.collection, &dependence.name).await;
            let Ok(Some(record)) = found else {
                return false;
            };
            if record.revision != dependence.revision {
                return false;
            }
        }
        seen.checked.fetch_max(newest.0, Ordering::AcqRel);
        true
    }

    async fn check_bound(
        &self,
        now: i64,
        claims: &Claims,
        findings: &mut Findings,
    ) -> Result<(), String> {
        let namespace = claims.namespace.as_str();
        let account = &claims.account;
        let object = self
            .find(ACCOUNTS, namespace, &account.name, findings)
            .await
            .ok_or_else(|| format!("serviceaccounts \"{}\" not found", account.name))?;
        let uid = meta_text(&object, "uid");
        if uid != account.uid {
            return Err(format!(
                "service account UID ({uid}) does not match claim ({})",
                account.uid
            ));
        }
        if is_gone(&object, now, findings) {
            let name = &account.name;
            return Err(format!(
                "service account {namespace}/{name} has been deleted"
            ));
        }
        // The node of a pod's token is there to be told, not to be depended on.
        let node = claims.node.as_ref().filter(|_| claims.pod.is_none());
        let bound = [
            (&claims.secret.as_ref(), SECRETS, namespace, "secret"),
            (&claims.pod.as_ref(), PODS, namespace, "pod"),
            (&node, NODES, "", "node"),
        ];
        for (named, place, namespace, kind) in bound {
            if let Some(named) = named {
                self.check_object(place, namespace, kind, named, now, findings)
                    .await?;
            }
        }
        Ok(())
    }

    async fn check_object(
        &self,
        place: Place,
        namespace: &str,
        kind: &str,
        named: &Named,
        now: i64,
        findings: &mut Findings,
    ) -> Result<(), String> {
        let object = self
            .find(place, namespace, &named.name, findings)
            .await
            .ok_or_else(|| INVALIDATED.to_owned())?;
        let uid = meta_text(&object, "uid");
        if uid != named.uid {
            return Err(format!(
                "{kind} UID ({uid}) does not match service account {kind} ref claim ({})",
                named.uid
            ));
        }
        if is_gone(&object, now, findings) {
            return Err(INVALIDATED.to_owned());
        }
        Ok(())
    }

    /// A token that lies in a Secret is good as long as it lies there.
    async fn check_legacy(
        &self,
        presented: Presented<'_>,
        claims: &Claims,
        findings: &mut Findings,
    ) -> Result<(), String> {
        let (namespace, account) = (claims.namespace.as_str(), &claims.account);
        let name = claims.secret.as_ref().map_or("", |secret| &secret.name);
        let invalidated = || "Token has been invalidated".to_owned();
        let secret = self.find(SECRETS, namespace, name, findings).await;
        let secret = secret
            .filter(|secret| !meta(secret).contains_key("deletionTimestamp"))
            .ok_or_else(invalidated)?;
        let kept = data(&secret, "token").unwrap_or_default();
        // Digests are compared, so the time it takes tells nothing about the token.
        if auth::digest_of(&kept) != presented.digest {
            return Err("Token does not match server's copy".to_owned());
        }
        let object = self
            .find(ACCOUNTS, namespace, &account.name, findings)
            .await
            .ok_or_else(|| format!("serviceaccounts \"{}\" not found", account.name))?;
        if meta(&object).contains_key("deletionTimestamp") {
            let name = &account.name;
            return Err(format!(
                "ServiceAccount {namespace}/{name} has been deleted"
            ));
        }
        let uid = meta_text(&object, "uid");
        if uid != account.uid {
            return Err(format!(
                "ServiceAccount UID ({uid}) does not match claim ({})",
                account.uid
            ));
        }
        // Tomorrow's use is to be noted, too.
        findings.until = findings
            .until
            .min((presented.now / DAY_SECONDS + 1) * DAY_SECONDS);
        self.note_use(namespace, &secret, presented.now).await;
        const MARK: &str = "kubernetes.io/legacy-token-invalid-since";
        let labels = meta(&secret).get("labels");
        if labels.is_some_and(|labels| labels.get(MARK).is_some()) {
            let account = &account.name;
            return Err(format!(
                "the token in secret {namespace}/{name} for service account {namespace}/{account} \
                 has been marked invalid. Use tokens from the TokenRequest API or manually created \
                 secret-based tokens, or remove the '{MARK}' label from the secret to temporarily \
                 allow use of this token"
            ));
        }
        Ok(())
    }

    /// Notes on a Secret that its token was used today, so that controllers find those that nobody
    /// uses. The token is good also if that cannot be noted.
    async fn note_use(&self, namespace: &str, secret: &Map, now: i64) {
        let today = day(now);
        let noted = meta(secret).get("labels").and_then(|it| it.get(LAST_USED));
        let noted = noted.and_then(Value::as_str);
        // Another server's clock may be ahead.
        if noted.is_some_and(|noted| noted == today || noted == day(now + DAY_SECONDS)) {
            return;
        }
        let Ok(kind) = self.resources.built_in(SECRETS) else {
            return;
        };
        let options = WriteOptions {
            manager: "kube-apiserver".into(),
            ..WriteOptions::default()
        };
        let name = meta_text(secret, "name");
        let request = Request {
            kind,
            namespace,
            name,
            subresource: "",
            user: &User::server(),
            options: &options,
            warnings: &Warnings::default(),
        };
        let note = |live: &mut Map| {
            let same = meta_text(live, "uid") == meta_text(secret, "uid");
            let labels = meta_mut(live).object_at("labels");
            labels.insert(LAST_USED, Value::from(today.as_str()));
            same
        };
        if let Err(error) = self.resources.edit(&request, note).await {
            warn!(namespace, name, %error, "the use of a token in a Secret is not noted");
        }
    }

    /// Finds an object, and notes that the token depends on it.
    async fn find(
        &self,
        place: Place,
        namespace: &str,
        name: &str,
        findings: &mut Findings,
    ) -> Option<Map> {
        let kind = self.resources.built_in(place).ok()?;
        let (revision, object) = self
            .resources
            .find_version(place, namespace, name)
            .await
            .ok()??;
        findings.depends_on.push(Dependence {
            collection: kind.collection.clone(),
            name: store_name(kind, namespace, name),
            revision,
        });
        Some(object)
    }
}

impl TokenAuthenticator for AccountTokens {
    fn who<'a>(&'a self, presented: Presented<'a>) -> Answer<'a> {
        Box::pin(async move { self.verify(presented).await.map_err(|error| vec![error]) })
    }
}

/// The day of a time, as labels and dates of tokens write it.
pub(crate) fn day(now: i64) -> String {
    let mut text = Time::from_unix_seconds(now).to_string();
    text.truncate(text.find('T').unwrap_or(text.len()));
    text
}

/// Whether an object's deletion is over but for its finalizers; if it is still to come, the token
/// ends with it.
fn is_gone(object: &Map, now: i64, findings: &mut Findings) -> bool {
    let deleted = meta_text(object, "deletionTimestamp");
    let Ok(deleted) = Time::parse(deleted) else {
        return false;
    };
    let end = deleted.unix_seconds().saturating_add(LEEWAY_SECONDS);
    findings.until = findings.until.min(end.saturating_add(1));
    end < now
}

/// The tokens with which nodes join: Secrets in `kube-system`.
pub struct BootstrapTokens {
    resources: Resources,
    audiences: Vec<Text>,
}

impl BootstrapTokens {
    /// Reads the Secrets among these objects; the tokens are for the server's own audiences.
    pub fn new(resources: Resources, audiences: Vec<Text>) -> BootstrapTokens {
        BootstrapTokens {
            resources,
            audiences,
        }
    }

    async fn find(&self, token: &str, now: i64) -> Option<User> {
        let (id, secret) = token.split_once('.')?;
        let is_part = |part: &str, length: usize| {
            let known = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
            part.len() == length && part.bytes().all(known)
        };
        if !is_part(id, 6) || !is_part(secret, 16) {
            return None;
        }
        let name = format!("bootstrap-token-{id}");
        let found = self.resources.find(SECRETS, "kube-system", &name).await;
        let object = found.ok()??;
        let kind = object.get("type").and_then(Value::as_str);
        if kind != Some("bootstrap.kubernetes.io/token")
            || meta(&object).contains_key("deletionTimestamp")
        {
            return None;
        }
        let text = |key: &str| data(&object, key).unwrap_or_default();
        // Digests are compared, so the time it takes tells nothing about the secret.
        if auth::digest_of(&text("token-secret")) != auth::digest_of(secret)
            || text("token-id") != id
            || text("usage-bootstrap-authentication") != "true"
            || has_expired(&text("expiration"), now)
        {
            return None;
        }
        let groups = extra_groups(&text("auth-extra-groups"))?;
        let groups: Vec<&str> = groups.iter().map(String::as_str).collect();
        Some(User::authenticated(
            &format!("system:bootstrap:{id}"),
            "",
            &groups,
        ))
    }
}

impl TokenAuthenticator for BootstrapTokens {
    fn who<'a>(&'a self, presented: Presented<'a>) -> Answer<'a> {
        Box::pin(async move {
            let audiences = implied_audiences(&self.audiences, presented.audiences);
            if audiences.is_empty() {
                return Ok(None);
            }
            let user = self.find(presented.token, presented.now).await;
            Ok(user.map(|user| Known {
                user: Arc::new(user),
                audiences,
            }))
        })
    }
}

/// A time that cannot be read counts as past.
fn has_expired(expiration: &str, now: i64) -> bool {
    match expiration {
        "" => false,
        text => Time::parse(text).map_or(true, |end| end.unix_seconds() < now),
    }
}

/// The groups of a bootstrap token, sorted; `None` if one is not for such tokens.
fn extra_groups(text: &str) -> Option<Vec<String>> {
    const EVERY: &str = "system:bootstrappers";
    let mut groups = vec![EVERY.to_owned()];
    for group in text.split(',').filter(|_| !text.is_empty()) {
        let tail = group.strip_prefix("system:bootstrappers:")?;
        let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let fits = (1..=255).contains(&tail.len())
            && tail
                .bytes()
                .all(|byte| inner(byte) || b":-".contains(&byte))
            && tail.bytes().last().is_some_and(inner);
        if !fits {
            return None;
        }
        groups.push(group.to_owned());
    }
    groups.sort_unstable();
    groups.dedup();
    Some(groups)
}

/// A text of a Secret.
fn data(secret: &Map, key: &str) -> Option<String> {
    let encoded = secret.get("data")?.str_at(&[key])?;
    String::from_utf8(STANDARD.decode(encoded).ok()?).ok()
}
