//! What a schema allows decides what an expression could cost.

use cel::{Environment, ListKind, Property, Shape};
use std::sync::Arc;

fn estimate(shape: Shape, text: &str) -> u64 {
    let shape = shape.shared("selfType");
    let environment = Environment::new().with_data("self", &shape);
    environment.compile(text).expect("a rule").estimate().max
}

fn texts(length: Option<u64>, items: Option<u64>) -> Shape {
    let text = Arc::new(Shape::string("", length, None));
    Shape::list(text, ListKind::Atomic, items)
}

#[test]
fn bounds_of_the_schema_bound_the_cost() {
    // Each item: 2 for the condition, 1 for the step, 2 for the operands, and the comparison.
    assert_eq!(
        estimate(texts(Some(10), Some(5)), "self.all(x, x == 'a')"),
        2 + 5 * (4 + 1)
    );
    assert_eq!(estimate(Shape::int(), "self > 1"), 2);
    assert_eq!(
        estimate(Shape::string("", Some(10), None), "self.contains('ab')"),
        5
    );
    let unbounded = estimate(texts(None, None), "self.all(x, self.all(y, x == y))");
    assert!(unbounded > 10_000_000_000, "{unbounded}");
}

#[test]
fn an_enumeration_bounds_a_string() {
    let open = estimate(Shape::string("", None, None), "self.matches('a+')");
    let closed = estimate(Shape::string("", None, Some(9)), "self.matches('a+')");
    assert!(open > 300_000, "{open}");
    assert_eq!(closed, 1 + 1);
}

#[test]
fn fields_are_found_through_lists_and_maps() {
    let item = Shape::object(vec![Property {
        name: "name".to_owned(),
        shape: Arc::new(Shape::string("", Some(25), None)),
        required: true,
    }]);
    let list = Shape::list(Arc::new(item), ListKind::Atomic, Some(10));
    let cost = estimate(list, "self.all(x, x.name.startsWith('a'))");
    assert_eq!(cost, 2 + 10 * (3 + 1 + 2));
}
