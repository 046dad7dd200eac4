//! The scale subresource: a view on the replicas of a workload.

use std::sync::Arc;

use apply::{
    ManagedFields, OnConflict, OneVersion, ReplicasPath, SCALE_API_VERSION, Typing, Writer,
    from_scale, to_scale,
};
use kinds::{Catalogue, Kind};
use object::field::{FieldError, Path};
use object::labels::LabelSelector;
use object::{Map, Value, value};
use schema::decode::{Unknown, decode};

use crate::apply::{Configuration, apply_error, check_gvk};
use crate::body::{self, Body};
use crate::error::{Error, Subject};
use crate::meta::{meta, meta_mut, meta_text};
use crate::ownership::Owners;
use crate::patch::PatchType;
use crate::record::Stored;
use crate::write::{Attempt, Draft, Live, Written, WrittenObject, check_name, check_namespace};
use crate::{Request, Resources, subject};

/// The definition of the kind that scales are.
const SCALE: &str = "io.k8s.api.autoscaling.v1.Scale";

impl Resources {
    /// The scale of an object.
    pub async fn scale(&self, kind: &Arc<Kind>, namespace: &str, name: &str) -> Result<Map, Error> {
        let record = self.get(kind, namespace, name, None).await?;
        let live = self.take_apart(kind, record)?;
        Ok(scale_of(live.map()))
    }

