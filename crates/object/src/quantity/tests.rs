//! Quantities in tables, and arithmetic checked against plain integers.

use proptest::prelude::*;

use super::*;

fn quantity(text: &str) -> Quantity {
    Quantity::parse(text).unwrap_or_else(|error| panic!("{text:?}: {error}"))
}

#[test]
fn quantities_print_back_as_upstream_prints_them() {
    let cases = [
        ("0", "0"),
        ("0Ki", "0"),
        ("0.0n", "0"),
        ("2048Mi", "2Gi"),
        ("1.5Gi", "1536Mi"),
        ("1000m", "1"),
        ("0.5", "500m"),
        ("1.5", "1500m"),
        ("100k", "100k"),
        ("1000k", "1M"),
        ("1e3", "1e3"),
        ("1000e0", "1e3"),
        ("1.2e3", "1200"),
        ("1e14", "100e12"),
        ("1e-1", "100e-3"),
        ("0.3Ki", "307200m"),
        ("1.1Ki", "1126400m"),
        ("1023", "1023"),
        ("1024Ki", "1Mi"),
        ("1000Ki", "1000Ki"),
        ("1Pi", "1Pi"),
        ("16Ti", "16Ti"),
        ("7Ei", "7Ei"),
        ("9Ei", "9223372036854775807"),
        (
            "99999999999999999999999999999999999999999.5Ki",
            "9223372036854775807",
        ),
        ("-9Ei", "-9223372036854775807"),
        ("-1.5", "-1500m"),
        ("-0.5Mi", "-512Ki"),
        ("12345678901234567890", "12345678901234567890"),
        ("0.0000000001", "1n"),
        ("0.00000012345", "124n"),
        ("3.001n", "4n"),
        ("-3.001n", "-4n"),
        ("0.999999999999", "1"),
        ("1e-10", "1e-9"),
        ("1e-2000000000", "1e-9"),
        ("0.000000000001Ki", "2n"),
        (".000000001Ki", "1024n"),
        (".000001Ki", "1024u"),
        ("1025024Mi", "1001Gi"),
        ("1080000000n", "1080m"),
        (".001e12", "1e9"),
        ("0.001T", "1G"),
        ("1E", "1E"),
        ("1E6", "1E6"),
        ("1.E", "1.E"),
        ("10.035M", "10.035M"),
        ("100.035k", "100.035k"),
        ("1.234", "1.234"),
        ("1.500", "1.500"),
        ("1.50", "1500m"),
        ("+5", "+5"),
        ("+1Pi", "1Pi"),
        ("+8Ki", "8Ki"),
        ("0100", "0100"),
        ("01.50", "1500m"),
        (".001", "1m"),
        (".", "0"),
        ("-", "0"),
        ("k", "0"),
        ("1.", "1."),
        ("1000E", "1e21"),
        ("1e1000000", "10e999999"),
    ];
    for (text, printed) in cases {
        assert_eq!(quantity(text).to_string(), printed, "of {text:?}");
    }
}

