//! The scale subresource: a view on the replicas of a workload.

use std::sync::Arc;

use apply::{
    ManagedFields, OnConflict, OneVersion, ReplicasPath, SCALE_API_VERSION, Typing, Writer,
    from_scale, to_scale,
};
use kinds::custom::ScalePaths;
use kinds::{Catalogue, Kind};
use object::field::{FieldError, Path};
use object::labels::LabelSelector;
use object::{Map, Text, Value};
use schema::decode::{Blank, Unknown, decode, normalize};

use crate::apply::{Configuration, apply_error, check_gvk, check_twice};
use crate::body::{self, Body};
use crate::error::{Error, Subject};
use crate::meta::{meta, meta_mut, meta_text};
use crate::ownership::Owners;
use crate::patch::PatchType;
use crate::record::Stored;
use crate::write::{Attempt, Draft, Live, Seen, Written, WrittenObject, check_place, check_uid};
use crate::{Request, Resources, subject};

/// The definition of the kind that scales are.
const SCALE: &str = "io.k8s.api.autoscaling.v1.Scale";
/// The answer to a body that is no scale of a custom resource.
const NO_SCALE: &str = "no kind is registered for the type v1.Scale in scheme \
    \"k8s.io/apiextensions-apiserver/pkg/apiserver/customresource_handler.go:781\"";

impl Resources {
    /// The scale of an object.
    pub async fn scale(&self, kind: &Arc<Kind>, namespace: &str, name: &str) -> Result<Map, Error> {
        let record = self.get(kind, namespace, name, None).await?;
        let live = self.take_apart(kind, record)?;
        if let Some(paths) = paths(kind)
            && value_at(live.map(), &paths.spec_replicas).is_none()
        {
            // Upstream answers 500, but it is the object that has no replicas.
            return Err(Error::BadRequest(format!(
                "Internal error occurred: the spec replicas field \"{}\" does not exist",
                dotted(&paths.spec_replicas)
            )));
        }
        Ok(scale_of(kind, live.map()))
    }

    /// `PUT` of a scale.
    pub async fn update_scale(&self, request: &Request<'_>, body: &Body) -> Result<Written, Error> {
        let kind = self.scale_kind(request.kind)?;
        let sent = Request {
            kind: &kind,
            ..*request
        };
        let mut wanted = match body::read(&self.catalogue(), &sent, body) {
            Ok(parsed) => parsed.wanted.object,
            // What upstream says of custom resources, whatever is wrong.
            Err(Error::BadRequest(text))
                if request.kind.is_custom() && text.contains("cannot be handled as a Scale") =>
            {
                return Err(Error::BadRequest(NO_SCALE.to_owned()));
            }
            Err(error) => return Err(error),
        };
        check_place(request, &mut wanted)?;
        loop {
            let live = self.scaled(request).await?;
            check_preconditions(request, &wanted, &live)?;
            let given = !matches!(meta_text(&wanted, "resourceVersion"), "" | "0");
            match self.scale_to(request, live, wanted.clone()).await? {
                Attempt::Done(written) => return Ok(written),
                Attempt::Stale if given => {
                    return Err(Error::modified(subject(request.kind, request.name)));
                }
                Attempt::Stale => {}
            }
        }
    }

    /// `PATCH` of a scale, of any type.
    pub async fn patch_scale(
        &self,
        request: &Request<'_>,
        patch_type: PatchType,
        body: &Body,
    ) -> Result<Written, Error> {
        if patch_type == PatchType::Apply {
            return self.apply_scale(request, body).await;
        }
        let mut patch = self.read_patch(request, patch_type, body).await?;
        if request.kind.is_custom() {
            patch = patch.filling_version();
        }
        let kind = self.scale_kind(request.kind)?;
        let seen = Request {
            kind: &kind,
            ..*request
        };
        loop {
            let live = self.scaled(request).await?;
            let scale = Live {
                object: Value::Object(scale_of(request.kind, live.map())),
                owners: Owners::default(),
                record: live.record.clone(),
            };
            let mut wanted = patch.apply(&self.catalogue(), &seen, &scale)?.wanted.object;
            check_place(request, &mut wanted)?;
            check_preconditions(request, &wanted, &live)?;
            match self.scale_to(request, live, wanted).await? {
                Attempt::Done(written) => return Ok(written),
                Attempt::Stale => {}
            }
        }
    }

