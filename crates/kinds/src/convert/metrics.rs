//! Metrics of autoscalers as `v2` has them and as `v1` writes them into annotations.

use object::quantity::Quantity;
use object::{Map, Value, json};

use crate::defaults::fill::{is_unset, items, object, text};

/// What a metric should be, or what it is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// `target` of a spec.
    Target,
    /// `current` of a status.
    Current,
}

impl Side {
    /// The field that holds the values in `v2`; it also begins their names in `v1`.
    fn name(self) -> &'static str {
        match self {
            Side::Target => "target",
            Side::Current => "current",
        }
    }

    /// The name of a value in `v1`, such as `targetAverageValue`.
    fn value_name(self, value: &str) -> String {
        [self.name(), value].concat()
    }
}

/// Writes a `v2` metric as `v1` carries it.
pub(super) fn to_text(metric: &Map, side: Side) -> String {
    let source = |name: &str, write: fn(&Map, Side) -> String| {
        object(metric, name).map(|source| write(source, side))
    };
    object_text(&[
        ("type", Some(string(metric, "type"))),
        ("object", source("object", object_source_text)),
        ("pods", source("pods", pods_source_text)),
        ("resource", source("resource", resource_source_text)),
        (
            "containerResource",
            source("containerResource", resource_source_text),
        ),
        ("external", source("external", external_source_text)),
    ])
}

fn object_source_text(source: &Map, side: Side) -> String {
    let nothing = Map::new();
    let described = object(source, "describedObject").unwrap_or(&nothing);
    let reference = object_text(&[
        ("kind", Some(string(described, "kind"))),
        ("name", Some(string(described, "name"))),
        ("apiVersion", optional(described, "apiVersion")),
    ]);
    let values = object(source, side.name()).unwrap_or(&nothing);
    object_text(&[
        ("target", Some(reference)),
        ("metricName", Some(metric_name(source))),
        (
            &side.value_name("Value"),
            Some(amount_or_zero(values, "value")),
        ),
        ("selector", selector(source)),
        ("averageValue", optional(values, "averageValue")),
    ])
}

fn pods_source_text(source: &Map, side: Side) -> String {
    let nothing = Map::new();
    let values = object(source, side.name()).unwrap_or(&nothing);
    object_text(&[
        ("metricName", Some(metric_name(source))),
        (
            &side.value_name("AverageValue"),
            Some(amount_or_zero(values, "averageValue")),
        ),
        ("selector", selector(source)),
    ])
}

fn resource_source_text(source: &Map, side: Side) -> String {
    let nothing = Map::new();
    let values = object(source, side.name()).unwrap_or(&nothing);
    let average = match side {
        Side::Target => optional(values, "averageValue"),
        Side::Current => Some(amount_or_zero(values, "averageValue")),
    };
    object_text(&[
        ("name", Some(string(source, "name"))),
        (
            &side.value_name("AverageUtilization"),
            optional(values, "averageUtilization"),
        ),
        (&side.value_name("AverageValue"), average),
        ("container", optional(source, "container")),
    ])
}

fn external_source_text(source: &Map, side: Side) -> String {
    let nothing = Map::new();
    let values = object(source, side.name()).unwrap_or(&nothing);
    let value = match side {
        Side::Target => optional(values, "value"),
        Side::Current => Some(amount_or_zero(values, "value")),
    };
    object_text(&[
        ("metricName", Some(metric_name(source))),
        ("metricSelector", selector(source)),
        (&side.value_name("Value"), value),
        (
            &side.value_name("AverageValue"),
            optional(values, "averageValue"),
        ),
    ])
}

/// Reads a metric as `v1` carries it into its `v2` form.
pub(super) fn from_text(metric: &Map, side: Side) -> Value {
    let mut out = Map::new();
    out.insert("type", text(metric, "type").into());
    if let Some(source) = object(metric, "object") {
        out.insert("object", object_source(source, side));
    }
    if let Some(source) = object(metric, "pods") {
        let average = amount(source, &side.value_name("AverageValue")).unwrap_or_else(zero);
        let values = values(side, "AverageValue", &[("averageValue", Some(average))]);
        out.insert("pods", named_source(source, "selector", side, values));
    }
    for key in ["resource", "containerResource"] {
        if let Some(source) = object(metric, key) {
            out.insert(key, resource_source(source, side));
        }
    }
    if let Some(source) = object(metric, "external") {
        let value = amount(source, &side.value_name("Value"));
        let value = if side == Side::Current {
            value.or_else(|| Some(zero()))
        } else {
            value
        };
        let aim = if value.is_some() {
            "Value"
        } else {
            "AverageValue"
        };
        let average = amount(source, &side.value_name("AverageValue"));
        let values = values(side, aim, &[("value", value), ("averageValue", average)]);
        out.insert(
            "external",
            named_source(source, "metricSelector", side, values),
        );
    }
    out.into()
}

