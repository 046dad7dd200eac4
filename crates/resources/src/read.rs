//! Get and list.
//!
//! A list is consistent at one revision, which every page of it reports. Contract: the
//! resourceVersion / resourceVersionMatch tables of the API concepts.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, URL_SAFE_NO_PAD};
use kinds::Kind;
use object::field::{self, quote};
use object::fields::Comparison;
use object::{Value, json, names, value};
use store::{Page, Range, Record, Revision};

use crate::error::{Error, Subject};
use crate::options::{ListOptions, Selection, VersionMatch};
use crate::record::Stored;
use crate::{Resources, subject};

/// How long a request waits for a version that does not exist yet.
const FUTURE_WAIT: Duration = Duration::from_secs(3);
const FUTURE_POLL: Duration = Duration::from_millis(20);
/// With a selector a page is filled from chunks of at most this many records.
const CHUNK_RECORDS_MAX: usize = 10_000;

const CONTINUE_TOO_OLD: &str = "The provided continue parameter is too old to display a \
     consistent list result. You can start a new list without the continue parameter, or use the \
     continue token in this response to retrieve the remainder of the results. Continuing with \
     the provided token results in an inconsistent list - objects that were created, modified, or \
     deleted between the time the first chunk was returned and now may show up in the list.";

/// A consistent list, or a page of one.
#[derive(Debug)]
pub struct Listed {
    /// The records, in name order.
    pub records: Vec<Record>,
    /// The revision all of them are read at.
    pub revision: Revision,
    /// How to get the next page; empty on the last.
    pub continue_token: String,
    /// How many objects follow, where that is known.
    pub remaining: Option<usize>,
}

/// Which state a list reads.
enum State {
    Newest,
    At(Revision),
    Any,
}

impl Resources {
    /// Reads one object. `version` bounds how old it may be.
    pub async fn get(
        &self,
        kind: &Arc<Kind>,
        namespace: &str,
        name: &str,
        version: Option<Revision>,
    ) -> Result<Record, Error> {
        if let Some(version) = version {
            self.wait_for(version).await?;
        }
        check_path_name(name)?;
        let key = store_name(kind, namespace, name);
        let found = self.store.get(&kind.collection, &key).await;
        let record = found
            .map_err(|error| Error::from_store(error, || subject(kind, name)))?
            .ok_or_else(|| Error::NotFound(subject(kind, name)))?;
        self.presented(kind, record).await
    }

    /// Lists a collection, or the part of it in `namespace`.
    pub async fn list(
        &self,
        kind: &Arc<Kind>,
        namespace: &str,
        options: &ListOptions,
    ) -> Result<Listed, Error> {
        let prefix = namespace_prefix(kind, namespace);
        let (state, start) = match &options.continue_token {
            Some(token) => {
                let token = ContinueToken::read(token)?;
                if options.version.is_some_and(|version| version.0 != 0) {
                    let text = "specifying resource version is not allowed when using continue";
                    return Err(Error::BadRequest(text.to_owned()));
                }
                let state = if token.revision < 0 {
                    State::Newest
                } else {
                    State::At(Revision(token.revision.unsigned_abs()))
                };
                (state, Some(format!("{prefix}{}", token.start)))
            }
            None => (self.state_of(options).await?, None),
        };
        // Any version will do: then the whole list is given, as caches want it. A single object
        // has no pages either.
        let single = options
            .selection
            .fields
            .requires_exact("metadata.name")
            .is_some()
            && start.is_none()
            && !(kind.namespaced && namespace.is_empty());
        let limit = if single || options.version == Some(Revision(0)) {
            0
        } else {
            options.limit
        };
        let query = Query {
            prefix: &prefix,
            start: start.as_deref(),
            at: match state {
                State::At(revision) => Some(revision),
                State::Newest | State::Any => None,
            },
            limit,
            selection: &options.selection,
        };
        self.read_page(kind, query)
            .await
            .map_err(|error| match (error, &start) {
                (PageError::Store(store::Error::Compacted { .. }), Some(start)) => Error::Expired {
                    message: CONTINUE_TOO_OLD.to_owned(),
                    continue_token: ContinueToken {
                        revision: -1,
                        start: start[prefix.len()..].into(),
                    }
                    .write(),
                },
                (PageError::Store(error), _) => Error::from_store(error, Subject::default),
                (PageError::Present(error), _) => error,
            })
    }

    async fn state_of(&self, options: &ListOptions) -> Result<State, Error> {
        let Some(version) = options.version else {
            return Ok(State::Newest);
        };
        if version.0 == 0 {
            return Ok(State::Any);
        }
        let exact = match options.version_match {
            Some(VersionMatch::Exact) => true,
            Some(VersionMatch::NotOlderThan) => false,
            None => options.limit > 0,
        };
        if exact {
            return Ok(State::At(version));
        }
        self.wait_for(version).await?;
        Ok(State::Newest)
    }

