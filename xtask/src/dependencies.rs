//! Rules over `cargo metadata`: arrows between our crates, licences, duplicate versions.

use crate::failure::Failure;
use crate::{licence, shell};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Each room and the rooms it may use. A new arrow is a design change: say why in the commit.
const ARROWS: &[(&str, &[&str])] = &[
    ("object", &[]),
    ("cel", &["object"]),
    ("schema", &["object", "cel"]),
    ("apply", &["object", "schema"]),
    ("kinds", &["object", "schema", "cel"]),
    ("store", &[]),
    ("auth", &["object", "cel"]),
    ("admission", &["object", "schema", "cel", "kinds"]),
    (
        "resources",
        &[
            "object",
            "cel",
            "schema",
            "apply",
            "kinds",
            "store",
            "auth",
            "admission",
        ],
    ),
    (
        "server",
        &[
            "object",
            "cel",
            "schema",
            "apply",
            "kinds",
            "store",
            "auth",
            "admission",
            "resources",
        ],
    ),
];

/// Rooms at the top, which may use every other.
const FREE: &[&str] = &["windlass", "testkit", "xtask"];

/// Rooms whose dependencies users do not get.
const NOT_SHIPPED: &[&str] = &["testkit", "xtask"];

/// Crates of which the server may hold more than one version: `name: reason` per line.
const DUPLICATES_FILE: &str = "xtask/duplicate-versions.txt";

/// What `cargo metadata` says of this workspace on this platform.
pub(crate) fn metadata(arguments: &[&str]) -> Result<Value, Failure> {
    let mut cargo = shell::cargo(&["metadata", "--format-version", "1"]);
    let text = shell::read(cargo.args(arguments))?;
    serde_json::from_str(&text).map_err(|why| Failure::unexpected("cargo metadata", why))
}

/// Checks all rules and reports every breach at once.
pub(crate) fn run() -> Result<(), Failure> {
    let host = host_triple()?;
    let graph = Graph::read(&metadata(&["--locked", "--filter-platform", &host])?)?;
    let mut findings = graph.arrows_that_point_up();
    findings.extend(graph.refused_licences());
    findings.extend(graph.duplicate_versions(&allowed_duplicates()?));
    println!(
        "{} crates, {} of them ours",
        graph.packages.len(),
        graph.members.len()
    );
    Failure::unless_empty("dependencies", findings, None)
}

fn host_triple() -> Result<String, Failure> {
    let version = shell::read(&mut shell::command("rustc", &["--version", "--verbose"]))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned)
        .ok_or_else(|| Failure::unexpected("rustc --version", "no host line"))
}

fn allowed_duplicates() -> Result<BTreeSet<String>, Failure> {
    let path = shell::root().join(DUPLICATES_FILE);
    let text = std::fs::read_to_string(&path).map_err(|source| Failure::File {
        action: "read",
        path,
        source,
    })?;
    let mut names = BTreeSet::new();
    for line in text
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
    {
        match line.split_once(": ") {
            Some((name, reason)) if !reason.trim().is_empty() => names.insert(name.to_owned()),
            _ => {
                return Err(Failure::unexpected(
                    DUPLICATES_FILE,
                    format!("no reason in {line:?}"),
                ));
            }
        };
    }
    Ok(names)
}

struct Package {
    name: String,
    version: String,
    licence: Option<String>,
    /// Runs inside the compiler; neither it nor what it uses is linked into the server.
    is_macro: bool,
    /// Ids of the packages that a build of this one links, without those only tests use.
    uses: Vec<String>,
}

struct Graph {
    packages: BTreeMap<String, Package>,
    members: BTreeSet<String>,
}

impl Graph {
    fn read(metadata: &Value) -> Result<Self, Failure> {
        let missing = |what| Failure::unexpected("cargo metadata", format!("no {what}"));
        let mut packages = BTreeMap::new();
        for package in metadata["packages"]
            .as_array()
            .ok_or_else(|| missing("packages"))?
        {
            let text = |key: &str| package[key].as_str().map(str::to_owned);
            let id = text("id").ok_or_else(|| missing("package id"))?;
            let found = Package {
                name: text("name").ok_or_else(|| missing("package name"))?,
                version: text("version").ok_or_else(|| missing("package version"))?,
                licence: text("license"),
                is_macro: is_macro(package),
                uses: Vec::new(),
            };
            packages.insert(id, found);
        }
        let nodes = metadata["resolve"]["nodes"].as_array();
        let mut resolved = BTreeSet::new();
        for node in nodes.ok_or_else(|| missing("resolve graph"))? {
            let id = node["id"].as_str().unwrap_or_default();
            resolved.insert(id.to_owned());
            let Some(package) = packages.get_mut(id) else {
                continue;
            };
            package.uses = linked(node);
        }
        packages.retain(|id, _| resolved.contains(id));
        let members = metadata["workspace_members"].as_array();
        let members = members.ok_or_else(|| missing("members"))?;
        let members = members
            .iter()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect();
        Ok(Graph { packages, members })
    }

    fn arrows_that_point_up(&self) -> Vec<String> {
        let mut findings = Vec::new();
        for id in &self.members {
            let package = &self.packages[id];
            let room = room(&package.name);
            if FREE.contains(&room) {
                continue;
            }
            let Some((_, allowed)) = ARROWS.iter().find(|(name, _)| *name == room) else {
                findings.push(format!("{room}: this room is not in the table of arrows"));
                continue;
            };
            for used in package
                .uses
                .iter()
                .filter(|used| self.members.contains(*used))
            {
                let used = self::room(&self.packages[used].name);
                if !allowed.contains(&used) {
                    findings.push(format!("{room} -> {used}: this arrow is not in the design"));
                }
            }
        }
        findings
    }