    async fn apply_scale(&self, request: &Request<'_>, body: &Body) -> Result<Written, Error> {
        let configuration = Configuration::read(&body.bytes).and_then(|configuration| {
            check_gvk(&configuration.wanted, SCALE_API_VERSION, "Scale")?;
            configuration.check_owners()?;
            Ok(configuration)
        });
        let configuration = self.before_mistakes(request, configuration).await?;
        loop {
            let live = self.scaled(request).await?;
            let scale = Value::Object(scale_of(request.kind, live.map()));
            let on_conflict = if request.options.force {
                OnConflict::Force
            } else {
                OnConflict::Refuse
            };
            let versions = OneVersion::new(SCALE_API_VERSION, self.scale_typing());
            let before = self.scale_owners(request, &live);
            let applied = apply::apply(
                Some(&scale),
                configuration.wanted.clone(),
                before,
                writer(request),
                self.now(),
                on_conflict,
                &versions,
            );
            let applied = applied.map_err(|error| apply_error(request, Some(&live), error))?;
            check_twice(request, &configuration.twice)?;
            let mut wanted = match applied.object {
                Some(Value::Object(wanted)) => wanted,
                _ => scale_of(request.kind, live.map()),
            };
            check_place(request, &mut wanted)?;
            check_preconditions(request, &wanted, &live)?;
            let owners = &applied.managers;
            let wanted = self.admit_scale(request, &live, wanted, owners).await?;
            let draft = self.draft(request, &live, &wanted, applied.managers)?;
            match self.finish_scale(request, live, draft).await? {
                Attempt::Done(written) => return Ok(written),
                Attempt::Stale => {}
            }
        }
    }

    async fn scaled(&self, request: &Request<'_>) -> Result<Live, Error> {
        let live = self.live(request).await?;
        live.ok_or_else(|| Error::NotFound(subject(request.kind, request.name)))
    }

    /// Sets the replicas of `live` to those of the scale `wanted`.
    async fn scale_to(
        &self,
        request: &Request<'_>,
        live: Live,
        wanted: Map,
    ) -> Result<Attempt, Error> {
        let versions = OneVersion::new(SCALE_API_VERSION, self.scale_typing());
        let before = self.scale_owners(request, &live);
        let old = Value::Object(scale_of(request.kind, live.map()));
        let typing = self.scale_typing();
        // Zero replicas are printed as none at all, so nobody owns them afterwards.
        let (mut new, _) = decode(
            typing.types,
            typing.root,
            Value::Object(wanted),
            Unknown::Drop,
        )
        .map_err(|error| Error::BadRequest(error.to_string()))?;
        normalize(typing.types, typing.root, &mut new, Blank::AsShown);
        let after = apply::update(
            Some(&old),
            &new,
            before,
            writer(request),
            self.now(),
            &versions,
        );
        let Value::Object(wanted) = new else {
            unreachable!("a Scale is a map")
        };
        let wanted = self.admit_scale(request, &live, wanted, &after).await?;
        let draft = self.draft(request, &live, &wanted, after)?;
        self.finish_scale(request, live, draft).await
    }

    /// The parent with the replicas and owners of its scale.
    fn draft(
        &self,
        request: &Request<'_>,
        live: &Live,
        scale: &Map,
        owners: ManagedFields,
    ) -> Result<Draft, Error> {
        let replicas = scale.get("spec").and_then(|spec| spec.get("replicas"));
        let custom = paths(request.kind);
        let replicas = match replicas {
            None | Some(Value::Null) => {
                check_replicas_exist(custom, live.map())?;
                0
            }
            Some(Value::Int(replicas)) => *replicas,
            Some(other) => {
                let found = body::json_type(other);
                return Err(Error::BadRequest(format!(
                    "json: cannot unmarshal {found} into Go struct field ScaleSpec.spec.replicas \
                     of type int32"
                )));
            }
        };
        // Custom resources are judged as a whole, by their own rules.
        if replicas < 0 && custom.is_none() {
            let root = Path::root();
            let spec = root.field("spec");
            let detail = "must be greater than or equal to 0";
            let value = Value::Int(replicas);
            let error = FieldError::invalid(&spec.field("replicas"), &value, detail);
            let subject = Subject {
                group: "autoscaling".into(),
                resource: "Scale".into(),
                name: request.name.into(),
            };
            return Err(Error::Invalid {
                subject,
                errors: vec![error],
            });
        }
        let mut object = live.map().clone();
        match custom {
            Some(paths) => set_at(&mut object, &paths.spec_replicas, Value::Int(replicas)),
            None => {
                let spec = object.object_at("spec");
                spec.insert("replicas", Value::Int(replicas));
            }
        }
        let version = request.kind.api_version();
        let owners = from_scale(live.owners.0.clone(), &owners, &version, |version| {
            self.replicas_path(request, version)
        });
        Ok(Draft::by_server(object, Owners(owners)))
    }

