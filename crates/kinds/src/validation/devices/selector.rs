//! Expressions that choose devices: they compile, give a boolean and cannot cost too much.
//!
//! Nothing here runs them; a scheduler does. Contract: `dynamic-resource-allocation/cel`.

use std::sync::{Arc, LazyLock};

use cel::{Environment, Property, Shape, Type};
use object::Map;
use object::field::{FieldError, Path};

use super::super::check::{Errors, Report};
use super::super::read::Read;

/// An expression may be this long.
const EXPRESSION_BYTES_MAX: usize = 10 * 1024;
/// What an evaluation may cost, by the estimate.
const COST_MAX: u64 = 1_000_000;
/// How many attributes and capacities a device has at most.
const ENTRIES_MAX: u64 = 32;
const DOMAIN_BYTES_MAX: u32 = 63;
const ID_BYTES_MAX: u32 = 32;
const DRIVER_BYTES_MAX: u64 = 63;
const ATTRIBUTE_BYTES_MAX: u64 = 64;

/// Checks the expression of a selector.
pub(super) fn check(selector: &Map, path: &Path<'_>, errors: &mut Errors) {
    let text = selector.text("expression");
    let path = path.field("expression");
    if text.len() > EXPRESSION_BYTES_MAX {
        errors.push(FieldError::too_long(&path, EXPRESSION_BYTES_MAX));
        return;
    }
    let program = match ENVIRONMENT.compile(text) {
        Ok(program) => program,
        Err(issues) => {
            return errors.invalid(&path, text, format!("compilation failed: {issues}"));
        }
    };
    let found = program.output_type();
    if !matches!(found, Type::Bool | Type::Any) {
        let found = found.declared_name();
        let detail = format!("must evaluate to bool or the unknown type, not {found}");
        return errors.invalid(&path, text, detail);
    }
    if let Err(error) = program.check_runnable() {
        let detail = format!("program instantiation failed: {error}");
        return errors.push(FieldError::internal(&path, detail));
    }
    if program.estimate().max > COST_MAX {
        errors.forbidden(&path, "too complex, exceeds cost limit");
    }
}

/// Values by domain and name.
fn by_domain(values: Shape) -> Shape {
    let inner = Shape::map(Arc::new(values), Some(ENTRIES_MAX)).with_keys(ID_BYTES_MAX);
    Shape::map(Arc::new(inner), Some(ENTRIES_MAX)).with_keys(DOMAIN_BYTES_MAX)
}

static ENVIRONMENT: LazyLock<Environment> = LazyLock::new(|| {
    let property = |name: &str, shape: Shape| Property {
        name: name.to_owned(),
        shape: Arc::new(shape),
        required: true,
    };
    let attribute = Shape::declared(Type::Any, ATTRIBUTE_BYTES_MAX);
    let device = Shape::object(vec![
        property("driver", Shape::declared(Type::String, DRIVER_BYTES_MAX)),
        property("allowMultipleAllocations", Shape::declared(Type::Bool, 1)),
        property("attributes", by_domain(attribute)),
        property("capacity", by_domain(Shape::declared(Type::quantity(), 0))),
    ]);
    Environment::new()
        .with_bindings()
        .with_data("device", &device.shared("kubernetes.DRADevice"))
});

#[cfg(test)]
mod tests {
    use object::Value;

    use super::*;

    #[test]
    fn which_expressions_choose_devices() {
        let nested = "device.attributes.all(a, device.attributes.all(b, device.attributes.all(c, \
                      device.attributes.all(d, a == b && c == d))))";
        let cases = [
            ("device.driver == 'gpu.example.com'", ""),
            ("device.attributes['gpu.example.com'].isBig", ""),
            ("device.allowMultipleAllocations", ""),
            ("cel.bind(x, device.attributes['a'], x.one && x.two)", ""),
            (
                "device.attributes['a'].list.exists(x, x == 1)",
                "expression of type 'any' cannot be range of a comprehension",
            ),
            (
                "device.attributes['a']",
                "not map(string, google.protobuf.Any)",
            ),
            (
                "device.capacity['gpu.example.com'].memory.isGreaterThan(quantity('1Gi'))",
                "",
            ),
            (
                "device.driver",
                "must evaluate to bool or the unknown type, not string",
            ),
            (
                "device.attributes['a'].b.c",
                "must evaluate to bool or the unknown type, not dyn",
            ),
            ("device.nothing == 1", "undefined field 'nothing'"),
            (nested, "Forbidden: too complex, exceeds cost limit"),
        ];
        for (text, expected) in cases {
            let mut errors = Errors::new();
            let mut selector = Map::new();
            selector.insert("expression", Value::String(text.into()));
            check(&selector, &Path::root(), &mut errors);
            let shown: Vec<String> = errors.iter().map(ToString::to_string).collect();
            match expected {
                "" => assert!(shown.is_empty(), "{text}: {shown:?}"),
                _ => assert!(
                    shown.iter().any(|it| it.contains(expected)),
                    "{text}: {shown:?}"
                ),
            }
        }
    }
}
