//! Expressions over the claims of a token, and over the user that they became.
//!
//! Contract: `apiserver/pkg/authentication/cel`.

use std::fmt;
use std::sync::{Arc, LazyLock};

use cel::{Bindings, Budget, CALL_COST_MAX, Environment, ListKind, Program, Property, Shape, Type};
use object::{Text, Value};

use crate::user::User;

/// Expressions see the claims of a token as this.
static CLAIMS: LazyLock<Environment> = LazyLock::new(|| {
    Environment::new().with_variable("claims", Type::map(Type::String, Type::Dyn))
});
static USER_SHAPE: LazyLock<Arc<Shape>> = LazyLock::new(|| {
    let text = || Arc::new(Shape::string("", None, None));
    let texts = || Arc::new(Shape::list(text(), ListKind::Atomic, None));
    let property = |name: &str, shape: Arc<Shape>| Property {
        name: name.to_owned(),
        shape,
        required: false,
    };
    let fields = vec![
        property("username", text()),
        property("uid", text()),
        property("groups", texts()),
        property("extra", Arc::new(Shape::map(texts(), None))),
    ];
    Arc::new(Shape::object(fields).named("kubernetes.UserInfo"))
});
/// And the user as this.
static USER: LazyLock<Environment> =
    LazyLock::new(|| Environment::new().with_data("user", &USER_SHAPE));

/// A compiled expression.
#[derive(Clone)]
pub(super) struct Expression(Arc<Program>);

/// A condition and what to say when it does not hold.
#[derive(Clone, Debug)]
pub(super) struct Condition {
    pub(super) expression: Expression,
    pub(super) message: String,
}

impl fmt::Debug for Expression {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Expression({:?})", self.0.text())
    }
}

impl Expression {
    /// Compiles an expression over claims that gives any value.
    pub(super) fn of_claims(text: &str) -> Result<Expression, String> {
        compile(&CLAIMS, text)
    }

    /// Compiles a condition over claims.
    pub(super) fn condition_of_claims(text: &str) -> Result<Expression, String> {
        compile(&CLAIMS, text)?.giving_bool()
    }

    /// Compiles a condition over a user.
    pub(super) fn condition_of_user(text: &str) -> Result<Expression, String> {
        compile(&USER, text)?.giving_bool()
    }

    fn giving_bool(self) -> Result<Expression, String> {
        match self.0.output_type() {
            Type::Bool => Ok(self),
            _ => Err("must evaluate to bool".to_owned()),
        }
    }

    /// The text that the claims give.
    pub(super) fn text(&self, claims: &Value) -> Result<Text, String> {
        match self.evaluate(claims)? {
            Value::String(text) => Ok(text),
            _ => Err("must return a string".to_owned()),
        }
    }

    /// The texts that the claims give; empty ones are none.
    pub(super) fn texts(&self, claims: &Value) -> Result<Vec<Text>, String> {
        let wrong = || "expression must return a string or a list of strings".to_owned();
        let all = match self.evaluate(claims)? {
            Value::Null => Vec::new(),
            Value::String(text) => vec![text],
            Value::Array(items) => {
                let texts = items.iter().map(|item| item.as_str().map(Text::from));
                texts.collect::<Option<Vec<Text>>>().ok_or_else(wrong)?
            }
            _ => return Err(wrong()),
        };
        Ok(all.into_iter().filter(|text| !text.is_empty()).collect())
    }

    fn evaluate(&self, claims: &Value) -> Result<Value, String> {
        let bindings = Bindings::new().bind("claims", cel::Value::from_json(claims));
        let value = self.0.evaluate(&bindings, &mut budget());
        let value = value.map_err(|error| error.to_string())?;
        value.to_json().map_err(|error| error.to_string())
    }
}

impl Condition {
    /// Checks the claims.
    pub(super) fn check_claims(&self, claims: &Value) -> Result<(), String> {
        let bindings = Bindings::new().bind("claims", cel::Value::from_json(claims));
        self.check(&bindings)
    }

    /// Checks the user.
    pub(super) fn check_user(&self, user: &Value) -> Result<(), String> {
        let user = cel::Value::from_data(user, &USER_SHAPE).map_err(|it| it.to_string())?;
        self.check(&Bindings::new().bind("user", user))
    }

    fn check(&self, bindings: &Bindings<'_>) -> Result<(), String> {
        let program = &self.expression.0;
        let value = program.evaluate(bindings, &mut budget());
        match value.map_err(|error| error.to_string())?.as_bool() {
            Some(true) => Ok(()),
            Some(false) => Err(format!(
                "validation expression '{}' failed: {}",
                program.text(),
                self.message
            )),
            None => Err("validation expression must return a boolean".to_owned()),
        }
    }
}

fn budget() -> Budget {
    Budget::new(CALL_COST_MAX, CALL_COST_MAX)
}

fn compile(environment: &Environment, text: &str) -> Result<Expression, String> {
    let program = environment.compile_to_run(text);
    let program = program.map_err(|issues| format!("compilation failed: {issues}"))?;
    Ok(Expression(Arc::new(program)))
}

/// Claims as expressions see them: every number is a double, as Go reads them.
pub(super) fn seen(claims: &Value) -> Value {
    match claims {
        Value::Int(number) => Value::Float(*number as f64),
        Value::Array(items) => Value::Array(items.iter().map(seen).collect()),
        Value::Object(map) => {
            let entries = map.iter().map(|(key, value)| (key.clone(), seen(value)));
            Value::Object(entries.collect())
        }
        other => other.clone(),
    }
}

/// A user as expressions see it.
pub(super) fn user_value(user: &User) -> Value {
    let list = |texts: &[Text]| Value::Array(texts.iter().cloned().map(Value::String).collect());
    let extra = user.extra.iter();
    let extra = extra.map(|(key, values)| (key.clone(), list(values)));
    let mut out = object::Map::new();
    out.insert("username", Value::String(user.name.clone()));
    out.insert("uid", Value::String(user.uid.clone()));
    out.insert("groups", list(&user.groups));
    out.insert("extra", Value::Object(extra.collect()));
    Value::Object(out)
}