    async fn finish_scale(
        &self,
        request: &Request<'_>,
        live: Live,
        mut draft: Draft,
    ) -> Result<Attempt, Error> {
        // The parent is written as a whole, by the rules of the parent.
        let parent = Request {
            subresource: "",
            ..*request
        };
        self.admission
            .mutate(self, &parent, &mut draft.object, Some(live.map()))
            .await?;
        let finished = self.finish_admitted(&parent, live, draft, Seen::Scale(request));
        let written = match finished.await? {
            Attempt::Done(written) => written,
            Attempt::Stale => return Ok(Attempt::Stale),
        };
        let WrittenObject::Stored { value, revision } = &written.object else {
            return Ok(Attempt::Done(written));
        };
        let tree = Stored::new(value).and_then(|stored| stored.tree(*revision));
        let tree = tree.map_err(|error| Error::Internal(error.to_string()))?;
        let object = WrittenObject::Virtual(scale_of(
            request.kind,
            &self.served_tree(request.kind, tree),
        ));
        Ok(Attempt::Done(Written { object, ..written }))
    }

    /// Lets policies and webhooks change a scale that is wanted; they see who owns it.
    async fn admit_scale(
        &self,
        request: &Request<'_>,
        live: &Live,
        mut wanted: Map,
        owners: &ManagedFields,
    ) -> Result<Map, Error> {
        if self.hooks_in_force().await?.is_none() {
            return Ok(wanted);
        }
        let kind = self.scale_kind(request.kind)?;
        let mut old = scale_of(request.kind, live.map());
        Owners(self.scale_owners(request, live)).show_in(&mut old);
        Owners(owners.clone()).show_in(&mut wanted);
        self.admit_view(request, &kind, wanted, old).await
    }

    /// Lets policies and webhooks look at the scale of a draft.
    pub(crate) async fn check_scale(
        &self,
        request: &Request<'_>,
        draft: &Draft,
        live: &Live,
    ) -> Result<(), Error> {
        let kind = self.scale_kind(request.kind)?;
        let (new, old) = (
            scale_of(request.kind, &draft.object),
            scale_of(request.kind, live.map()),
        );
        self.check_view(request, &kind, new, old).await
    }

    fn scale_kind(&self, parent: &Arc<Kind>) -> Result<Arc<Kind>, Error> {
        self.sent_kind(parent, ("autoscaling", "v1", "Scale"), SCALE)
    }

    fn scale_typing(&self) -> Typing<'static> {
        let root = Catalogue::builtin()
            .definition(SCALE)
            .expect("scales are built in");
        Typing {
            types: Catalogue::builtin().types(),
            root,
        }
    }

    /// Who owns the replicas of an object, as its scale tells it.
    fn scale_owners(&self, request: &Request<'_>, live: &Live) -> ManagedFields {
        to_scale(&live.owners.0, |version| {
            self.replicas_path(request, version)
        })
    }

    /// Where a version of the parent keeps its replicas.
    fn replicas_path(&self, request: &Request<'_>, api_version: &str) -> ReplicasPath {
        let catalogue = self.catalogue();
        let mut forms = catalogue.forms(&request.kind.collection);
        let Some(kind) = forms.find(|kind| kind.api_version() == api_version) else {
            return ReplicasPath::NoVersion;
        };
        match (kind.is_custom(), paths(kind)) {
            (false, _) => ReplicasPath::At(apply::Path::fields(["spec", "replicas"])),
            (true, Some(paths)) => {
                let steps = paths.spec_replicas.iter().map(|step| step.as_str());
                ReplicasPath::At(apply::Path::fields(steps))
            }
            (true, None) => ReplicasPath::NoScale,
        }
    }
}