#[test]
fn mistakes_are_told_in_upstreams_words() {
    let long = "1".repeat(37);
    let rounded = format!("1{}.0000000001", "0".repeat(50));
    let cases = [
        ("", QuantityError::Format),
        ("abc", QuantityError::Format),
        ("1 ", QuantityError::Format),
        (" 1", QuantityError::Format),
        ("1.2.3", QuantityError::Format),
        ("1é", QuantityError::Format),
        ("1mi", QuantityError::Suffix),
        ("1e", QuantityError::Suffix),
        ("1K", QuantityError::Suffix),
        ("1Kii", QuantityError::Suffix),
        ("1k5", QuantityError::Suffix),
        ("1-5", QuantityError::Suffix),
        ("--1", QuantityError::Suffix),
        ("1e9999999999", QuantityError::Suffix),
        (".e-10", QuantityError::Number),
        (&long, QuantityError::Number),
        (&rounded, QuantityError::Number),
    ];
    for (text, expected) in cases {
        assert_eq!(
            Quantity::parse(text).map(|quantity| quantity.to_string()),
            Err(expected)
        );
    }
    assert_eq!(
        QuantityError::Format.to_string(),
        "quantities must match the regular expression \
         '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    );
}

#[test]
fn objects_hold_strings_or_numbers() {
    let read = |value: Value| Quantity::from_value(&value).map(|amount| amount.to_string());
    assert_eq!(read(" 1Gi\n".into()), Ok("1Gi".to_owned()));
    assert_eq!(read(Value::Int(2)), Ok("2".to_owned()));
    assert_eq!(read(Value::Float(0.1)), Ok("100m".to_owned()));
    assert_eq!(read(Value::Null), Ok("0".to_owned()));
    assert_eq!(read(Value::Bool(true)), Err(QuantityError::Format));
}

#[test]
fn values_are_rounded_away_from_zero() {
    let cases = [
        ("1.1", 2, 1100),
        ("-1.1", -2, -1100),
        ("1n", 1, 1),
        ("2Ki", 2048, 2_048_000),
        ("0", 0, 0),
        ("1e30", i64::MAX, i64::MAX),
        ("-1e3000000", i64::MIN, i64::MIN),
        ("9223372036854775807", i64::MAX, i64::MAX),
    ];
    for (text, value, milli_value) in cases {
        let amount = quantity(text);
        assert_eq!(
            (amount.value(), amount.milli_value()),
            (value, milli_value),
            "of {text:?}"
        );
    }
    let mut amount = quantity("1.0001");
    amount.round_up(-3);
    assert_eq!(amount.to_string(), "1001m");
    let mut kept = quantity("1.234");
    kept.round_up(-3);
    assert_eq!(kept.to_string(), "1.234");
}

#[test]
fn sums_keep_the_format_of_the_first_that_is_not_zero() {
    let cases = [
        ("1Gi", "1Gi", "2Gi", "0"),
        ("0", "1Gi", "1Gi", "-1Gi"),
        ("1", "1Ki", "1025", "-1023"),
        ("1Ki", "100m", "1024100m", "1023900m"),
        ("1e3", "1", "1001", "999"),
        (
            "1n",
            "1e20",
            "100000000000000000000.000000001",
            "-99999999999999999999.999999999",
        ),
    ];
    for (left, right, sum, difference) in cases {
        let (mut added, mut taken) = (quantity(left), quantity(left));
        added.add(&quantity(right));
        taken.sub(&quantity(right));
        assert_eq!(added, quantity(sum), "{left} + {right}");
        assert_eq!(taken, quantity(difference), "{left} - {right}");
    }
    let mut sum = quantity("1Gi");
    sum.add(&quantity("1Gi"));
    assert_eq!(sum.to_string(), "2Gi");
}

#[test]
fn far_apart_amounts_are_compared_and_added_without_overflow() {
    let (large, small) = (quantity("1e2000000000"), quantity("-1n"));
    assert!(large > small);
    assert!(quantity("-1e2000000000") < small);
    let mut sum = large.clone();
    sum.add(&small);
    assert!(sum < large);
}

fn texts() -> impl Strategy<Value = String> {
    let suffix = "|n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|[eE][-+]?[0-9]{1,2}";
    ("[-+]?", "[0-9]{1,14}", "|\\.[0-9]{0,10}", suffix)
        .prop_map(|(sign, whole, fraction, suffix)| format!("{sign}{whole}{fraction}{suffix}"))
}

proptest! {
    #[test]
    fn what_is_printed_reads_back_as_an_equal_amount(text in texts()) {
        let amount = quantity(&text);
        prop_assert_eq!(&quantity(&amount.to_string()), &amount);
        prop_assert_eq!(&quantity(&amount.canonical()), &amount);
        let printed = quantity(&amount.canonical()).canonical();
        prop_assert_eq!(printed, amount.canonical());
    }

    #[test]
    fn a_text_that_looks_canonical_is(number in "[0-9]{1,7}", suffix in "[numkMGTPE]?|[KMGTPE]i") {
        let text = format!("{number}{suffix}");
        let expected = Quantity::parse(&text).map(|quantity| quantity.canonical());
        prop_assert_eq!(Quantity::canonical_text(&text).map(String::from), expected);
    }

    #[test]
    fn the_order_is_that_of_the_numbers(left: i64, right: i64, scale in 0_u32..9) {
        let places = -i64::from(scale);
        let scaled = |number: i64| Quantity::new(number.into(), places, Format::DecimalSi);
        let unit = 10_i128.pow(scale);
        let whole = Quantity::new(right.into(), 0, Format::BinarySi);
        prop_assert_eq!(scaled(left).cmp(&scaled(right)), left.cmp(&right));
        let order = i128::from(left).cmp(&(i128::from(right) * unit));
        prop_assert_eq!(scaled(left).cmp(&whole), order);
    }

    #[test]
    fn sums_are_exact(left: i64, right: i64, scale in 0_u32..9) {
        let mut sum = Quantity::new(left.into(), -i64::from(scale), Format::DecimalSi);
        sum.add(&Quantity::new(right.into(), 0, Format::DecimalSi));
        let expected = i128::from(left) + i128::from(right) * 10_i128.pow(scale);
        let expected = Quantity::new(expected, -i64::from(scale), Format::DecimalSi);
        prop_assert_eq!(&sum, &expected);
        sum.sub(&Quantity::new(right.into(), 0, Format::DecimalSi));
        prop_assert_eq!(sum, Quantity::new(left.into(), -i64::from(scale), Format::DecimalSi));
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in "[-+]?[0-9]{0,60}\\.?[0-9]{0,60}[eEiKnmé]{0,3}[-+]?[0-9]{0,11}") {
        if let Ok(amount) = Quantity::parse(&text) {
            prop_assert_eq!(&quantity(&amount.to_string()), &amount);
            let _ = (amount.value(), amount.milli_value(), amount.approximate());
        }
    }
}
