//! A quantity that is accepted prints in forms that read back as the same amount.
#![no_main]

use libfuzzer_sys::fuzz_target;
use object::quantity::Quantity;

fuzz_target!(|texts: (&str, &str)| {
    let (Ok(left), Ok(right)) = (Quantity::parse(texts.0), Quantity::parse(texts.1)) else {
        return;
    };
    for printed in [left.to_string(), left.canonical()] {
        assert_eq!(Quantity::parse(&printed).as_ref(), Ok(&left));
    }
    assert_eq!(left.cmp(&right), right.cmp(&left).reverse());
    let _ = (left.value(), left.milli_value(), left.approximate());
    let mut sum = left.clone();
    sum.add(&right);
    sum.sub(&right);
    sum.round_up(-3);
});
