//! Who owns which field: the seam between writes and the `apply` crate.

use std::borrow::Cow;
use std::sync::Arc;

use apply::{
    ConvertError, FieldFilter, FieldSet, KnownSets, ManagedFields, Path, Style, Typing, Versions,
    Writer, starting_managers,
};
use kinds::convert::convert;
use kinds::{Catalogue, Kind};
use object::{Map, Value};

use crate::body::Wanted;
use crate::meta::meta_mut;
use crate::write::Live;
use crate::{Request, Resources};

/// What an entry may hold at most.
const MANAGER_BYTES_MAX: usize = 128;
const SUBRESOURCE_BYTES_MAX: usize = 256;

/// What most entries take.
const MANAGER_BYTES_GUESSED: usize = 1024;

/// The managers of an object.
#[derive(Clone, Debug, Default)]
pub(crate) struct Owners(pub ManagedFields);

impl Owners {
    /// Reads the managed fields of a record.
    pub(crate) fn read(text: &[u8], known: &KnownSets) -> Result<Owners, apply::DecodeError> {
        if text.is_empty() {
            return Ok(Owners::default());
        }
        ManagedFields::parse_knowing(text, known).map(Owners)
    }

    /// The managed fields as a record and its answers hold them; empty if nobody owns anything.
    pub(crate) fn to_text(&self, kind: &Kind) -> Vec<u8> {
        let mut text = Vec::with_capacity(MANAGER_BYTES_GUESSED * self.0.len());
        if !self.0.is_empty() {
            let style = if kind.is_custom() {
                Style::Custom
            } else {
                Style::Typed
            };
            self.0.write_json(style, &mut text);
        }
        text
    }

    /// The owners of a new object, given what the client says about them.
    pub(crate) fn of_created(
        resources: &Resources,
        request: &Request<'_>,
        wanted: &mut Wanted,
    ) -> Owners {
        if !resources.server_side_apply {
            return Owners::default();
        }
        let supplied = wanted.managed_fields.as_ref();
        let start = starting_managers(ManagedFields::new(), supplied, "");
        let versions = KindVersions::new(resources, request);
        let writer = writer(request, &versions);
        let now = resources.now();
        let owners = wanted.as_shown(request.kind, |new| {
            apply::update(None, new, start, writer, now, &versions)
        });
        Owners(owners)
    }

    /// The owners after a PUT or a patch.
    pub(crate) fn after_update(
        resources: &Resources,
        request: &Request<'_>,
        live: &Live,
        wanted: &mut Wanted,
    ) -> Owners {
        if !resources.server_side_apply {
            return Owners::default();
        }
        let supplied = wanted.managed_fields.as_ref();
        let start = starting_managers(live.owners.0.clone(), supplied, request.subresource);
        let versions = KindVersions::new(resources, request);
        let writer = writer(request, &versions);
        let now = resources.now();
        let owners = wanted.as_shown(request.kind, |new| {
            apply::update(Some(&live.object), new, start, writer, now, &versions)
        });
        Owners(owners)
    }

    /// Writes the entries into an object that is shown and not stored.
    pub(crate) fn show_in(&self, object: &mut Map) {
        if let Some(fields) = self.0.encode() {
            meta_mut(object).insert("managedFields", fields);
        }
    }

    /// The entries as a tree, if one of them is longer than an entry may be.
    pub(crate) fn odd(&self) -> Option<Value> {
        let odd = |manager: &apply::Manager| {
            manager.name.len() > MANAGER_BYTES_MAX
                || manager.subresource.len() > SUBRESOURCE_BYTES_MAX
                || !manager.name.chars().all(object::field::is_printable)
        };
        self.0
            .managers()
            .iter()
            .any(odd)
            .then(|| self.0.encode())
            .flatten()
    }

    /// Takes back new times if the owners are the same.
    pub(crate) fn keep_times(&mut self, old: &Owners) {
        self.0 = std::mem::take(&mut self.0).without_new_times(&old.0);
    }

    /// The same, if the entries are in the same order.
    pub(crate) fn keep_times_in_place(&mut self, old: &Owners) {
        self.0 = std::mem::take(&mut self.0).without_new_times_in_place(&old.0);
    }
}

/// Who writes, as the owners' list names them.
pub(crate) fn writer<'a>(request: &'a Request<'_>, versions: &'a KindVersions<'_>) -> Writer<'a> {
    Writer {
        name: &request.options.manager,
        api_version: &versions.api_version,
        subresource: request.subresource,
    }
}

/// The versions of one kind, as the engine asks for them.
pub(crate) struct KindVersions<'a> {
    catalogue: Arc<Catalogue>,
    kind: &'a Arc<Kind>,
    api_version: object::Text,
    filter: Option<FieldFilter>,
}

impl<'a> KindVersions<'a> {
    pub(crate) fn new(resources: &Resources, request: &Request<'a>) -> KindVersions<'a> {
        let paths = request.kind.reset_fields(request.subresource);
        let filter = (!paths.is_empty()).then(|| {
            let paths = paths.iter().map(|path| Path::fields(path.iter().copied()));
            FieldFilter::Exclude(FieldSet::from_paths(paths))
        });
        let api_version = request.kind.api_version();
        KindVersions {
            catalogue: resources.catalogue(),
            kind: request.kind,
            api_version,
            filter,
        }
    }

    fn version(&self, api_version: &str) -> Option<&Arc<Kind>> {
        if api_version == self.api_version {
            return Some(self.kind);
        }
        self.catalogue.forms(&self.kind.collection).find(|kind| {
            // An object can be served in two groups, but no version of the other group counts.
            kind.group == self.kind.group && kind.api_version() == api_version
        })
    }
}

impl Versions for KindVersions<'_> {
    fn typing(&self, api_version: &str) -> Option<Typing<'_>> {
        self.version(api_version).map(|kind| Typing {
            types: &kind.types,
            root: kind.root,
        })
    }

    fn convert(&self, object: &Value, from: &str, to: &str) -> Result<Value, ConvertError> {
        let (Some(from), Some(to), Value::Object(object)) =
            (self.version(from), self.version(to), object)
        else {
            return Err(ConvertError {
                message: format!("cannot convert from {from} to {to}"),
            });
        };
        // What is printed even when it holds nothing is there in each version. A field that is
        // given up in one version and always printed in another therefore stays.
        Ok(Value::Object(to.print(convert(from, to, object.clone()))))
    }

    fn empty(&self, api_version: &str) -> Cow<'_, Value> {
        match self.version(api_version) {
            Some(kind) => Cow::Borrowed(kind.unwritten()),
            None => Cow::Owned(Value::Object(Map::new())),
        }
    }

    fn reset_fields(&self, api_version: &str) -> Option<&FieldFilter> {
        // Each version of a custom resource knows of its own fields alone.
        let known = match self.kind.is_custom() {
            true => api_version == self.api_version,
            false => self.version(api_version).is_some(),
        };
        self.filter.as_ref().filter(|_| known)
    }
}
