//! What functions there are: their overloads for the checker, and what runs them.
//!
//! Libraries declare their functions as tables; [`find`] looks through all of them. A function
//! may be declared by several libraries, each with overloads of its own.

use crate::evaluate::{Fault, Meter};
use crate::library;
use crate::types::{Type, parse_type};
use crate::value::Value;
use std::collections::HashMap;
use std::sync::LazyLock;

/// Runs a function; types that fit no overload give [`Fault::NoOverload`].
pub(crate) type Native = for<'v> fn(&[Value<'v>], &mut Meter) -> Result<Value<'v>, Fault>;

/// A function as a library declares it.
pub(crate) struct Declaration {
    pub(crate) name: &'static str,
    /// Pairs of overload and signature: `string.(int) -> string` for a member, `(int) -> string`
    /// for a global function.
    pub(crate) overloads: &'static [(&'static str, &'static str)],
    pub(crate) native: Native,
}

/// One way to call a function.
#[derive(Debug)]
pub(crate) struct Overload {
    pub(crate) id: &'static str,
    pub(crate) is_member: bool,
    /// The receiver of a member function is the first.
    pub(crate) arguments: Vec<Type>,
    pub(crate) result: Type,
    pub(crate) native: Native,
}

/// A function with all its overloads.
#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) name: &'static str,
    pub(crate) overloads: Vec<Overload>,
}

static FUNCTIONS: LazyLock<HashMap<&'static str, Function>> = LazyLock::new(|| {
    let mut functions: HashMap<&'static str, Function> = HashMap::new();
    for declaration in library::ALL.iter().copied().flatten() {
        let name = declaration.name;
        let function = functions.entry(name).or_insert_with(|| Function {
            name,
            overloads: Vec::new(),
        });
        let declared = declaration.overloads.iter();
        function
            .overloads
            .extend(declared.map(|(id, signature)| overload(id, signature, declaration.native)));
    }
    functions
});

/// The function of that name in any library.
pub(crate) fn find(name: &str) -> Option<&'static Function> {
    FUNCTIONS.get(name)
}

fn overload(id: &'static str, signature: &str, native: Native) -> Overload {
    let (call, result) = signature.split_once(" -> ").expect("a result type");
    let open = call.find(".(").map_or(0, |at| at + 1);
    let receiver = (open > 0).then(|| parse_type(&call[..open - 1]));
    let inner = &call[open + 1..call.len() - 1];
    let arguments = split_types(inner).into_iter().map(parse_type);
    Overload {
        id,
        is_member: receiver.is_some(),
        arguments: receiver.into_iter().chain(arguments).collect(),
        result: parse_type(result),
        native,
    }
}

/// Splits at the commas that are in no parentheses.
fn split_types(text: &str) -> Vec<&str> {
    let mut types = Vec::new();
    let (mut depth, mut start) = (0, 0);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' => depth -= 1,
            b',' if depth == 0 => {
                types.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    if !text.is_empty() {
        types.push(text[start..].trim());
    }
    types
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_declarations_can_be_read() {
        assert!(FUNCTIONS.len() > 100);
        let size = find("size").expect("size is declared");
        assert_eq!(size.overloads.iter().filter(|it| it.is_member).count(), 4);
    }
}