    /// Waits a moment for a version that another replica or a slow disk may still bring.
    pub(crate) async fn wait_for(&self, version: Revision) -> Result<(), Error> {
        let mut waited = Duration::ZERO;
        while self.store.revision() < version {
            if waited >= FUTURE_WAIT {
                let current = self.store.revision().0;
                return Err(Error::TooLargeVersion {
                    asked: version.0,
                    current,
                    retry_after_seconds: 1,
                });
            }
            tokio::time::sleep(FUTURE_POLL).await;
            waited += FUTURE_POLL;
        }
        Ok(())
    }

    async fn read_page(&self, kind: &Arc<Kind>, query: Query<'_>) -> Result<Listed, PageError> {
        if query.selection.is_everything() {
            let page = self
                .store
                .range(&kind.collection, query.range(query.limit))
                .await?;
            let Page {
                mut records,
                revision,
                remaining,
            } = page;
            self.present(kind, &mut records).await?;
            let continue_token = match records.last() {
                Some(last) if remaining > 0 => {
                    ContinueToken::after(&last.name[query.prefix.len()..], revision).write()
                }
                _ => String::new(),
            };
            let remaining = (remaining > 0).then_some(remaining);
            return Ok(Listed {
                records,
                revision,
                continue_token,
                remaining,
            });
        }
        self.read_selected(kind, query).await
    }

    /// Reads on in growing chunks until the page is full or the range ends.
    async fn read_selected(&self, kind: &Arc<Kind>, query: Query<'_>) -> Result<Listed, PageError> {
        let mut matcher = Matcher::new(kind, query.selection);
        let mut listed = Listed {
            records: Vec::new(),
            revision: Revision(0),
            continue_token: String::new(),
            remaining: None,
        };
        let (mut chunk, mut at) = (query.limit, query.at);
        let mut start = query.start.map(str::to_owned);
        loop {
            let range = Range {
                prefix: query.prefix,
                start: start.as_deref(),
                at,
                limit: chunk,
            };
            let mut page = self.store.range(&kind.collection, range).await?;
            self.present(kind, &mut page.records).await?;
            listed.revision = page.revision;
            at = Some(page.revision);
            let mut next = None;
            let mut records = page.records.into_iter();
            for record in records.by_ref() {
                next = Some(format!("{}\0", record.name));
                if matcher.matches(&record) {
                    listed.records.push(record);
                    if listed.records.len() == query.limit {
                        break;
                    }
                }
            }
            let more = page.remaining > 0 || records.len() > 0;
            match next {
                Some(next) if more && listed.records.len() == query.limit => {
                    let start = next[query.prefix.len()..].to_owned();
                    let revision = i64::try_from(page.revision.0).unwrap_or(i64::MAX);
                    listed.continue_token = ContinueToken { revision, start }.write();
                    return Ok(listed);
                }
                Some(next) if more => {
                    start = Some(next);
                    chunk = (chunk * 2).min(CHUNK_RECORDS_MAX);
                }
                _ => return Ok(listed),
            }
        }
    }
}

/// Why a page cannot be read.
#[derive(Debug, thiserror::Error)]
enum PageError {
    #[error(transparent)]
    Store(#[from] store::Error),
    /// Its objects cannot be shown in the version that is asked for.
    #[error(transparent)]
    Present(#[from] Error),
}

#[derive(Clone, Copy)]
struct Query<'a> {
    prefix: &'a str,
    start: Option<&'a str>,
    at: Option<Revision>,
    limit: usize,
    selection: &'a Selection,
}

impl<'a> Query<'a> {
    fn range(&self, limit: usize) -> Range<'a> {
        Range {
            prefix: self.prefix,
            start: self.start,
            at: self.at,
            limit,
        }
    }
}

/// Where a list goes on: the next possible name after the last one returned.
struct ContinueToken {
    /// The list's revision; negative: go on in the newest state.
    revision: i64,
    /// Relative to the list's prefix.
    start: String,
}

impl ContinueToken {
    fn after(name: &str, revision: Revision) -> ContinueToken {
        let revision = i64::try_from(revision.0).unwrap_or(i64::MAX);
        ContinueToken {
            revision,
            start: format!("{name}\0"),
        }
    }

    fn write(&self) -> String {
        let token = value!({
            "v": "meta.k8s.io/v1",
            "rv": (self.revision),
            "start": (self.start.as_str()),
        });
        URL_SAFE_NO_PAD.encode(json::to_vec(&token))
    }

    fn read(text: &str) -> Result<ContinueToken, Error> {
        let refuse = |detail: &str| {
            Error::BadRequest(format!(
                "invalid continue token: continue key is not valid{detail}"
            ))
        };
        let bytes = LENIENT
            .decode(text)
            .map_err(|error| refuse(&format!(": {}", base64_error(text, &error))))?;
        let token = json::parse(&bytes).map_err(|error| {
            refuse(&match strange_start(&bytes) {
                Some(byte) => format!(": invalid character {byte} looking for beginning of value"),
                None => format!(": {error}"),
            })
        })?;
        let version = token.str_at(&["v"]).unwrap_or_default();
        if version != "meta.k8s.io/v1" {
            let text = format!(": server does not recognize this encoded version {version}");
            return Err(refuse(&text));
        }
        let revision = token.get("rv").and_then(Value::as_int).unwrap_or(0);
        if revision == 0 {
            return Err(refuse(
                ": incorrect encoded start resourceVersion (version meta.k8s.io/v1)",
            ));
        }
        let start = token.str_at(&["start"]).unwrap_or_default();
        if start.is_empty() {
            return Err(refuse(": encoded start key empty (version meta.k8s.io/v1)"));
        }
        // A start such as `../secrets` must not lead out of the list's own prefix.
        let relative = start.strip_prefix('/').unwrap_or(start);
        let clean = relative
            .split('/')
            .all(|part| !matches!(part, "" | "." | ".."));
        if !clean {
            return Err(refuse(&format!(": {start}")));
        }
        Ok(ContinueToken {
            revision,
            start: relative.to_owned(),
        })
    }
}

