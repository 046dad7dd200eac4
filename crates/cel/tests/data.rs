//! Expressions over data with a shape, and over what callers hand in.

use cel::{
    Authorize, Authorizer, Bindings, Budget, Decision, Environment, Error, Lazy, ListKind, Map,
    Property, Question, ResourceCheck, ResourceSubject, Shape, Subject, Type, Value,
};
use object::value;
use std::sync::Arc;

fn property(name: &str, shape: Shape) -> Property {
    Property {
        name: name.to_owned(),
        shape: Arc::new(shape),
        required: false,
    }
}

fn text() -> Shape {
    Shape::string("", None, None)
}

fn shape() -> Arc<Shape> {
    let item = Shape::object(vec![property("name", text()), property("n", Shape::int())]);
    Shape::object(vec![
        property("s", text()),
        property("a-b", Shape::int()),
        property("namespace", text()),
        property("gone", text().nullable(true)),
        property("either", Shape::int_or_string(None)),
        property("at", Shape::string("date-time", None, None)),
        property("day", Shape::string("date", None, None)),
        property("wait", Shape::string("duration", None, None)),
        property("raw", Shape::string("byte", None, None)),
        property("ratio", Shape::double()),
        property("set", Shape::list(Arc::new(text()), ListKind::Set, None)),
        property(
            "items",
            Shape::list(
                Arc::new(item),
                ListKind::Map(vec!["name".to_owned()].into()),
                None,
            ),
        ),
        property("labels", Shape::map(Arc::new(text()), None)),
        property("hidden", Shape::hidden()),
    ])
    .shared("selfType")
}

fn evaluated(text: &str) -> String {
    let shape = shape();
    let data = value!({
        "s": "hello", "a-b": 7, "namespace": "ns", "gone": null, "either": "50%",
        "at": "2020-05-06T07:08:09Z", "day": "2020-02-29", "wait": "90m", "raw": "aGVsbG8=",
        "ratio": 2, "set": ["a", "b"], "items": [{"name": "one", "n": 1}, {"name": "two"}],
        "labels": {"app": "x", "a/b": "y"}, "hidden": {"x": 1}, "unknown": true
    });
    let environment = Environment::new().with_data("self", &shape);
    let program = match environment.compile(text) {
        Ok(program) => program,
        Err(issues) => return issues.iter().next().expect("an issue").message.clone(),
    };
    let bindings = Bindings::new().bind("self", Value::from_data(&data, &shape).expect("data"));
    match program.evaluate(&bindings, &mut Budget::unlimited()) {
        Ok(value) => crate::shown(&value),
        Err(error) => format!("error: {error}"),
    }
}

#[test]
fn formats_of_the_schema_become_types() {
    let cases = [
        ("self.at.getFullYear()", "2020"),
        ("self.day.getDate()", "29"),
        ("self.wait.getMinutes()", "90"),
        ("string(self.raw)", "'hello'"),
        ("self.ratio / 4.0", "0.5"),
        ("type(self.either) == string", "true"),
        ("self.either == '50%'", "true"),
        ("self.either == 50", "false"),
    ];
    for (text, expected) in cases {
        assert_eq!(evaluated(text), expected, "{text}");
    }
}

