//! Times and durations that are accepted print in forms that read back as the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use object::time::{MicroTime, Time, go_duration_parse, go_duration_print, human_duration};

/// The years that have four digits, in seconds since 1970.
const PRINTABLE_SECONDS: std::ops::Range<i64> = -62_167_219_200..253_402_300_800;

fuzz_target!(|text: &str| {
    if let Ok(time) = Time::parse(text)
        && PRINTABLE_SECONDS.contains(&time.unix_seconds())
    {
        assert_eq!(Time::parse(&time.to_string()), Ok(time));
        let _ = human_duration(time.unix_seconds());
    }
    if let Ok(time) = MicroTime::parse(text)
        && PRINTABLE_SECONDS.contains(&time.to_time().unix_seconds())
    {
        assert_eq!(MicroTime::parse(&time.to_string()), Ok(time));
    }
    if let Ok(nanos) = go_duration_parse(text) {
        // Go computes fractions in floating point, so only its printed form must be readable.
        assert!(go_duration_parse(&go_duration_print(nanos)).is_ok());
    }
});
