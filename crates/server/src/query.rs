//! The query of a request: read once, then asked by name.
//!
//! Contract: booleans are true for everything but `0` and `false`; of repeated parameters the
//! first one counts; unknown ones are ignored. What is wrong is told in upstream's order: numbers,
//! selectors, combinations, fields that are no selectors, and versions last.

use std::num::{IntErrorKind, ParseIntError};

use object::field::{FieldError, Path};
use object::fields::FieldSelector;
use object::labels::LabelSelector;
use object::{Value, field};
use resources::options::{
    DeleteOptions, ListOptions, Propagation, RawWriteOptions, Selection, VersionMatch,
    WatchOptions, check_dry_run, refuse,
};
use resources::{Error, Revision};

const NO_MATCH_WITH_TOKEN: &str = "resourceVersionMatch is forbidden when continue is provided";

/// The parameters in the order given.
#[derive(Debug, Default)]
pub(crate) struct Query {
    parameters: Vec<(String, String)>,
}

impl Query {
    /// Reads `a=1&b=2`; broken escapes and semicolons make a parameter disappear, as upstream.
    pub(crate) fn parse(text: &str) -> Query {
        let decode = |text: &str| crate::request::percent_decode(&text.replace('+', " "));
        let parameters = text
            .split('&')
            .filter(|part| !part.is_empty() && !part.contains(';'))
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
        self.get(name)
            .map(|text| {
                text.parse().map_err(|error: ParseIntError| {
                    let quoted = field::quote(text);
                    let cause = cause(&error);
                    Error::BadRequest(format!("strconv.ParseInt: parsing {quoted}: {cause}"))
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

    /// The version that a get or a watch asks for.
    pub(crate) fn version(&self) -> Result<Option<Revision>, Error> {
        self.version_after("")
    }

    /// A version; a mistake is told after these words.
    fn version_after(&self, words: &str) -> Result<Option<Revision>, Error> {
        self.text("resourceVersion")
            .map(|text| {
                text.parse().map(Revision).map_err(|error: ParseIntError| {
                    let value = field::quote(text);
                    let cause = cause(&error);
                    Error::BadRequest(format!(
                        "{words}resourceVersion: Invalid value: {value}: \
                         strconv.ParseUint: parsing {value}: {cause}"
                    ))
                })
            })
            .transpose()
    }

    /// The selectors as they are written.
    fn selection(&self) -> Result<Selection, Error> {
        let labels = LabelSelector::parse(self.get("labelSelector").unwrap_or_default())
            .map_err(Error::BadRequest)?;
        let fields = FieldSelector::parse(self.get("fieldSelector").unwrap_or_default())
            .map_err(|error| Error::BadRequest(error.to_string()))?;
        Ok(Selection { labels, fields })
    }

    /// The options of a list.
    pub(crate) fn list_options(&self, kind: &kinds::Kind) -> Result<ListOptions, Error> {
        self.integer("timeoutSeconds")?;
        let limit = self.integer("limit")?.unwrap_or(0);
        let selection = self.selection()?;
        refuse("ListOptions", self.list_mistakes())?;
        check_selectable(kind, &selection)?;
        let continue_token = self.text("continue").map(str::to_owned);
        let version = match self.text("resourceVersion") {
            // It does not go along with a token, whatever it says.
            Some(text) if continue_token.is_some() => Some(text.parse().unwrap_or(u64::MAX)),
            _ => None,
        };
        Ok(ListOptions {
            version: match version {
                Some(version) => Some(Revision(version)),
                None => self.version_after("invalid resource version: ")?,
            },
            selection,
            limit: usize::try_from(limit).unwrap_or(0),
            continue_token,
            version_match: match self.text("resourceVersionMatch") {
                Some("Exact") => Some(VersionMatch::Exact),
                Some("NotOlderThan") => Some(VersionMatch::NotOlderThan),
                _ => None,
            },
        })
    }

    /// What does not go together in a list. Contract: `ValidateListOptions` of upstream's
    /// `apimachinery/pkg/apis/meta/internalversion/validation`.
    fn list_mistakes(&self) -> Vec<FieldError> {
        let root = Path::root();
        let field = root.field("resourceVersionMatch");
        let version = self.text("resourceVersion");
        let mut errors = Vec::new();
        if let Some(wanted) = self.text("resourceVersionMatch") {
            if version.is_none() {
                let detail = "resourceVersionMatch is forbidden unless resourceVersion is provided";
                errors.push(FieldError::forbidden(&field, detail));
            }
            if self.text("continue").is_some() {
                errors.push(FieldError::forbidden(&field, NO_MATCH_WITH_TOKEN));
            }
            if !matches!(wanted, "Exact" | "NotOlderThan") {
                let known = &["Exact", "NotOlderThan", ""];
                let value = Value::from(wanted);
                errors.push(FieldError::not_supported(&field, &value, known));
            }
            if wanted == "Exact" && version == Some("0") {
                let detail =
                    "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
                errors.push(FieldError::forbidden(&field, detail));
            }
        }
        if self.get("sendInitialEvents").is_some() {
            let field = root.field("sendInitialEvents");
            let detail = "sendInitialEvents is forbidden for list";
            errors.push(FieldError::forbidden(&field, detail));
        }
        errors
    }

    /// The options of a watch and how many seconds it may last.
    pub(crate) fn watch_options(
        &self,
        kind: &kinds::Kind,
    ) -> Result<(WatchOptions, Option<u64>), Error> {
        let seconds = self.integer("timeoutSeconds")?;
        self.integer("limit")?;
        let selection = self.selection()?;
        // A deprecated path makes a watch of what would be a list.
        let mistakes = if self.flag("watch") {
            self.watch_mistakes()
        } else {
            self.list_mistakes()
        };
        refuse("ListOptions", mistakes)?;
        check_selectable(kind, &selection)?;
        let options = WatchOptions {
            selection,
            version: self.version()?,
            initial_events: self.boolean("sendInitialEvents"),
            bookmarks: self.flag("allowWatchBookmarks"),
        };
        // Zero is no time at all, and less than that is over at once.
        let seconds = seconds.filter(|seconds| *seconds != 0);
        Ok((options, seconds.map(|it| u64::try_from(it).unwrap_or(0))))
    }

    /// What does not go together in a watch.
    fn watch_mistakes(&self) -> Vec<FieldError> {
        let root = Path::root();
        let field = root.field("resourceVersionMatch");
        let mut initial_events = self.boolean("sendInitialEvents");
        let mut wanted = self.text("resourceVersionMatch");
        let from_now = matches!(self.text("resourceVersion"), None | Some("0"));
        if initial_events.is_none() && wanted.is_none() && from_now {
            (initial_events, wanted) = (Some(true), Some("NotOlderThan"));
        }
        let mut errors = Vec::new();
        if initial_events.is_some() && wanted != Some("NotOlderThan") {
            let detail = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
            errors.push(FieldError::forbidden(&field, detail));
        }
        let Some(wanted) = wanted else {
            return errors;
        };
        if initial_events.is_none() {
            let detail = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is \
                          provided";
            errors.push(FieldError::forbidden(&field, detail));
        }
        if wanted != "NotOlderThan" {
            let value = Value::from(wanted);
            errors.push(FieldError::not_supported(&field, &value, &["NotOlderThan"]));
        }
        if self.text("continue").is_some() {
            errors.push(FieldError::forbidden(&field, NO_MATCH_WITH_TOKEN));
        }
        errors
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
        let propagation = propagation(self.get("propagationPolicy"));
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
            uid: self.text("uid").map(Into::into),
            resource_version: self.text("resourceVersion").map(Into::into),
        })
    }
}

/// What is wrong with a number, in the words of Go's `strconv`.
fn cause(error: &ParseIntError) -> &'static str {
    match error.kind() {
        IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "value out of range",
        _ => "invalid syntax",
    }
}

/// Refuses fields that objects of the kind cannot be selected by.
fn check_selectable(kind: &kinds::Kind, selection: &Selection) -> Result<(), Error> {
    let mut fields = selection.fields.terms();
    fields.try_for_each(|(field, _, _)| kind.check_selectable(field).map_err(Error::BadRequest))
}

/// Reads a propagation policy; what is no policy comes back as it is.
pub(crate) fn propagation(text: Option<&str>) -> Result<Option<Propagation>, String> {
    match text {
        None => Ok(None),
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

#[cfg(test)]
mod tests {
    use super::*;

    /// What is wrong with the query of a list or watch of config maps; empty if nothing is.
    fn mistakes(query: &str) -> String {
        let catalogue = kinds::Catalogue::builtin();
        let kind = catalogue
            .resource("", "v1", "configmaps")
            .expect("built in");
        let query = Query::parse(query);
        let error = if query.flag("watch") {
            query.watch_options(kind).err()
        } else {
            query.list_options(kind).err()
        };
        error.map(|error| error.to_string()).unwrap_or_default()
    }

    #[test]
    fn all_that_does_not_go_together_is_told_at_once() {
        let no_version = "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden \
                          unless resourceVersion is provided";
        let token = "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden when \
                     continue is provided";
        let bogus = "resourceVersionMatch: Unsupported value: \"Bogus\": supported values: \
                     \"Exact\", \"NotOlderThan\", \"\"";
        let no_events = "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for \
                         watch unless sendInitialEvents is provided";
        let exact = "resourceVersionMatch: Unsupported value: \"Exact\": supported values: \
                     \"NotOlderThan\"";
        for (query, expected) in [
            (
                "resourceVersionMatch=Bogus&continue=x",
                vec![no_version, token, bogus],
            ),
            (
                "resourceVersionMatch=Exact&continue=x&resourceVersion=abc",
                vec![token],
            ),
            ("watch=1&resourceVersionMatch=Exact", vec![no_events, exact]),
            ("watch=1&continue=x", vec![token]),
            ("watch=1&continue=x&resourceVersion=5", vec![]),
            ("continue=x&resourceVersion=abc", vec![]),
        ] {
            let expected = match expected.as_slice() {
                [] => String::new(),
                [one] => format!("ListOptions.meta.k8s.io \"\" is invalid: {one}"),
                all => {
                    let all = all.join(", ");
                    format!("ListOptions.meta.k8s.io \"\" is invalid: [{all}]")
                }
            };
            assert_eq!(mistakes(query), expected, "{query}");
        }
    }

    #[test]
    fn an_empty_number_is_none_and_a_semicolon_hides_a_parameter() {
        let empty = "strconv.ParseInt: parsing \"\": invalid syntax";
        assert_eq!(mistakes("limit="), empty);
        assert_eq!(mistakes("watch=1&timeoutSeconds="), empty);
        assert_eq!(mistakes("limit=1;labelSelector=-"), "");
    }

    #[test]
    fn how_long_a_watch_lasts() {
        let catalogue = kinds::Catalogue::builtin();
        let kind = catalogue.resource("", "v1", "pods").expect("built in");
        for (query, expected) in [
            ("watch=1", None),
            ("watch=1&timeoutSeconds=0", None),
            ("watch=1&timeoutSeconds=7", Some(7)),
            ("watch=1&timeoutSeconds=-7", Some(0)),
        ] {
            let options = Query::parse(query).watch_options(kind);
            assert_eq!(options.map(|it| it.1).ok(), Some(expected), "{query}");
        }
    }

    #[test]
    fn preconditions_of_a_deletion_may_stand_in_the_query() {
        let options = Query::parse("uid=u&resourceVersion=7").delete_options();
        let options = options.expect("they are right");
        assert_eq!(options.uid.as_deref(), Some("u"));
        assert_eq!(options.resource_version.as_deref(), Some("7"));
        assert!(Query::parse("propagationPolicy=").delete_options().is_err());
    }
}
