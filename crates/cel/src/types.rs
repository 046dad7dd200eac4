//! Types, as the checker reasons about them and as messages print them.
//!
//! Contract: cel-go `common/types/types.go` and `checker/format.go`.

use std::fmt;
use std::sync::Arc;

/// The type of an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Type {
    /// The type of what could not be checked; fits everything.
    Error,
    /// Decided when the expression is evaluated; fits everything.
    Dyn,
    /// As [`Type::Dyn`], for a value that is declared to be anything.
    Any,
    /// The type of `null`.
    Null,
    /// `true` or `false`.
    Bool,
    /// A signed integer of 64 bits.
    Int,
    /// An unsigned integer of 64 bits.
    Uint,
    /// A float of 64 bits.
    Double,
    /// Text.
    String,
    /// Bytes.
    Bytes,
    /// A length of time.
    Duration,
    /// A point in time.
    Timestamp,
    /// A list of one type.
    List(Arc<Type>),
    /// A map from one type to another.
    Map(Arc<(Type, Type)>),
    /// An object type, known by its name.
    Object(Arc<str>),
    /// A type of a library, with parameters: `optional_type(T)`, `net.IP`.
    Opaque(&'static str, Arc<[Type]>),
    /// The type of a type.
    Type(Option<Arc<Type>>),
    /// A type that is not known yet.
    Parameter(u32),
}

/// The name of optional types.
pub(crate) const OPTIONAL: &str = "optional_type";

impl Type {
    /// `list(of)`.
    pub fn list(of: Type) -> Type {
        Type::List(Arc::new(of))
    }

    /// `map(key, value)`.
    pub fn map(key: Type, value: Type) -> Type {
        Type::Map(Arc::new((key, value)))
    }

    /// `optional_type(of)`.
    pub fn optional(of: Type) -> Type {
        Type::Opaque(OPTIONAL, Arc::new([of]))
    }

    /// An object type by its name.
    pub fn object(name: &str) -> Type {
        Type::Object(name.into())
    }

    /// The type of the authorizer variables of admission.
    pub fn authorizer() -> Type {
        Type::object(AUTHORIZER)
    }

    /// The type of a check of the request's own resource.
    pub fn resource_check() -> Type {
        Type::object(RESOURCE_CHECK)
    }

    /// The type of amounts such as `10Gi`.
    pub fn quantity() -> Type {
        Type::object(QUANTITY)
    }

    pub(crate) fn type_of(of: Type) -> Type {
        Type::Type(Some(Arc::new(of)))
    }

    pub(crate) fn is_dyn(&self) -> bool {
        matches!(self, Type::Dyn | Type::Any)
    }

    pub(crate) fn is_dyn_or_error(&self) -> bool {
        self.is_dyn() || matches!(self, Type::Error)
    }

    /// What an optional holds, and whether this is one.
    pub(crate) fn unwrapped(&self) -> (&Type, bool) {
        match self {
            Type::Opaque(OPTIONAL, parameters) => (&parameters[0], true),
            other => (other, false),
        }
    }

    /// The types that this one is made of.
    pub(crate) fn parameters(&self) -> Vec<&Type> {
        match self {
            Type::List(of) => vec![of],
            Type::Map(of) => vec![&of.0, &of.1],
            Type::Opaque(_, of) => of.iter().collect(),
            Type::Type(Some(of)) => vec![of],
            _ => Vec::new(),
        }
    }

    /// Whether both are built alike; with `Names::Ignored` any two parameters are alike.
    pub(crate) fn is_like(&self, other: &Type, names: Names) -> bool {
        match (self, other) {
            (Type::Parameter(_), Type::Parameter(_)) if names == Names::Ignored => true,
            (Type::List(a), Type::List(b)) => a.is_like(b, names),
            (Type::Map(a), Type::Map(b)) => a.0.is_like(&b.0, names) && a.1.is_like(&b.1, names),
            (Type::Type(Some(a)), Type::Type(Some(b))) => a.is_like(b, names),
            (Type::Opaque(a, of_a), Type::Opaque(b, of_b)) => {
                a == b
                    && of_a.len() == of_b.len()
                    && of_a
                        .iter()
                        .zip(of_b.iter())
                        .all(|(a, b)| a.is_like(b, names))
            }
            (a, b) => a == b,
        }
    }

    /// The name by which upstream declares the type; messages about the result of an expression
    /// use it.
    pub fn declared_name(&self) -> String {
        let parameters = self.parameters().into_iter();
        let parameters: Vec<String> = parameters.map(Type::declared_name).collect();
        match parameters.is_empty() {
            true => self.name(),
            false => format!("{}({})", self.name(), parameters.join(", ")),
        }
    }

