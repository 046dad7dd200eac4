//! The tree of an expression, after macros are expanded.
//!
//! Every node has a number; the places of nodes, and later their types, are kept in vectors beside
//! the tree. Depth is bounded by the parser, so walks over the tree may recurse.

use std::borrow::Cow;

/// The name of a function, a field or a variable.
pub(crate) type Name = Cow<'static, str>;

/// The variable that holds the result of a comprehension so far; no text can name it.
pub(crate) const ACCUMULATOR: &str = "@result";

/// One node.
#[derive(Clone, Debug)]
pub(crate) struct Expr {
    pub(crate) id: u32,
    pub(crate) kind: Kind,
}

/// What a node is.
#[derive(Clone, Debug)]
pub(crate) enum Kind {
    /// What stands where the text could not be understood.
    Unspecified,
    Literal(Literal),
    Ident(Name),
    Select {
        operand: Box<Expr>,
        field: Name,
        /// `has(operand.field)` instead of `operand.field`.
        test_only: bool,
    },
    Call {
        function: Name,
        target: Option<Box<Expr>>,
        arguments: Vec<Expr>,
    },
    List(Vec<Element>),
    Map(Vec<MapEntry>),
    Struct {
        name: String,
        fields: Vec<FieldEntry>,
    },
    Comprehension(Box<Comprehension>),
}

/// A value that stands in the text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Literal {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(String),
    Bytes(Vec<u8>),
}

/// An element of a list; `[?x]` is there only if the optional `x` has a value.
#[derive(Clone, Debug)]
pub(crate) struct Element {
    pub(crate) value: Expr,
    pub(crate) optional: bool,
}

/// An entry of a map.
#[derive(Clone, Debug)]
pub(crate) struct MapEntry {
    pub(crate) key: Expr,
    pub(crate) value: Expr,
    pub(crate) optional: bool,
}

/// A field of an object that is made.
#[derive(Clone, Debug)]
pub(crate) struct FieldEntry {
    pub(crate) id: u32,
    pub(crate) field: String,
    pub(crate) value: Expr,
    pub(crate) optional: bool,
}

/// The one loop of the language.
#[derive(Clone, Debug)]
pub(crate) struct Comprehension {
    pub(crate) range: Expr,
    pub(crate) variable: Name,
    /// With it, the first variable is the index or key and this one the element or value.
    pub(crate) second_variable: Option<Name>,
    pub(crate) accumulator: Name,
    pub(crate) initial: Expr,
    pub(crate) condition: Expr,
    pub(crate) step: Expr,
    pub(crate) result: Expr,
}

/// A parsed expression with the places of its nodes.
#[derive(Debug)]
pub(crate) struct Ast {
    pub(crate) root: Expr,
    /// For each node the offset in code points of what it is known by.
    pub(crate) offsets: Vec<u32>,
}

impl Ast {
    pub(crate) fn offset(&self, id: u32) -> u32 {
        self.offsets[id as usize]
    }
}

impl Expr {
    /// `a.b.c` as one name, if the expression is nothing but names.
    pub(crate) fn qualified_name(&self) -> Option<String> {
        match &self.kind {
            Kind::Ident(name) => Some(name.to_string()),
            Kind::Select {
                operand,
                field,
                test_only: false,
            } => Some(format!("{}.{field}", operand.qualified_name()?)),
            _ => None,
        }
    }

    /// Calls `visit` for this node and every node below, parents first.
    pub(crate) fn walk<'a>(&'a self, visit: &mut dyn FnMut(&'a Expr)) {
        visit(self);
        self.for_each_child(&mut |child| child.walk(visit));
    }

    /// Calls `visit` for the nodes right below this one, in the order of the text.
    pub(crate) fn for_each_child<'a>(&'a self, visit: &mut dyn FnMut(&'a Expr)) {
        match &self.kind {
            Kind::Unspecified | Kind::Literal(_) | Kind::Ident(_) => {}
            Kind::Select { operand, .. } => visit(operand),
            Kind::Call {
                target, arguments, ..
            } => {
                if let Some(target) = target {
                    visit(target);
                }
                arguments.iter().for_each(visit);
            }
            Kind::List(elements) => elements.iter().for_each(|it| visit(&it.value)),
            Kind::Map(entries) => {
                for entry in entries {
                    visit(&entry.key);
                    visit(&entry.value);
                }
            }
            Kind::Struct { fields, .. } => fields.iter().for_each(|it| visit(&it.value)),
            Kind::Comprehension(it) => {
                for part in [&it.range, &it.initial, &it.condition, &it.step, &it.result] {
                    visit(part);
                }
            }
        }
    }
}
