//! Files of configuration, read field by field with the place of every mistake.

use std::fmt;

use object::{Map, Value, yaml};

/// What is wrong with a configuration, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {detail}")]
pub struct ConfigError {
    place: String,
    detail: String,
}

/// Reads YAML or JSON.
pub(crate) fn read(text: &[u8]) -> Result<Value, ConfigError> {
    yaml::parse(text).map_err(|error| Node::root(&Value::Null).wrong(error))
}

/// A place in the document and what is there.
pub(crate) struct Node<'a> {
    pub(crate) value: Option<&'a Value>,
    place: String,
}

impl<'a> Node<'a> {
    /// The document itself.
    pub(crate) fn root(document: &'a Value) -> Node<'a> {
        Node {
            value: Some(document),
            place: String::new(),
        }
    }

    /// Checks that the document is a configuration of this kind.
    pub(crate) fn is_a(&self, kind: &str) -> Result<(), ConfigError> {
        let versions = ["v1", "v1beta1", "v1alpha1"];
        let versions = versions.map(|version| format!("apiserver.config.k8s.io/{version}"));
        if !versions.contains(&self.at("apiVersion").text()?) {
            let known = format!("must be {}", versions.join(" or "));
            return Err(self.at("apiVersion").wrong(known));
        }
        if self.at("kind").text()? != kind {
            return Err(self.at("kind").wrong(format!("must be {kind}")));
        }
        Ok(())
    }

    pub(crate) fn at(&self, field: &str) -> Node<'a> {
        let dot = if self.place.is_empty() { "" } else { "." };
        let value = self.value.and_then(|value| value.get(field));
        Node {
            value: value.filter(|value| !value.is_null()),
            place: format!("{}{dot}{field}", self.place),
        }
    }

    pub(crate) fn is_absent(&self) -> bool {
        self.value.is_none()
    }

    /// A string; empty if there is none.
    pub(crate) fn text(&self) -> Result<String, ConfigError> {
        match self.value {
            None => Ok(String::new()),
            Some(Value::String(text)) => Ok(text.to_string()),
            Some(_) => Err(self.wrong("must be a string")),
        }
    }

    pub(crate) fn required(&self) -> Result<String, ConfigError> {
        match self.text()? {
            text if text.is_empty() => Err(self.wrong("Required value")),
            text => Ok(text),
        }
    }

    /// Whether something is so; `absent` if nothing is said.
    pub(crate) fn flag(&self, absent: bool) -> Result<bool, ConfigError> {
        match self.value {
            None => Ok(absent),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(_) => Err(self.wrong("must be true or false")),
        }
    }

    pub(crate) fn items(&self) -> Result<Vec<Node<'a>>, ConfigError> {
        match self.value {
            None => Ok(Vec::new()),
            Some(Value::Array(items)) => Ok(items
                .iter()
                .enumerate()
                .map(|(at, value)| Node {
                    value: Some(value),
                    place: format!("{}[{at}]", self.place),
                })
                .collect()),
            Some(_) => Err(self.wrong("must be a list")),
        }
    }

    /// Refuses fields that nobody reads: a misspelt rule would not be one.
    pub(crate) fn only(&self, fields: &[&str]) -> Result<(), ConfigError> {
        let empty = Map::new();
        let map = match self.value {
            None => &empty,
            Some(Value::Object(map)) => map,
            Some(_) => return Err(self.wrong("must be a map")),
        };
        match map.keys().find(|key| !fields.contains(&key.as_str())) {
            Some(unknown) => Err(self.at(unknown).wrong("unknown field")),
            None => Ok(()),
        }
    }

    pub(crate) fn wrong(&self, detail: impl fmt::Display) -> ConfigError {
        let place = match self.place.as_str() {
            "" => "the configuration".to_owned(),
            place => place.to_owned(),
        };
        let detail = detail.to_string();
        ConfigError { place, detail }
    }
}
