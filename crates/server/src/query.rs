//! The query of a request: read once, then asked by name.
//!
//! Contract: booleans are true for everything but `0` and `false`; of repeated parameters the
//! first one counts; unknown ones are ignored.

use object::field::{FieldError, Path};
use object::fields::FieldSelector;
use object::labels::LabelSelector;
use object::{Value, field};
use resources::options::{
    DeleteOptions, ListOptions, Propagation, RawWriteOptions, Selection, VersionMatch,
    WatchOptions, check_dry_run, refuse,
};
use resources::{Error, Revision};

/// The parameters in the order given.
#[derive(Debug, Default)]
pub(crate) struct Query {
    parameters: Vec<(String, String)>,
}

impl Query {
    /// Reads `a=1&b=2`; broken escapes make a parameter disappear, as upstream.
    pub(crate) fn parse(text: &str) -> Query {
        let decode = |text: &str| crate::request::percent_decode(&text.replace('+', " "));
        let parameters = text
            .split('&')
            .filter(|part| !part.is_empty())
            .filter_map(|part| {
                let (name, value) = part.split_once('=').unwrap_or((part, ""));
                Some((decode(name)?, decode(value)?))
            })
            .collect();
        Query { parameters }
    }

    /// The first value of a parameter.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.parameters
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }

    /// A parameter that is neither absent nor empty.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.get(name).filter(|value| !value.is_empty())
    }

    /// Every value of a parameter.
    pub(crate) fn all(&self, name: &str) -> Vec<String> {
        let named = self.parameters.iter().filter(|(key, _)| key == name);
        named.map(|(_, value)| value.clone()).collect()
    }

    /// A boolean; `None` if absent.
    pub(crate) fn boolean(&self, name: &str) -> Option<bool> {
        let value = self.get(name)?;
        Some(value != "0" && !value.eq_ignore_ascii_case("false"))
    }

    /// A boolean that is false if absent.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.boolean(name).unwrap_or(false)
    }

    fn integer(&self, name: &str) -> Result<Option<i64>, Error> {
        self.text(name)
            .map(|text| {
                text.parse().map_err(|_| {
                    let quoted = field::quote(text);
                    let text = format!("strconv.ParseInt: parsing {quoted}: invalid syntax");
                    Error::BadRequest(text)
                })
            })
            .transpose()
    }

    /// The one name that the field selector asks for, if it asks for exactly one.
    pub(crate) fn single_name(&self) -> Option<String> {
        let selector = FieldSelector::parse(self.text("fieldSelector")?).ok()?;
        let name = selector.requires_exact("metadata.name")?;
        let legal = !name.is_empty() && !name.contains(['/', '%']) && name != "." && name != "..";
        legal.then(|| name.to_owned())
    }

    /// The version that a get asks for.
    pub(crate) fn get_version(&self) -> Result<Option<Revision>, Error> {
        self.version(|detail| detail)
    }

    fn version(&self, wrap: impl Fn(String) -> String) -> Result<Option<Revision>, Error> {
        self.text("resourceVersion")
            .map(|text| {
                text.parse().map(Revision).map_err(|_| {
                    let quoted = field::quote(text);
                    let text = format!("strconv.ParseUint: parsing {quoted}: invalid syntax");
                    Error::BadRequest(wrap(text))
                })
            })
            .transpose()
    }

    /// The selectors, for a kind with these selectable fields.
    pub(crate) fn selection(&self, kind: &kinds::Kind) -> Result<Selection, Error> {
        let labels = LabelSelector::parse(self.get("labelSelector").unwrap_or_default())
            .map_err(Error::BadRequest)?;
        let fields = FieldSelector::parse(self.get("fieldSelector").unwrap_or_default())
            .map_err(|error| Error::BadRequest(error.to_string()))?;
        for (field, _, _) in fields.terms() {
            kind.check_selectable(field).map_err(Error::BadRequest)?;
        }
        Ok(Selection { labels, fields })
    }

    /// The options of a list.
    pub(crate) fn list_options(&self, kind: &kinds::Kind) -> Result<ListOptions, Error> {
        let limit = self.integer("limit")?.unwrap_or(0);
        self.integer("timeoutSeconds")?;
        let root = Path::root();
        let mut errors = Vec::new();
        if self.get("sendInitialEvents").is_some() {
            let field = root.field("sendInitialEvents");
            errors.push(FieldError::forbidden(
                &field,
                "sendInitialEvents is forbidden for list",
            ));
        }
        let version_match = match self.text("resourceVersionMatch") {
            None => None,
            Some("Exact") => Some(VersionMatch::Exact),
            Some("NotOlderThan") => Some(VersionMatch::NotOlderThan),
            Some(other) => {
                let known = &["Exact", "NotOlderThan", ""];
                let field = root.field("resourceVersionMatch");
                if self.text("resourceVersion").is_none() {
                    let detail =
                        "resourceVersionMatch is forbidden unless resourceVersion is provided";
                    errors.push(FieldError::forbidden(&field, detail));
                }
                errors.push(FieldError::not_supported(
                    &field,
                    &Value::from(other),
                    known,
                ));
                None
            }
        };
        refuse("ListOptions", errors)?;
        let wrap = |detail| {
            let value = field::quote(self.get("resourceVersion").unwrap_or_default());
            format!("invalid resource version: resourceVersion: Invalid value: {value}: {detail}")
        };
        Ok(ListOptions {
            version: self.version(wrap)?,
            selection: self.selection(kind)?,
            limit: usize::try_from(limit).unwrap_or(0),
            continue_token: self.text("continue").map(str::to_owned),
            version_match,
        })
    }

    /// The options of a watch and how many seconds it may last.
    pub(crate) fn watch_options(
        &self,
        kind: &kinds::Kind,
    ) -> Result<(WatchOptions, Option<u64>), Error> {
        let root = Path::root();
        let field = root.field("resourceVersionMatch");
        let initial_events = self.boolean("sendInitialEvents");
        let version_match = self.text("resourceVersionMatch");
        let mut errors = Vec::new();
        match (initial_events, version_match) {
            (Some(_), other) if other != Some("NotOlderThan") => {
                let detail = "sendInitialEvents requires setting resourceVersionMatch to \
                              NotOlderThan";
                errors.push(FieldError::forbidden(&field, detail));
            }
            (None, Some(_)) => {
                let detail = "resourceVersionMatch is forbidden for watch unless \
                              sendInitialEvents is provided";
                errors.push(FieldError::forbidden(&field, detail));
            }
            _ => {}
        }
        if let (Some(_), Some(other)) = (initial_events, version_match)
            && other != "NotOlderThan"
        {
            let value = Value::from(other);
            errors.push(FieldError::not_supported(&field, &value, &["NotOlderThan"]));
        }
        refuse("ListOptions", errors)?;
        let seconds = self
            .integer("timeoutSeconds")?
            .filter(|seconds| *seconds > 0);
        self.integer("limit")?;
        let options = WatchOptions {
            selection: self.selection(kind)?,
            version: self.version(|detail| detail)?,
            initial_events,
            bookmarks: self.flag("allowWatchBookmarks"),
        };
        Ok((options, seconds.map(i64::unsigned_abs)))
    }

    /// The options of a write.
    pub(crate) fn write_options(&self) -> RawWriteOptions {
        RawWriteOptions {
            dry_run: self.all("dryRun"),
            field_manager: self.get("fieldManager").map(str::to_owned),
            field_validation: self.get("fieldValidation").map(str::to_owned),
            force: self.boolean("force"),
        }
    }

    /// The options of a deletion whose body is empty.
    pub(crate) fn delete_options(&self) -> Result<DeleteOptions, Error> {
        let dry_run = self.all("dryRun");
        let propagation = propagation(self.text("propagationPolicy"));
        let orphan_dependents = self.boolean("orphanDependents");
        let mut errors = Vec::new();
        check_propagation(&propagation, orphan_dependents, &mut errors);
        errors.extend(check_dry_run(&dry_run));
        refuse("DeleteOptions", errors)?;
        Ok(DeleteOptions {
            dry_run: !dry_run.is_empty(),
            grace_period_seconds: self.integer("gracePeriodSeconds")?,
            propagation: propagation.ok().flatten(),
            orphan_dependents,
            uid: None,
            resource_version: None,
        })
    }
}