    /// `PUT` of a scale.
    pub async fn update_scale(&self, request: &Request<'_>, body: &Body) -> Result<Written, Error> {
        let parsed = body::parse_plain(body, SCALE)?;
        check_gvk(&parsed, SCALE_API_VERSION, "Scale")?;
        let Value::Object(mut wanted) = parsed else {
            return Err(Error::BadRequest("the body is not a Scale".to_owned()));
        };
        check_name(request, &wanted)?;
        check_namespace(request, &mut wanted)?;
        loop {
            let live = self.scaled(request).await?;
            check_preconditions(request, &wanted, &live)?;
            let given = !matches!(meta_text(&wanted, "resourceVersion"), "" | "0");
            match self.scale_to(request, &live, wanted.clone()).await? {
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
        let patch = patch_type.read(&body.bytes)?;
        let typing = self.scale_typing();
        loop {
            let live = self.scaled(request).await?;
            let scale = Value::Object(scale_of(live.map()));
            let patched = patch.apply_plain(typing.types, typing.root, scale)?;
            let Value::Object(wanted) = patched else {
                return Err(Error::Unprocessable);
            };
            check_name(request, &wanted)?;
            check_preconditions(request, &wanted, &live)?;
            match self.scale_to(request, &live, wanted).await? {
                Attempt::Done(written) => return Ok(written),
                Attempt::Stale => {}
            }
        }
    }

    async fn apply_scale(&self, request: &Request<'_>, body: &Body) -> Result<Written, Error> {
        let configuration = Configuration::read(&body.bytes)?;
        check_gvk(&configuration.wanted, SCALE_API_VERSION, "Scale")?;
        loop {
            let live = self.scaled(request).await?;
            let scale = Value::Object(scale_of(live.map()));
            let on_conflict = if request.options.force {
                OnConflict::Force
            } else {
                OnConflict::Refuse
            };
            let versions = OneVersion::new(SCALE_API_VERSION, self.scale_typing());
            let before = to_scale(&live.owners.0, |version| {
                self.replicas_path(request, version)
            });
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
            configuration.check_twice(request)?;
            let wanted = match applied.object {
                Some(Value::Object(wanted)) => wanted,
                _ => scale_of(live.map()),
            };
            check_preconditions(request, &wanted, &live)?;
            let draft = self.draft(request, &live, &wanted, applied.managers)?;
            match self.finish_scale(request, &live, draft).await? {
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
        live: &Live,
        wanted: Map,
    ) -> Result<Attempt, Error> {
        let versions = OneVersion::new(SCALE_API_VERSION, self.scale_typing());
        let before = to_scale(&live.owners.0, |version| {
            self.replicas_path(request, version)
        });
        let old = Value::Object(scale_of(live.map()));
        let typing = self.scale_typing();
        // Zero replicas are printed as none at all, so nobody owns them afterwards.
        let (new, _) = decode(
            typing.types,
            typing.root,
            Value::Object(wanted),
            Unknown::Drop,
        )
        .map_err(|error| Error::BadRequest(error.to_string()))?;
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
        let draft = self.draft(request, live, &wanted, after)?;
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
        let replicas = match replicas {
            None | Some(Value::Null) => 0,
            Some(Value::Int(replicas)) => *replicas,
            Some(other) => {
                let found = body::json_type(other);
                return Err(Error::BadRequest(format!(
                    "json: cannot unmarshal {found} into Go struct field ScaleSpec.spec.replicas \
                     of type int32"
                )));
            }
        };
        if replicas < 0 {
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
        object
            .object_at("spec")
            .insert("replicas", Value::Int(replicas));
        let version = request.kind.api_version();
        let owners = from_scale(live.owners.0.clone(), &owners, &version, |version| {
            self.replicas_path(request, version)
        });
        Ok(Draft {
            object,
            owners: Owners(owners),
        })
    }

    async fn finish_scale(
        &self,
        request: &Request<'_>,
        live: &Live,
        draft: Draft,
    ) -> Result<Attempt, Error> {
        // The parent is written as a whole, by the rules of the parent.
        let parent = Request {
            subresource: "",
            ..*request
        };
        let written = match self.finish_update(&parent, live, draft).await? {
            Attempt::Done(written) => written,
            Attempt::Stale => return Ok(Attempt::Stale),
        };
        let WrittenObject::Stored { value, revision } = &written.object else {
            return Ok(Attempt::Done(written));
        };
        let tree = Stored::new(value).and_then(|stored| stored.tree(*revision));
        let tree = tree.map_err(|error| Error::Internal(error.to_string()))?;
        let object = WrittenObject::Virtual(scale_of(&self.served_tree(request.kind, tree)));
        Ok(Attempt::Done(Written { object, ..written }))
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

    /// Where a version of the parent keeps its replicas.
    fn replicas_path(&self, request: &Request<'_>, api_version: &str) -> ReplicasPath {
        let catalogue = self.catalogue();
        let mut forms = catalogue.forms(&request.kind.collection);
        let known = forms.any(|kind| kind.api_version() == api_version);
        if known {
            ReplicasPath::At(apply::Path::fields(["spec", "replicas"]))
        } else {
            ReplicasPath::NoVersion
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
    let conflict = || Error::modified(subject(request.kind, request.name));
    match meta_text(wanted, "resourceVersion") {
        "" | "0" => {}
        version if version != live.record.revision.to_string() => return Err(conflict()),
        _ => {}
    }
    let uid = meta_text(wanted, "uid");
    if !uid.is_empty() && uid != meta_text(live.map(), "uid") {
        return Err(conflict());
    }
    Ok(())
}

/// The Scale of a workload.
fn scale_of(parent: &Map) -> Map {
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
    let number = |path: [&str; 2]| {
        parent
            .get(path[0])
            .and_then(|part| part.get(path[1]))
            .and_then(Value::as_int)
            .unwrap_or(0)
    };
    let mut spec = Map::new();
    if number(["spec", "replicas"]) != 0 {
        spec.insert("replicas", Value::Int(number(["spec", "replicas"])));
    }
    scale.insert("spec", spec.into());
    let mut status = match value!({"replicas": (number(["status", "replicas"]))}) {
        Value::Object(status) => status,
        _ => Map::new(),
    };
    let selector = parent.get("spec").and_then(|spec| spec.get("selector"));
    let selector = selector.map(selector_text).unwrap_or_default();
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
