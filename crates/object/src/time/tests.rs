//! Times in tables, and round trips over generated ones.

use proptest::prelude::*;

use super::*;

#[test]
fn times_read_as_go_reads_them() {
    let cases = [
        ("1970-01-01T00:00:00Z", "1970-01-01T00:00:00Z"),
        ("2006-01-02T15:04:05Z", "2006-01-02T15:04:05Z"),
        ("2006-01-02T15:04:05+07:00", "2006-01-02T08:04:05Z"),
        ("2006-01-02T15:04:05-07:30", "2006-01-02T22:34:05Z"),
        ("2006-01-02T15:04:05.999999999Z", "2006-01-02T15:04:05Z"),
        ("2006-01-02T15:04:05,5Z", "2006-01-02T15:04:05Z"),
        ("1969-12-31T23:59:59.5Z", "1969-12-31T23:59:59Z"),
        ("2024-02-29T5:04:05Z", "2024-02-29T05:04:05Z"),
        ("2006-01-02T15:04:05+24:60", "2006-01-01T14:04:05Z"),
        ("0000-01-01T00:00:00+01:00", "-0001-12-31T23:00:00Z"),
        ("9999-12-31T23:59:59-01:00", "10000-01-01T00:59:59Z"),
    ];
    for (text, printed) in cases {
        assert_eq!(
            Time::parse(text).map(|time| time.to_string()),
            Ok(printed.to_owned())
        );
    }
    assert_eq!(
        Time::parse("2001-09-09T01:46:40Z").unwrap().unix_seconds(),
        1_000_000_000
    );
    assert!(Time::parse("0001-01-01T00:00:00Z").unwrap().is_zero());
    assert!(!Time::from_unix_seconds(0).is_zero());
}

#[test]
fn parse_errors_are_gos_to_the_letter() {
    let layout = r#" as "2006-01-02T15:04:05Z07:00": cannot parse "#;
    let cases = [
        ("x", format!(r#"{layout}"x" as "2006""#)),
        ("", format!(r#"{layout}"" as "2006""#)),
        ("2006", format!(r#"{layout}"" as "-""#)),
        ("2006-1-02", format!(r#"{layout}"1-02" as "01""#)),
        (
            "2006-01-02 15:04:05Z",
            format!(r#"{layout}" 15:04:05Z" as "T""#),
        ),
        ("2006-01-02T", format!(r#"{layout}"" as "15""#)),
        ("2006-01-02T15:04:05", format!(r#"{layout}"" as "Z07:00""#)),
        (
            "2006-01-02T15:04:05+0700",
            format!(r#"{layout}"+0700" as "Z07:00""#),
        ),
        (
            "2006-01-02T15:04:05*07:00",
            format!(r#"{layout}"*07:00" as "Z07:00""#),
        ),
        ("2006-13-02T15:04:05Z", ": month out of range".to_owned()),
        ("2006-02-30T15:04:05Z", ": day out of range".to_owned()),
        ("2006-02-00T15:04:05Z", ": day out of range".to_owned()),
        ("2006-01-02T24:04:05Z", ": hour out of range".to_owned()),
        ("2006-01-02T15:60:05Z", ": minute out of range".to_owned()),
        ("2006-01-02T15:04:60Z", ": second out of range".to_owned()),
        (
            "2006-01-02T15:04:05+25:00",
            ": time zone offset hour out of range".to_owned(),
        ),
        ("2006-01-02T15:04:05Zoo", r#": extra text: "oo""#.to_owned()),
    ];
    for (text, expected) in cases {
        let error = Time::parse(text).unwrap_err();
        assert_eq!(error, format!("parsing time \"{text}\"{expected}"));
    }
    assert_eq!(
        Time::parse("a\"é").unwrap_err(),
        r#"parsing time "a\"\xc3\xa9" as "2006-01-02T15:04:05Z07:00": cannot parse "a\"\xc3\xa9" as "2006""#
    );
}

#[test]
fn micro_times_have_exactly_six_digits() {
    let time = MicroTime::parse("2006-01-02T15:04:05.000007+01:00").unwrap();
    assert_eq!(time.to_string(), "2006-01-02T14:04:05.000007Z");
    assert_eq!(time.to_time().to_string(), "2006-01-02T14:04:05Z");
    let before = MicroTime::from_unix_micros(-1);
    assert_eq!(before.to_string(), "1969-12-31T23:59:59.999999Z");
    assert!(
        MicroTime::parse("0001-01-01T00:00:00.000000Z")
            .unwrap()
            .is_zero()
    );
    let layout = r#" as "2006-01-02T15:04:05.000000Z07:00": cannot parse "#;
    let cases = [
        (
            "2006-01-02T15:04:05Z",
            format!(r#"{layout}"Z" as ".000000""#),
        ),
        (
            "2006-01-02T15:04:05.123Z",
            format!(r#"{layout}".123Z" as ".000000""#),
        ),
        (
            "2006-01-02T15:04:05.1234567Z",
            format!(r#"{layout}"7Z" as "Z07:00""#),
        ),
        (
            "2006-01-02T15:04:05.-12345Z",
            ": fractional second out of range".to_owned(),
        ),
    ];
    for (text, expected) in cases {
        let error = MicroTime::parse(text).unwrap_err();
        assert_eq!(error, format!("parsing time \"{text}\"{expected}"));
    }
}

proptest! {
    #[test]
    fn a_printed_time_reads_back_as_itself(seconds in -62_167_219_200_i64..253_402_300_800) {
        let time = Time::from_unix_seconds(seconds);
        prop_assert_eq!(Time::parse(&time.to_string()), Ok(time));
        let time = MicroTime::from_unix_micros(seconds * 1_000_000 + seconds.rem_euclid(1_000_000));
        prop_assert_eq!(MicroTime::parse(&time.to_string()), Ok(time));
    }

    #[test]
    fn any_number_prints(number in any::<i64>()) {
        let time = Time::from_unix_seconds(number);
        prop_assert_eq!(String::from(time.to_text()), time.to_string());
        prop_assert!(!Time::from_unix_seconds(number).to_string().is_empty());
        prop_assert!(!MicroTime::from_unix_micros(number).to_string().is_empty());
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in "[0-9]{0,5}-?[0-9]{0,2}-?[0-9]{0,2}T?[0-9:]{0,9}[.,é+]?[0-9:]{0,9}Z?") {
        if let Ok(time) = Time::parse(&text) {
            prop_assert!(!time.to_string().is_empty());
        }
        let _ = MicroTime::parse(&text);
    }
}
