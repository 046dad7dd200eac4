//! Which operations a kind has, at which paths, under which names.
//!
//! Contract: apiserver `pkg/endpoints/installer.go` and its `openapi` package, from which client
//! generators take the names of their functions.

use kinds::{Kind, Subresource};

use super::parameters::{self, NAME, NAMESPACE, PATH, PRETTY, Parameter};

/// A path and what can be done there.
pub(super) struct PathItem {
    pub(super) path: String,
    /// The parameters of all its operations, which none of them repeats.
    pub(super) parameters: Vec<Parameter>,
    pub(super) operations: Vec<Operation>,
}

/// What can be done.
pub(super) struct Operation {
    pub(super) method: &'static str,
    pub(super) id: String,
    pub(super) tag: String,
    /// What it does in the words of `x-kubernetes-action`; empty for discovery.
    pub(super) action: &'static str,
    pub(super) target: Option<Target>,
    pub(super) parameters: Vec<Parameter>,
    pub(super) body: Body,
    pub(super) answer: Answer,
    /// The codes of success.
    pub(super) codes: &'static [u16],
    /// Whether it is about a custom kind, which knows fewer media types.
    pub(super) custom: bool,
}

/// A kind by its names.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Target {
    pub(super) group: String,
    pub(super) version: String,
    pub(super) kind: String,
}

/// What an operation takes.
pub(super) enum Body {
    Nothing,
    Object(Target),
    Patch,
    DeleteOptions,
}

/// What an operation gives.
pub(super) enum Answer {
    /// A text of these types.
    Text(&'static [&'static str]),
    Object(Target),
    /// Objects that can also be watched.
    List(Target),
    Status,
    WatchEvent,
    /// A definition of discovery.
    Definition(&'static str),
    ServerVersion,
}

const ANY_MEDIA: &[&str] = &["*/*"];
const LOG_MEDIA: &[&str] = &[
    "text/plain",
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
];

impl PathItem {
    /// Moves parameters that all operations have to the path.
    fn share_parameters(&mut self) {
        let Some((first, others)) = self.operations.split_first() else {
            return;
        };
        let mut shared = first.parameters.clone();
        shared.retain(|it| others.iter().all(|other| other.parameters.contains(it)));
        for operation in &mut self.operations {
            operation.parameters.retain(|it| !shared.contains(it));
        }
        self.parameters.append(&mut shared);
        self.parameters.sort_by_key(|it| (it.name, !it.in_path));
    }
}

/// The operations of one kind.
pub(super) fn of_kind(kind: &Kind) -> Vec<PathItem> {
    let builder = Builder::new(kind);
    let mut items = vec![builder.collection(), builder.object()];
    if kind.namespaced {
        items.push(builder.all_namespaces());
    }
    if !kind.is_custom() {
        items.extend(builder.watches());
    }
    for nested in &kind.subresources {
        items.push(builder.subresource(nested));
        if nested.name == "proxy" {
            items.push(builder.proxied_path(nested));
        }
    }
    items.retain(|item| !item.operations.is_empty());
    items.iter_mut().for_each(PathItem::share_parameters);
    items
}

/// `core`, `apps`, `rbacAuthorization`: what a group is called in names.
pub(super) fn group_word(group: &str) -> String {
    if group.is_empty() {
        return "core".to_owned();
    }
    let short = group.strip_suffix(".k8s.io").unwrap_or(group);
    let mut words = short.split('.');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |word, next| word + &capital(next))
}

/// The text with a capital first letter.
pub(super) fn capital(text: &str) -> String {
    let mut characters = text.chars();
    let first = characters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(characters).collect()
}

struct Builder<'k> {
    kind: &'k Kind,
    /// `/apis/GROUP/VERSION`.
    base: String,
    /// The path of its collection below that.
    collection: String,
    /// Group and version in names.
    place: String,
    tag: String,
}

