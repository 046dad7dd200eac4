//! The kinds that are served: the built-in ones, as data, and those that definitions add.
//!
//! The facts of the built-in ones live in two text files under `generated/`, written by
//! `cargo xtask generate` and compiled in. They are decoded on first use, all at once, because that
//! takes about a millisecond; every kind shares one arena of types. What upstream writes as code
//! comes from elsewhere: rules per kind from the `groups` module, keys of the store from `storage`.

mod build;
mod names;
mod published;
mod storage;
mod text;

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use object::Text;
use object::group::compare_versions;
use schema::{TypeId, Types};

use self::names::ByName;
use crate::kind::{Column, Kind, Subresource};

/// Every kind that is served at one moment.
pub struct Catalogue {
    groups: Vec<Group>,
    kinds: Vec<Arc<Kind>>,
    /// Positions in `kinds` by the name of the resource, which few kinds share.
    by_resource: HashMap<Text, Vec<usize>>,
    /// Versions of custom kinds that are not served, but that objects may be stored or owned in.
    unserved: Vec<Arc<Kind>>,
    /// By collection, where several forms share it: the form that is stored.
    stored: HashMap<Text, Arc<Kind>>,
    types: Arc<Types>,
    definitions: Arc<Definitions>,
}

/// A group of kinds and the versions it is served in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The name; empty for the core group.
    pub name: Text,
    /// The versions, most preferred first.
    pub versions: Vec<Text>,
}

/// Where the type of each published definition is.
pub(crate) struct Definitions {
    /// Short and full name of each package, in the order of the data.
    packages: Vec<(&'static str, &'static str)>,
    ids: ByName<TypeId>,
}

impl Catalogue {
    /// The catalogue that is compiled in.
    pub fn builtin() -> &'static Arc<Catalogue> {
        static BUILTIN: LazyLock<Arc<Catalogue>> = LazyLock::new(|| Arc::new(Catalogue::decode()));
        &BUILTIN
    }

    /// The groups in discovery order, the core group first.
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// Every kind in discovery order.
    pub fn kinds(&self) -> &[Arc<Kind>] {
        &self.kinds
    }

    /// The kind that is served at this place.
    pub fn resource(&self, group: &str, version: &str, resource: &str) -> Option<&Arc<Kind>> {
        let named = self.by_resource.get(resource)?;
        let mut named = named.iter().map(|at| &self.kinds[*at]);
        named.find(|kind| kind.group == group && kind.version == version)
    }

    /// The kind of this name.
    pub fn by_kind(&self, group: &str, version: &str, kind: &str) -> Option<&Arc<Kind>> {
        self.kinds
            .iter()
            .find(|known| known.kind == kind && known.group == group && known.version == version)
    }

    /// The kind in the form in which its objects are stored; itself unless there are several.
    ///
    /// Events of `events.k8s.io` are stored as events of the core group.
    pub fn stored_kind<'a>(&'a self, kind: &'a Arc<Kind>) -> &'a Arc<Kind> {
        match self.stored.get(&kind.collection) {
            Some(stored) if !is_same_form(stored, kind) => stored,
            _ => kind,
        }
    }

    /// Every collection once: the form in which its objects are stored, served or not.
    pub fn stored_forms(&self) -> impl Iterator<Item = &Arc<Kind>> {
        let all = self.kinds.iter().chain(&self.unserved);
        all.filter(|kind| Arc::ptr_eq(self.stored_kind(kind), kind))
    }

    /// Every form of the objects of a collection, served or not.
    pub fn forms(&self, collection: &str) -> impl Iterator<Item = &Arc<Kind>> {
        let all = self.kinds.iter().chain(&self.unserved);
        all.filter(move |kind| kind.collection == collection)
    }

    /// The built-in kinds and these: every version of every custom kind. Those of `served` are
    /// offered to clients.
    ///
    /// A version of a built-in group belongs to the server and is left out.
    pub fn with_custom(&self, custom: Vec<Arc<Kind>>, served: impl Fn(&Kind) -> bool) -> Catalogue {
        let (mut served, unserved): (Vec<_>, Vec<_>) =
            custom.into_iter().partition(|kind| served(kind));
        served.sort_by(|left, right| {
            let names = (&left.group, &left.resource).cmp(&(&right.group, &right.resource));
            left.group
                .cmp(&right.group)
                .then_with(|| compare_versions(&right.version, &left.version))
                .then(names)
        });
        let mut groups = self.groups.clone();
        for kind in &served {
            match groups.iter_mut().find(|group| group.name == kind.group) {
                Some(group) if group.versions.contains(&kind.version) => {}
                Some(group) => group.versions.push(kind.version.clone()),
                None => groups.push(Group {
                    name: kind.group.clone(),
                    versions: vec![kind.version.clone()],
                }),
            }
        }
        let mut stored = self.stored.clone();
        for kind in served.iter().chain(&unserved) {
            if kind.version == kind.storage_version {
                stored.insert(kind.collection.clone(), Arc::clone(kind));
            }
        }
        let kinds: Vec<Arc<Kind>> = self.kinds.iter().cloned().chain(served).collect();
        Catalogue {
            groups,
            by_resource: positions(&kinds),
            kinds,
            unserved,
            stored,
            types: Arc::clone(&self.types),
            definitions: Arc::clone(&self.definitions),
        }
    }

    /// The arena of every type; the one that the kinds share.
    pub fn types(&self) -> &Arc<Types> {
        &self.types
    }

    /// The type of a published definition, such as `io.k8s.apimachinery.pkg.apis.meta.v1.Status`.
    pub fn definition(&self, name: &str) -> Option<TypeId> {
        self.definitions.by_full_name(name)
    }

    /// What upstream calls the struct of a published definition, such as `v1.PodSpec`.
    fn struct_name(&self, id: TypeId) -> Option<String> {
        let ids = self.definitions.ids.iter();
        let ((package, short), _) = ids.into_iter().find(|(_, known)| **known == id)?;
        let (_, full) = self.definitions.packages[*package];
        let package = full.rsplit('.').next().unwrap_or_default();
        Some(format!("{package}.{short}"))
    }

    fn decode() -> Catalogue {
        let (mut types, definitions) = build::build(text::DEFINITIONS);
        types.set_names(|id| Catalogue::builtin().struct_name(id));
        let types = Arc::new(types);
        let mut groups = Vec::new();
        let mut kinds: Vec<Kind> = Vec::new();
        for line in text::RESOURCES.lines() {
            let cells: Vec<&'static str> = line.split('\t').collect();
            match cells[..] {
                ["group", name, versions] => {
                    groups.push(Group {
                        name: name.into(),
                        versions: text::list(versions),
                    });
                }
                ["kind", ..] => kinds.push(decode_kind(&cells[1..], &types, &definitions)),
                ["sub", name, group, version, kind, verbs] => {
                    last(&mut kinds).subresources.push(Subresource {
                        name: name.into(),
                        group: group.into(),
                        version: version.into(),
                        kind: kind.into(),
                        verbs: text::list(verbs),
                    });
                }
                ["column", name, kind, format, priority] => {
                    last(&mut kinds).columns.push(Column {
                        name: name.into(),
                        kind: kind.into(),
                        format: format.into(),
                        description: Text::default(),
                        priority: text::number(priority),
                        path: None,
                    });
                }
                _ => text::malformed(line),
            }
        }
        let kinds: Vec<Arc<Kind>> = kinds.into_iter().map(Arc::new).collect();
        let shared = |kind: &&Arc<Kind>| {
            let others = kinds.iter().filter(|it| it.collection == kind.collection);
            storage::is_stored_form(&kind.group, &kind.version, &kind.resource)
                && others.count() > 1
        };
        let stored = kinds.iter().filter(shared);
        Catalogue {
            groups,
            by_resource: positions(&kinds),
            stored: stored
                .map(|kind| (kind.collection.clone(), Arc::clone(kind)))
                .collect(),
            kinds,
            unserved: Vec::new(),
            types,
            definitions: Arc::new(definitions),
        }
    }
}