    /// The name without parameters.
    pub(crate) fn name(&self) -> String {
        match self {
            Type::List(_) => "list".to_owned(),
            Type::Map(_) => "map".to_owned(),
            Type::Opaque(name, _) => (*name).to_owned(),
            Type::Type(_) => "type".to_owned(),
            Type::Null => "null_type".to_owned(),
            Type::Any => "google.protobuf.Any".to_owned(),
            Type::Duration => "google.protobuf.Duration".to_owned(),
            Type::Timestamp => "google.protobuf.Timestamp".to_owned(),
            other => other.to_string(),
        }
    }
}

/// Whether the names of type parameters count in a comparison.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Names {
    Ignored,
}

pub(crate) const AUTHORIZER: &str = "kubernetes.authorization.Authorizer";
pub(crate) const PATH_CHECK: &str = "kubernetes.authorization.PathCheck";
pub(crate) const GROUP_CHECK: &str = "kubernetes.authorization.GroupCheck";
pub(crate) const RESOURCE_CHECK: &str = "kubernetes.authorization.ResourceCheck";
pub(crate) const DECISION: &str = "kubernetes.authorization.Decision";
pub(crate) const URL: &str = "kubernetes.URL";
pub(crate) const QUANTITY: &str = "kubernetes.Quantity";
pub(crate) const SEMVER: &str = "kubernetes.Semver";
pub(crate) const NAMED_FORMAT: &str = "kubernetes.NamedFormat";
pub(crate) const IP: &str = "net.IP";
pub(crate) const CIDR: &str = "net.CIDR";

impl fmt::Display for Type {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Type::Error => "!error!",
            Type::Dyn => "dyn",
            Type::Any => "any",
            Type::Null => "null",
            Type::Bool => "bool",
            Type::Int => "int",
            Type::Uint => "uint",
            Type::Double => "double",
            Type::String => "string",
            Type::Bytes => "bytes",
            Type::Duration => "duration",
            Type::Timestamp => "timestamp",
            Type::List(of) => return write!(out, "list({of})"),
            Type::Map(of) => return write!(out, "map({}, {})", of.0, of.1),
            Type::Object(name) => name,
            Type::Opaque(name, of) if of.is_empty() => name,
            Type::Opaque(name, of) => {
                let of: Vec<String> = of.iter().map(Type::to_string).collect();
                return write!(out, "{name}({})", of.join(", "));
            }
            Type::Type(None) => "type",
            Type::Type(Some(of)) => return write!(out, "type({of})"),
            Type::Parameter(number) => return write!(out, "_var{number}"),
        };
        out.write_str(name)
    }
}

/// Reads the type that a declaration writes; capital letters are parameters.
///
/// # Panics
/// On a declaration of ours that is wrong; a test reads them all.
pub(crate) fn parse_type(text: &str) -> Type {
    let (head, inner) = match text.split_once('(') {
        Some((head, rest)) => (head, rest.strip_suffix(')').expect("a closed type")),
        None => (text, ""),
    };
    let named = Type::object;
    match head {
        "list" => Type::list(parse_type(inner)),
        "optional" => Type::optional(parse_type(inner)),
        "type" => Type::type_of(parse_type(inner)),
        "map" => {
            let (key, value) = inner.split_once(", ").expect("a map of two types");
            Type::map(parse_type(key), parse_type(value))
        }
        "bool" => Type::Bool,
        "int" => Type::Int,
        "uint" => Type::Uint,
        "double" => Type::Double,
        "string" => Type::String,
        "bytes" => Type::Bytes,
        "duration" => Type::Duration,
        "timestamp" => Type::Timestamp,
        "dyn" => Type::Dyn,
        "URL" => named(URL),
        "Quantity" => named(QUANTITY),
        "Semver" => named(SEMVER),
        "Format" => named(NAMED_FORMAT),
        "IP" => Type::Opaque(IP, Arc::new([])),
        "CIDR" => Type::Opaque(CIDR, Arc::new([])),
        "Authorizer" => named(AUTHORIZER),
        "PathCheck" => named(PATH_CHECK),
        "GroupCheck" => named(GROUP_CHECK),
        "ResourceCheck" => named(RESOURCE_CHECK),
        "Decision" => named(DECISION),
        letter => {
            let letter = letter.bytes().next().expect("a type has a name");
            assert!(letter.is_ascii_uppercase(), "{head} is no type");
            Type::Parameter(u32::from(letter))
        }
    }
}