impl Builder<'_> {
    fn new(kind: &Kind) -> Builder<'_> {
        let base = if kind.group.is_empty() {
            format!("/api/{}", kind.version)
        } else {
            format!("/apis/{}/{}", kind.group, kind.version)
        };
        let collection = if kind.namespaced {
            format!("/namespaces/{{namespace}}/{}", kind.resource)
        } else {
            format!("/{}", kind.resource)
        };
        let word = group_word(&kind.group);
        Builder {
            kind,
            base,
            collection,
            place: format!("{}{}", capital(&word), capital(&kind.version)),
            tag: format!("{word}_{}", kind.version),
        }
    }

    fn collection(&self) -> PathItem {
        let mut operations = Vec::new();
        if self.can("list") {
            operations.push(self.list(format!("list{}{}", self.place, self.scoped())));
        }
        if self.can("create") {
            operations.push(Operation {
                parameters: parameters::WRITE.to_vec(),
                body: Body::Object(self.target()),
                codes: &[200, 201, 202],
                ..self.operation("post", "create", "post")
            });
        }
        if self.can("deletecollection") {
            let id = format!("delete{}Collection{}", self.place, self.scoped());
            // Upstream describes less of the custom one than it takes.
            let (parameters, body) = if self.kind.is_custom() {
                (parameters::LIST, Body::Nothing)
            } else {
                (parameters::DELETE_COLLECTION, Body::DeleteOptions)
            };
            operations.push(Operation {
                id,
                parameters: parameters.to_vec(),
                body,
                answer: Answer::Status,
                ..self.operation("delete", "", "deletecollection")
            });
        }
        self.item(&self.collection, &[], operations)
    }

    fn all_namespaces(&self) -> PathItem {
        let mut operations = Vec::new();
        if self.can("list") {
            let id = format!("list{}{}ForAllNamespaces", self.place, self.kind.kind);
            operations.push(self.list(id));
        }
        PathItem {
            path: format!("{}/{}", self.base, self.kind.resource),
            parameters: vec![PRETTY],
            operations,
        }
    }

    fn object(&self) -> PathItem {
        let mut operations = self.reads_and_writes(&self.kind.verbs, "", &self.target());
        if self.can("delete") {
            // A deleted namespace is answered with, but described as if it were not.
            let is_namespace = self.kind.group.is_empty() && self.kind.kind == "Namespace";
            let answer = if self.kind.rules.returns_deleted && !is_namespace {
                Answer::Object(self.target())
            } else {
                Answer::Status
            };
            operations.push(Operation {
                parameters: parameters::DELETE.to_vec(),
                body: Body::DeleteOptions,
                answer,
                codes: &[200, 202],
                ..self.operation("delete", "delete", "delete")
            });
        }
        self.item(&self.object_path(), &[NAME], operations)
    }

    fn subresource(&self, nested: &Subresource) -> PathItem {
        let path = format!("{}/{}", self.object_path(), nested.name);
        let word = capital(&nested.name);
        if is_connection(nested) {
            return self.plain_item(&path, &[NAME], self.connections(nested, &word));
        }
        let target = self.nested_target(nested);
        let mut operations = self.reads_and_writes(&nested.verbs, &word, &target);
        if nested.name == "log" {
            for operation in &mut operations {
                operation.parameters = parameters::LOG.to_vec();
                operation.answer = Answer::Text(LOG_MEDIA);
            }
        }
        if nested.verbs.iter().any(|verb| verb == "create") {
            operations.push(Operation {
                id: format!("create{}{}{word}", self.place, self.scoped()),
                target: Some(target.clone()),
                parameters: parameters::WRITE.to_vec(),
                body: Body::Object(target.clone()),
                answer: Answer::Object(target),
                codes: &[200, 201, 202],
                ..self.operation("post", "", "post")
            });
        }
        self.item(&path, &[NAME], operations)
    }

    /// What a proxied service has below its own path.
    fn proxied_path(&self, nested: &Subresource) -> PathItem {
        let path = format!("{}/{}/{{path}}", self.object_path(), nested.name);
        let word = format!("{}WithPath", capital(&nested.name));
        self.plain_item(&path, &[NAME, PATH], self.connections(nested, &word))
    }

    fn connections(&self, nested: &Subresource, word: &str) -> Vec<Operation> {
        let methods = nested.verbs.iter().filter_map(|verb| match verb.as_str() {
            "create" => Some("post"),
            "delete" => Some("delete"),
            "get" => Some("get"),
            "patch" => Some("patch"),
            "update" => Some("put"),
            _ => None,
        });
        let unlisted: &[&str] = match nested.name.as_str() {
            "proxy" => &["head", "options"],
            _ => &[],
        };
        let connection = |method: &'static str| Operation {
            id: format!(
                "connect{}{}{}{word}",
                self.place,
                capital(method),
                self.scoped()
            ),
            target: Some(self.nested_target(nested)),
            parameters: parameters::of_connection(&nested.kind).to_vec(),
            answer: Answer::Text(ANY_MEDIA),
            ..self.operation(method, "", "connect")
        };
        methods
            .chain(unlisted.iter().copied())
            .map(connection)
            .collect()
    }

    /// The deprecated paths that watch.
    fn watches(&self) -> Vec<PathItem> {
        if !self.can("watch") {
            return Vec::new();
        }
        let watch = |id: String, action| {
            vec![Operation {
                id,
                parameters: parameters::LIST.to_vec(),
                answer: Answer::WatchEvent,
                ..self.operation("get", "", action)
            }]
        };
        let (place, scoped) = (&self.place, self.scoped());
        let one = watch(format!("watch{place}{scoped}"), "watch");
        let list = watch(format!("watch{place}{scoped}List"), "watchlist");
        let mut items = vec![
            self.item(&format!("/watch{}", self.collection), &[], list),
            self.item(&format!("/watch{}", self.object_path()), &[NAME], one),
        ];
        if self.kind.namespaced {
            let id = format!("watch{place}{}ListForAllNamespaces", self.kind.kind);
            items.push(PathItem {
                path: format!("{}/watch/{}", self.base, self.kind.resource),
                parameters: vec![PRETTY],
                operations: watch(id, "watchlist"),
            });
        }
        items
    }

    fn reads_and_writes(
        &self,
        verbs: &[object::Text],
        word: &str,
        target: &Target,
    ) -> Vec<Operation> {
        let operation = |method, verb: &str, action| Operation {
            id: format!("{verb}{}{}{word}", self.place, self.scoped()),
            target: Some(target.clone()),
            answer: Answer::Object(target.clone()),
            ..self.operation(method, "", action)
        };
        let can = |verb: &str| verbs.iter().any(|known| known == verb);
        let mut operations = Vec::new();
        if can("get") {
            let parameters = match self.kind.is_custom() {
                true => parameters::READ.to_vec(),
                false => Vec::new(),
            };
            operations.push(Operation {
                parameters,
                ..operation("get", "read", "get")
            });
        }
        if can("update") {
            operations.push(Operation {
                parameters: parameters::WRITE.to_vec(),
                body: Body::Object(target.clone()),
                codes: &[200, 201],
                ..operation("put", "replace", "put")
            });
        }
        if can("patch") {
            operations.push(Operation {
                parameters: parameters::PATCH.to_vec(),
                body: Body::Patch,
                codes: if self.kind.is_custom() {
                    &[200]
                } else {
                    &[200, 201]
                },
                ..operation("patch", "patch", "patch")
            });
        }
        operations
    }

    fn list(&self, id: String) -> Operation {
        let list = Target {
            kind: self.kind.list_kind.to_string(),
            ..self.target()
        };
        Operation {
            id,
            parameters: parameters::LIST.to_vec(),
            answer: Answer::List(list),
            ..self.operation("get", "", "list")
        }
    }

    /// An operation on the kind itself that takes nothing and gives an object.
    fn operation(&self, method: &'static str, verb: &str, action: &'static str) -> Operation {
        Operation {
            method,
            id: format!("{verb}{}{}", self.place, self.scoped()),
            tag: self.tag.clone(),
            action,
            target: Some(self.target()),
            parameters: Vec::new(),
            body: Body::Nothing,
            answer: Answer::Object(self.target()),
            codes: &[200],
            custom: self.kind.is_custom(),
        }
    }

    /// A path of objects, which can be printed nicely.
    fn item(&self, path: &str, own: &[Parameter], operations: Vec<Operation>) -> PathItem {
        let mut item = self.plain_item(path, own, operations);
        item.parameters.push(PRETTY);
        item
    }

    fn plain_item(&self, path: &str, own: &[Parameter], operations: Vec<Operation>) -> PathItem {
        let mut parameters = own.to_vec();
        if self.kind.namespaced {
            parameters.push(NAMESPACE);
        }
        PathItem {
            path: format!("{}{path}", self.base),
            parameters,
            operations,
        }
    }

    fn object_path(&self) -> String {
        format!("{}/{{name}}", self.collection)
    }

    /// The kind in names, with its scope.
    fn scoped(&self) -> String {
        let scope = if self.kind.namespaced {
            "Namespaced"
        } else {
            ""
        };
        format!("{scope}{}", self.kind.kind)
    }

    fn can(&self, verb: &str) -> bool {
        self.kind.verbs.iter().any(|known| known == verb)
    }

    fn target(&self) -> Target {
        Target {
            group: self.kind.group.to_string(),
            version: self.kind.version.to_string(),
            kind: self.kind.kind.to_string(),
        }
    }

    fn nested_target(&self, nested: &Subresource) -> Target {
        let (group, version) = if nested.version.is_empty() {
            (&self.kind.group, &self.kind.version)
        } else {
            (&nested.group, &nested.version)
        };
        Target {
            group: group.to_string(),
            version: version.to_string(),
            kind: nested.kind.to_string(),
        }
    }
}

/// Whether a subresource is a connection rather than an object; its kind then holds the options.
fn is_connection(nested: &Subresource) -> bool {
    nested.kind.ends_with("Options")
}
