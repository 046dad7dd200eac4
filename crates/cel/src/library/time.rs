//! The fields of points in time and lengths of time.
//!
//! Contract: the `get` functions of cel-go `common/stdlib/standard.go`, in UTC unless a zone is
//! given.

use crate::evaluate::Fault;
use crate::function::Declaration;
use crate::value::{Timestamp, Value, Zone};

macro_rules! field {
    ($name:literal, $id:literal, $at:ident => $field:expr) => {
        Declaration {
            name: $name,
            overloads: &[
                (concat!("timestamp_to_", $id), "timestamp.() -> int"),
                (
                    concat!("timestamp_to_", $id, "_with_tz"),
                    "timestamp.(string) -> int",
                ),
            ],
            native: |arguments, _| {
                let (time, zone) = time_and_zone(arguments)?;
                let $at = time.civil(zone);
                Ok(Value::Int($field))
            },
        }
    };
}

macro_rules! part {
    ($name:literal, $id:literal, $nanos:literal, $at:ident => $field:expr) => {
        Declaration {
            name: $name,
            overloads: &[
                (concat!("timestamp_to_", $id), "timestamp.() -> int"),
                (
                    concat!("timestamp_to_", $id, "_with_tz"),
                    "timestamp.(string) -> int",
                ),
                (concat!("duration_to_", $id), "duration.() -> int"),
            ],
            native: |arguments, _| {
                if let [Value::Duration(nanos)] = arguments {
                    return Ok(Value::Int(nanos / $nanos));
                }
                let (time, zone) = time_and_zone(arguments)?;
                let $at = time.civil(zone);
                Ok(Value::Int($field))
            },
        }
    };
}

pub(crate) const FUNCTIONS: &[Declaration] = &[
    field!("getFullYear", "year", at => at.year),
    field!("getMonth", "month", at => i64::from(at.month) - 1),
    field!("getDayOfYear", "day_of_year", at => at.day_of_year),
    field!("getDayOfMonth", "day_of_month", at => i64::from(at.day) - 1),
    field!("getDate", "day_of_month_1_based", at => i64::from(at.day)),
    field!("getDayOfWeek", "day_of_week", at => at.weekday),
    part!("getHours", "hours", 3_600_000_000_000_i64, at => at.hour),
    part!("getMinutes", "minutes", 60_000_000_000_i64, at => at.minute),
    part!("getSeconds", "seconds", 1_000_000_000_i64, at => at.second),
    part!("getMilliseconds", "milliseconds", 1_000_000_i64, at => i64::from(at.nanos / 1_000_000)),
];

fn time_and_zone(arguments: &[Value<'_>]) -> Result<(Timestamp, Zone), Fault> {
    match arguments {
        [Value::Timestamp(time)] => Ok((*time, Zone(0))),
        [Value::Timestamp(time), Value::String(zone)] => Ok((*time, Zone::parse(zone, *time)?)),
        _ => Err(Fault::no_overload()),
    }
}