/// Takes what Go's decoder takes: bits beyond the last byte may be anything.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::URL_SAFE,
    GeneralPurposeConfig::new()
        .with_encode_padding(false)
        .with_decode_padding_mode(DecodePaddingMode::RequireNone)
        .with_decode_allow_trailing_bits(true),
);

/// The first byte of what is no JSON at all, as Go shows it: as the character of that number.
fn strange_start(bytes: &[u8]) -> Option<String> {
    let first = *bytes.iter().find(|byte| !byte.is_ascii_whitespace())?;
    if matches!(
        first,
        b'{' | b'[' | b'"' | b'-' | b't' | b'f' | b'n' | b'0'..=b'9'
    ) {
        return None;
    }
    Some(match char::from(first) {
        '\'' => "'\\''".to_owned(),
        other if field::is_printable(other) => format!("'{other}'"),
        other if first < 0x80 => format!("'\\x{:02x}'", other as u32),
        other => format!("'\\u{:04x}'", other as u32),
    })
}

/// What is wrong with base64 text, in Go's words.
fn base64_error(text: &str, error: &base64::DecodeError) -> String {
    let place = match error {
        base64::DecodeError::InvalidByte(place, _) => *place,
        // What is too short for a byte is told by where it begins.
        base64::DecodeError::InvalidLength(_) => text.len() / 4 * 4,
        base64::DecodeError::InvalidLastSymbol { offset, .. } => *offset,
        base64::DecodeError::InvalidPadding => text.find('=').unwrap_or(text.len()),
    };
    format!("illegal base64 data at input byte {place}")
}

impl Selection {
    /// Whether every object is meant.
    pub fn is_everything(&self) -> bool {
        self.labels.is_everything() && self.fields.is_everything()
    }
}

/// Tells which records a selection means, without parsing them.
pub(crate) struct Matcher<'a> {
    kind: &'a Kind,
    selection: &'a Selection,
}

impl<'a> Matcher<'a> {
    pub(crate) fn new(kind: &'a Kind, selection: &'a Selection) -> Matcher<'a> {
        Matcher { kind, selection }
    }

    pub(crate) fn matches(&mut self, record: &Record) -> bool {
        let Ok(stored) = Stored::new(&record.value) else {
            // A damaged record is shown rather than hidden: reading it names the damage.
            return true;
        };
        self.selection.labels.matches(|key| stored.label(key))
            && self
                .selection
                .fields
                .terms()
                .all(|(field, comparison, wanted)| {
                    let equal = *self.field(&record.name, &stored, field) == *wanted;
                    equal == (comparison == Comparison::Equal)
                })
    }

    fn field<'r>(&self, key: &'r str, stored: &Stored<'r>, field: &str) -> Cow<'r, str> {
        let (namespace, name) = key.rsplit_once('/').unwrap_or(("", key));
        match field {
            "metadata.name" => name.into(),
            "metadata.namespace" => namespace.into(),
            other if self.kind.is_custom() => match stored.tree(None) {
                Ok(tree) => String::from(self.kind.select(&tree, other)).into(),
                Err(_) => "".into(),
            },
            other => {
                let place = self
                    .kind
                    .rules
                    .selectable
                    .iter()
                    .position(|known| *known == other);
                place
                    .and_then(|place| stored.selectable(place))
                    .unwrap_or_default()
                    .into()
            }
        }
    }
}

/// Refuses the name of an object that cannot stand in a path.
pub(crate) fn check_path_name(name: &str) -> Result<(), Error> {
    let complaints = names::name_is_path_segment(name, false);
    if complaints.is_empty() {
        return Ok(());
    }
    let (name, why) = (quote(name), complaints.join(";"));
    Err(Error::BadRequest(format!(
        "Name parameter invalid: {name}: {why}"
    )))
}

/// The store's name of an object.
pub(crate) fn store_name(kind: &Kind, namespace: &str, name: &str) -> String {
    if kind.namespaced {
        format!("{namespace}/{name}")
    } else {
        name.to_owned()
    }
}

/// What the store's names in a namespace begin with; empty for all of them.
pub(crate) fn namespace_prefix(kind: &Kind, namespace: &str) -> String {
    if kind.namespaced && !namespace.is_empty() {
        format!("{namespace}/")
    } else {
        String::new()
    }
}