    fn refused_licences(&self) -> Vec<String> {
        let others = self
            .packages
            .iter()
            .filter(|(id, _)| !self.members.contains(*id));
        let refused = others.filter_map(|(_, package)| {
            let licence = package.licence.as_deref().unwrap_or("none stated");
            let Package { name, version, .. } = package;
            (!licence::is_allowed(licence))
                .then(|| format!("{name} {version}: licence {licence} is not on the list"))
        });
        refused.collect()
    }

    fn duplicate_versions(&self, allowed: &BTreeSet<String>) -> Vec<String> {
        let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for id in self.shipped() {
            let package = &self.packages[id];
            versions
                .entry(&package.name)
                .or_default()
                .insert(&package.version);
        }
        let twice = |name: &str| {
            versions
                .get(name)
                .is_some_and(|versions| versions.len() > 1)
        };
        let mut findings = Vec::new();
        for (name, versions) in versions.iter().filter(|(name, _)| twice(name)) {
            if !allowed.contains(*name) {
                let versions: Vec<&str> = versions.iter().copied().collect();
                let versions = versions.join(" and ");
                findings.push(format!(
                    "{name}: versions {versions} are linked into one server"
                ));
            }
        }
        for name in allowed.iter().filter(|name| !twice(name)) {
            findings.push(format!(
                "{name}: {DUPLICATES_FILE} lists it, but it is there once"
            ));
        }
        findings
    }

    /// Everything that ends up in the server.
    fn shipped(&self) -> BTreeSet<&str> {
        let ours = self.members.iter().map(String::as_str);
        let mut waiting: Vec<&str> = ours
            .filter(|id| !NOT_SHIPPED.contains(&room(&self.packages[*id].name)))
            .collect();
        let mut seen = BTreeSet::new();
        while let Some(id) = waiting.pop() {
            if let Some(package) = self.packages.get(id)
                && !package.is_macro
                && seen.insert(id)
            {
                waiting.extend(package.uses.iter().map(String::as_str));
            }
        }
        seen
    }
}

fn is_macro(package: &Value) -> bool {
    let targets = package["targets"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let kinds = targets
        .iter()
        .filter_map(|target| target["kind"].as_array())
        .flatten();
    kinds
        .filter_map(Value::as_str)
        .any(|kind| kind == "proc-macro")
}

/// The packages that a node of the resolve graph links: no tests, no build scripts.
fn linked(node: &Value) -> Vec<String> {
    let uses = node["deps"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let normal = uses.iter().filter(|used| {
        let kinds = used["dep_kinds"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        kinds.iter().any(|kind| kind["kind"].is_null())
    });
    normal
        .filter_map(|used| used["pkg"].as_str())
        .map(str::to_owned)
        .collect()
}

fn room(package: &str) -> &str {
    package.strip_prefix("windlass-").unwrap_or(package)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A workspace of `object` and `apply` plus two versions of one outside crate.
    fn graph(object_uses: &[&str], licence: &str) -> Graph {
        let package = |id: &str, name: &str, version: &str| {
            let mut value = json!({"id": id, "name": name, "version": version});
            value["license"] = json!(licence);
            value
        };
        let node = |id: &str, uses: &[&str]| {
            let deps: Vec<Value> = uses
                .iter()
                .map(|u| json!({"pkg": u, "dep_kinds": [{"kind": null}]}))
                .collect();
            json!({"id": id, "deps": deps})
        };
        let metadata = json!({
            "packages": [
                package("o", "windlass-object", "0.1.0"),
                package("a", "windlass-apply", "0.1.0"),
                package("d1", "dup", "1.0.0"),
                package("d2", "dup", "2.0.0"),
            ],
            "resolve": {"nodes": [
                node("o", object_uses), node("a", &["o", "d1", "d2"]),
                node("d1", &[]), node("d2", &[]),
            ]},
            "workspace_members": ["o", "a"],
        });
        Graph::read(&metadata).expect("well-formed")
    }

    #[test]
    fn an_arrow_up_is_found_and_an_arrow_down_is_not() {
        assert_eq!(
            graph(&[], "MIT").arrows_that_point_up(),
            Vec::<String>::new()
        );
        let found = graph(&["a"], "MIT").arrows_that_point_up();
        assert_eq!(found, ["object -> apply: this arrow is not in the design"]);
    }

    #[test]
    fn two_versions_fail_unless_listed_and_a_stale_listing_fails() {
        let graph = graph(&[], "MIT");
        let listed = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        assert_eq!(graph.duplicate_versions(&listed(&[])).len(), 1);
        assert_eq!(graph.duplicate_versions(&listed(&["dup"])).len(), 0);
        assert_eq!(graph.duplicate_versions(&listed(&["dup", "gone"])).len(), 1);
    }

    #[test]
    fn a_licence_outside_the_list_is_refused_for_every_outside_crate() {
        assert_eq!(graph(&[], "MIT OR Apache-2.0").refused_licences().len(), 0);
        assert_eq!(graph(&[], "AGPL-3.0-only").refused_licences().len(), 2);
    }
}