#[test]
fn names_are_escaped_and_what_the_schema_does_not_say_is_hidden() {
    let cases = [
        ("self.a__dash__b", "7"),
        ("self.__namespace__", "'ns'"),
        ("has(self.gone)", "false"),
        ("self.gone", "error: no such key: gone"),
        ("has(self.hidden)", "undefined field 'hidden'"),
        ("self.unknown", "undefined field 'unknown'"),
        ("self.labels['a/b']", "'y'"),
        ("has(self.labels.nothing)", "false"),
        ("self.labels.map(k, k)", r#"["a/b","app"]"#),
        (
            "self.items.filter(x, has(x.n)).map(x, x.name)",
            r#"["one"]"#,
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(evaluated(text), expected, "{text}");
    }
}

#[test]
fn lists_compare_and_join_by_their_type() {
    let cases = [
        ("self.set == ['b', 'a']", "true"),
        ("self.set + ['b', 'c']", r#"["a","b","c"]"#),
        ("(self.set + ['c']) == ['c', 'b', 'a']", "true"),
        ("(self.items + self.items).size()", "2"),
        ("self.items == self.items", "true"),
        ("self == self", "true"),
    ];
    for (text, expected) in cases {
        assert_eq!(evaluated(text), expected, "{text}");
    }
}

#[test]
fn data_without_a_schema_is_typed_when_it_is_read() {
    let data = value!({"spec": {"replicas": 3, "ratio": 0.5, "list": [1, "a", null]}});
    let environment = Environment::new().with_variable("object", Type::Dyn);
    let cases = [
        ("object.spec.replicas > 2", "true"),
        ("object.spec.ratio == 0.5", "true"),
        ("object.spec.list[2] == null", "true"),
        ("has(object.metadata)", "false"),
        ("object.?metadata.?name.orValue('none')", "'none'"),
        ("object.spec.nothing", "error: no such key: nothing"),
        ("object == object", "true"),
    ];
    for (text, expected) in cases {
        let program = environment.compile(text).expect("an expression");
        let bindings = Bindings::new().bind("object", Value::from_json(&data));
        let found = match program.evaluate(&bindings, &mut Budget::unlimited()) {
            Ok(value) => crate::shown(&value),
            Err(error) => format!("error: {error}"),
        };
        assert_eq!(found, expected, "{text}");
    }
}

#[derive(Debug)]
struct Variables;

impl Lazy for Variables {
    fn field(&self, name: &str) -> Option<Result<Value<'_>, Error>> {
        match name {
            "good" => Some(Ok(Value::Int(1))),
            "bad" => Some(Err(Error::Evaluation("division by zero".to_owned()))),
            _ => None,
        }
    }
}

#[test]
fn lazy_fields_are_asked_for_when_they_are_read() {
    let fields = vec![
        ("good".to_owned(), Type::Int),
        ("bad".to_owned(), Type::Int),
    ];
    let environment = Environment::new().with_fields("variables", fields);
    let run = |text: &str| {
        let program = environment.compile(text).expect("an expression");
        let bindings = Bindings::new().bind_lazy("variables", &Variables);
        program
            .evaluate(&bindings, &mut Budget::unlimited())
            .map(|value| crate::shown(&value))
            .map_err(|error| error.to_string())
    };
    assert_eq!(run("variables.good + 1"), Ok("2".to_owned()));
    assert_eq!(run("variables.bad + 1"), Err("division by zero".to_owned()));
    assert_eq!(
        run("variables.good == 1 || variables.bad == 1"),
        Ok("true".to_owned())
    );
    assert!(environment.compile("variables.other").is_err());
}

struct OnlyGet;

impl Authorize for OnlyGet {
    fn authorize(&self, question: &Question) -> Decision {
        let is_pods = match &question.subject {
            Subject::Path(path) => path == "/healthz",
            Subject::Resource(subject) => subject.resource == "pods",
        };
        Decision {
            is_allowed: is_pods && question.verb == "get" && question.service_account.is_none(),
            reason: format!("{} asked", question.verb),
            error: None,
        }
    }
}

#[test]
fn the_authorizer_is_asked_with_what_the_expression_names() {
    let environment = Environment::new()
        .with_variable("authorizer", Type::authorizer())
        .with_variable("authorizer.requestResource", Type::resource_check());
    let authorizer = Authorizer::new(&OnlyGet);
    let subject = ResourceSubject {
        resource: "pods".to_owned(),
        ..ResourceSubject::default()
    };
    let cases = [
        ("authorizer.path('/healthz').check('get').allowed()", "true"),
        (
            "authorizer.group('').resource('pods').namespace('a').check('get').allowed()",
            "true",
        ),
        (
            "authorizer.group('').resource('pods').check('list').allowed()",
            "false",
        ),
        (
            "authorizer.group('').resource('pods').check('list').reason()",
            "'list asked'",
        ),
        (
            "authorizer.serviceAccount('a', 'b').group('').resource('pods').check('get').allowed()",
            "false",
        ),
        ("authorizer.requestResource.check('get').allowed()", "true"),
        (
            "authorizer.path(' ').check('get').allowed()",
            "error: path must not be empty",
        ),
        (
            "authorizer.serviceAccount('A', 'b').path('/').check('get').errored()",
            "error: Invalid service account namespace",
        ),
    ];
    for (text, expected) in cases {
        let program = environment.compile(text).expect("an expression");
        let check = ResourceCheck::new(authorizer.clone(), subject.clone());
        let bindings = Bindings::new()
            .bind_authorizer("authorizer", authorizer.clone())
            .bind_resource_check("authorizer.requestResource", check);
        let found = match program.evaluate(&bindings, &mut Budget::unlimited()) {
            Ok(value) => crate::shown(&value),
            Err(error) => format!("error: {error}"),
        };
        assert_eq!(found, expected, "{text}");
    }
}

#[test]
fn mutating_policies_make_objects_and_patches() {
    let environment = Environment::new()
        .with_variable("object", Type::Dyn)
        .for_mutation();
    let data = value!({"metadata": {"name": "one"}});
    let cases = [
        (
            "Object{spec: Object.spec{replicas: 3, ?paused: optional.none()}}",
            r#"{"spec":{"replicas":3}}"#,
        ),
        (
            "[JSONPatch{op: 'add', path: '/a/' + jsonpatch.escapeKey('b/c~'), value: 1}]",
            r#"[{"op":"add","path":"/a/b~1c~0","value":1}]"#,
        ),
        (
            "Object{metadata: Object.metadata{labels: {'x': object.metadata.name}}}",
            r#"{"metadata":{"labels":{"x":"one"}}}"#,
        ),
    ];
    for (text, expected) in cases {
        let program = environment.compile(text).expect("an expression");
        let bindings = Bindings::new().bind("object", Value::from_json(&data));
        let value = program
            .evaluate(&bindings, &mut Budget::unlimited())
            .expect("a value");
        assert_eq!(crate::shown(&value), expected, "{text}");
    }
    let object = environment.compile("Object{}").expect("an expression");
    assert_eq!(*object.output_type(), Type::object("Object"));
    let value = object
        .evaluate(&Bindings::new(), &mut Budget::unlimited())
        .expect("an object");
    assert!(matches!(value, Value::Map(Map::Made(made)) if &*made.name == "Object"));
    assert!(environment.compile("JSONPatch{op: 1}").is_err());
    let unknown = environment.compile("JSONPatch{foo: 'x'}").unwrap_err();
    let told = "expected type of field 'foo' is '' but provided type is 'string'";
    assert!(unknown.to_string().contains(told), "{unknown}");
}