impl Group {
    /// The version that clients should prefer.
    pub fn preferred(&self) -> &Text {
        self.versions
            .first()
            .expect("a served group has at least one version")
    }
}

impl Definitions {
    /// The type of a definition by its full name.
    fn by_full_name(&self, name: &str) -> Option<TypeId> {
        let (package, short) = name.rsplit_once('.')?;
        let at = self
            .packages
            .iter()
            .position(|(_, full)| *full == package)?;
        self.ids.get(&(at, short)).copied()
    }

    /// The type of a definition by its name in the data, seen from the package at `home`.
    fn by_short_name(&self, home: usize, name: &'static str) -> Option<TypeId> {
        match text::split_at_byte(name, b'.') {
            None => self.ids.get(&(home, name)).copied(),
            Some((alias, short)) => {
                let at = self
                    .packages
                    .iter()
                    .position(|(known, _)| *known == alias)?;
                self.ids.get(&(at, short)).copied()
            }
        }
    }
}

fn decode_kind(cells: &[&'static str], types: &Arc<Types>, definitions: &Definitions) -> Kind {
    let [
        group,
        version,
        resource,
        kind,
        singular,
        scope,
        short,
        categories,
        verbs,
        definition,
    ] = cells[..]
    else {
        text::malformed(&cells.join("\t"))
    };
    let root = definitions
        .by_short_name(usize::MAX, definition)
        .unwrap_or_else(|| text::malformed(definition));
    Kind {
        group: group.into(),
        version: version.into(),
        kind: kind.into(),
        list_kind: [kind, "List"].concat().into(),
        resource: resource.into(),
        singular: singular.into(),
        namespaced: scope == "Namespaced",
        short_names: text::list(short),
        categories: text::list(categories),
        verbs: text::list(verbs),
        subresources: Vec::new(),
        types: types.clone(),
        root,
        collection: storage::collection(group, resource),
        storage_version: storage::stored_version(group, version, resource).into(),
        custom: None,
        columns: Vec::new(),
        rules: crate::groups::rules(group, version, kind),
        unwritten: Default::default(),
    }
}

/// The positions of kinds by the names of their resources.
fn positions(kinds: &[Arc<Kind>]) -> HashMap<Text, Vec<usize>> {
    let mut positions: HashMap<Text, Vec<usize>> = HashMap::with_capacity(kinds.len());
    for (at, kind) in kinds.iter().enumerate() {
        positions.entry(kind.resource.clone()).or_default().push(at);
    }
    positions
}

/// Whether two descriptions are of the same kind in the same version.
fn is_same_form(left: &Kind, right: &Kind) -> bool {
    (&left.group, &left.version, &left.kind) == (&right.group, &right.version, &right.kind)
}

fn last(kinds: &mut [Kind]) -> &mut Kind {
    kinds
        .last_mut()
        .expect("lines of detail follow the line of their kind")
}

#[cfg(test)]
mod tests;