fn writer<'a>(request: &'a Request<'_>) -> Writer<'a> {
    Writer {
        name: &request.options.manager,
        api_version: SCALE_API_VERSION,
        subresource: request.subresource,
    }
}

fn check_preconditions(request: &Request<'_>, wanted: &Map, live: &Live) -> Result<(), Error> {
    match meta_text(wanted, "resourceVersion") {
        "" | "0" => {}
        version if version != live.record.revision.to_string() => {
            return Err(Error::modified(subject(request.kind, request.name)));
        }
        _ => {}
    }
    check_uid(request, wanted, live)
}

/// Where a custom kind keeps what its scale shows.
fn paths(kind: &Kind) -> Option<&ScalePaths> {
    kind.custom.as_ref()?.scale.as_ref()
}

fn dotted(path: &[Text]) -> String {
    path.iter().map(|step| format!(".{step}")).collect()
}

fn value_at<'a>(object: &'a Map, path: &[Text]) -> Option<&'a Value> {
    let (first, rest) = path.split_first()?;
    let mut value = object.get(first)?;
    for step in rest {
        value = value.get(step)?;
    }
    Some(value)
}

fn set_at(object: &mut Map, path: &[Text], value: Value) {
    match path {
        [] => {}
        [last] => {
            object.insert(last.as_str(), value);
        }
        [first, rest @ ..] => set_at(object.object_at(first), rest, value),
    }
}

/// A scale without replicas means none, unless the object never had any.
fn check_replicas_exist(paths: Option<&ScalePaths>, live: &Map) -> Result<(), Error> {
    match paths {
        Some(paths) if value_at(live, &paths.spec_replicas).is_none() => {
            Err(Error::BadRequest(format!(
                "the spec replicas field \"{}\" cannot be empty",
                dotted(&paths.spec_replicas)
            )))
        }
        _ => Ok(()),
    }
}

/// The numbers that a scale shows: replicas wanted, replicas there, and their selector.
fn numbers(kind: &Kind, parent: &Map) -> (i64, i64, String) {
    let number = |value: Option<&Value>| value.and_then(Value::as_int).unwrap_or(0);
    if let Some(paths) = paths(kind) {
        let selector = paths.label_selector.as_ref();
        let selector = selector.and_then(|path| value_at(parent, path));
        return (
            number(value_at(parent, &paths.spec_replicas)),
            number(value_at(parent, &paths.status_replicas)),
            selector
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned(),
        );
    }
    let (spec, status) = (parent.get("spec"), parent.get("status"));
    let selector = spec.and_then(|spec| spec.get("selector"));
    (
        number(spec.and_then(|spec| spec.get("replicas"))),
        number(status.and_then(|status| status.get("replicas"))),
        selector.map(selector_text).unwrap_or_default(),
    )
}

/// The Scale of a workload.
fn scale_of(kind: &Kind, parent: &Map) -> Map {
    let mut scale = Map::with_capacity(5);
    scale.insert("kind", "Scale".into());
    scale.insert("apiVersion", SCALE_API_VERSION.into());
    let metadata = meta_mut(&mut scale);
    for field in [
        "name",
        "namespace",
        "uid",
        "resourceVersion",
        "creationTimestamp",
    ] {
        if let Some(value) = meta(parent).get(field) {
            metadata.insert(field, value.clone());
        }
    }
    let (wanted, there, selector) = numbers(kind, parent);
    let mut spec = Map::new();
    if wanted != 0 {
        spec.insert("replicas", Value::Int(wanted));
    }
    scale.insert("spec", spec.into());
    let mut status = Map::new();
    status.insert("replicas", Value::Int(there));
    if !selector.is_empty() {
        status.insert("selector", selector.into());
    }
    scale.insert("status", status.into());
    scale
}

/// A selector as text: a LabelSelector, or the plain labels of older kinds.
fn selector_text(selector: &Value) -> String {
    let structured = selector
        .get("matchLabels")
        .is_some_and(|labels| labels.as_object().is_some())
        || selector.get("matchExpressions").is_some();
    if structured {
        return LabelSelector::from_label_selector_value(selector)
            .map(|selector| selector.to_string())
            .unwrap_or_default();
    }
    let labels = selector.as_object().into_iter().flat_map(Map::iter);
    let pairs: Vec<String> = labels
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    pairs.join(",")
}