fn object_source(source: &Map, side: Side) -> Value {
    let average = amount(source, "averageValue");
    let value = amount(source, &side.value_name("Value")).unwrap_or_else(zero);
    let aim = if average.is_none() {
        "Value"
    } else {
        "AverageValue"
    };
    // v1 cannot leave the value out and writes a zero, which v2 would refuse beside an average.
    let is_filler = side == Side::Target && average.is_some() && is_zero(&value);
    let values = values(
        side,
        aim,
        &[
            ("value", Some(value).filter(|_| !is_filler)),
            ("averageValue", average),
        ],
    );
    let mut out = named_source(source, "selector", side, values);
    if let Value::Object(out) = &mut out {
        let described = object(source, "target").cloned().unwrap_or_default();
        out.insert("describedObject", described.into());
    }
    out
}

fn resource_source(source: &Map, side: Side) -> Value {
    let percent = source
        .get(&side.value_name("AverageUtilization"))
        .filter(|it| !it.is_null());
    let average = amount(source, &side.value_name("AverageValue"));
    let average = if side == Side::Current {
        average.or_else(|| Some(zero()))
    } else {
        average
    };
    let aim = if percent.is_some() {
        "Utilization"
    } else {
        "AverageValue"
    };
    let fields = [
        ("averageValue", average),
        ("averageUtilization", percent.cloned()),
    ];
    let mut out = Map::new();
    out.insert("name", text(source, "name").into());
    out.insert(side.name(), values(side, aim, &fields));
    if !is_unset(source, "container") {
        out.insert("container", text(source, "container").into());
    }
    out.into()
}

/// A source that names its metric.
fn named_source(source: &Map, selector: &str, side: Side, values: Value) -> Value {
    let mut metric = Map::new();
    metric.insert("name", text(source, "metricName").into());
    if let Some(selector) = object(source, selector) {
        metric.insert("selector", selector.clone().into());
    }
    let mut out = Map::new();
    out.insert("metric", metric.into());
    out.insert(side.name(), values);
    out.into()
}

/// The values of a metric; those of a spec also say what is aimed at.
fn values(side: Side, aim: &str, fields: &[(&str, Option<Value>)]) -> Value {
    let mut out = Map::new();
    if side == Side::Target {
        out.insert("type", aim.into());
    }
    for (key, value) in fields {
        if let Some(value) = value {
            out.insert(*key, value.clone());
        }
    }
    out.into()
}

/// The amount under a key in its canonical form.
fn amount(map: &Map, key: &str) -> Option<Value> {
    let value = map.get(key).filter(|value| !value.is_null())?;
    let amount = Quantity::from_value(value).map(|amount| amount.to_string().into());
    Some(amount.unwrap_or_else(|_| value.clone()))
}

fn zero() -> Value {
    "0".into()
}

fn is_zero(value: &Value) -> bool {
    Quantity::from_value(value).is_ok_and(|amount| amount.is_zero())
}

fn metric_name(source: &Map) -> String {
    object(source, "metric").map_or_else(|| "\"\"".to_owned(), |metric| string(metric, "name"))
}

fn selector(source: &Map) -> Option<String> {
    let selector = object(object(source, "metric")?, "selector")?;
    let expressions = || items(selector, "matchExpressions").map(|it| leaf(&it.clone().into()));
    Some(object_text(&[
        ("matchLabels", optional(selector, "matchLabels")),
        (
            "matchExpressions",
            expressions().next().map(|_| array(expressions())),
        ),
    ]))
}

fn amount_or_zero(map: &Map, key: &str) -> String {
    optional(map, key).unwrap_or_else(|| "\"0\"".to_owned())
}

fn optional(map: &Map, key: &str) -> Option<String> {
    map.get(key).filter(|value| !value.is_null()).map(leaf)
}

fn string(map: &Map, key: &str) -> String {
    leaf(&text(map, key).into())
}

/// A value as JSON.
pub(super) fn leaf(value: &Value) -> String {
    String::from_utf8(json::to_vec(value)).expect("JSON is written as UTF-8")
}

/// A list of JSON texts as JSON.
pub(super) fn array(texts: impl Iterator<Item = String>) -> String {
    format!("[{}]", texts.collect::<Vec<_>>().join(","))
}

/// A map as JSON with its fields in this order; those without a text are left out.
pub(super) fn object_text(fields: &[(&str, Option<String>)]) -> String {
    let fields: Vec<String> = fields
        .iter()
        .filter_map(|(name, text)| Some(format!("\"{name}\":{}", text.as_ref()?)))
        .collect();
    format!("{{{}}}", fields.join(","))
}