/// Reads a propagation policy; what is no policy comes back as it is.
pub(crate) fn propagation(text: Option<&str>) -> Result<Option<Propagation>, String> {
    match text {
        None | Some("") => Ok(None),
        Some("Orphan") => Ok(Some(Propagation::Orphan)),
        Some("Background") => Ok(Some(Propagation::Background)),
        Some("Foreground") => Ok(Some(Propagation::Foreground)),
        Some(other) => Err(other.to_owned()),
    }
}

/// What is wrong with a policy, and with giving it in two ways.
pub(crate) fn check_propagation(
    propagation: &Result<Option<Propagation>, String>,
    orphan_dependents: Option<bool>,
    errors: &mut Vec<FieldError>,
) {
    let root = Path::root();
    let field = root.field("propagationPolicy");
    let given = !matches!(propagation, Ok(None));
    if given && orphan_dependents.is_some() {
        let text = match propagation {
            Ok(Some(policy)) => format!("{policy:?}"),
            Ok(None) => String::new(),
            Err(text) => text.clone(),
        };
        let detail = "orphanDependents and deletionPropagation cannot be both set";
        errors.push(FieldError::invalid(&field, &Value::from(text), detail));
    }
    if let Err(text) = propagation {
        let known = &["Foreground", "Background", "Orphan", "nil"];
        errors.push(FieldError::not_supported(
            &field,
            &Value::from(text.as_str()),
            known,
        ));
    }
}
