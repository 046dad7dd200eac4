//! EncryptionConfiguration, read strictly and written anew.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use object::{Map, Value, yaml};

use super::cipher::{Cipher, Kind};
use super::{Provider, Rule};

const KINDS: [Kind; 3] = [Kind::AesGcm, Kind::AesCbc, Kind::Secretbox];

/// Reads the rules of a configuration.
pub(super) fn read(text: &[u8]) -> Result<Vec<Rule>, String> {
    let value = yaml::parse(text).map_err(|error| error.to_string())?;
    let Value::Object(config) = value else {
        return Err("it is empty".to_owned());
    };
    known(&config, "", &["apiVersion", "kind", "resources"])?;
    let text = |name: &str| config.get(name).and_then(Value::as_str).unwrap_or_default();
    let is = (text("apiVersion"), text("kind"));
    if is != ("apiserver.config.k8s.io/v1", "EncryptionConfiguration") {
        return Err(format!(
            "it is a {} of {}, not an EncryptionConfiguration of apiserver.config.k8s.io/v1",
            is.1, is.0
        ));
    }
    let rules = list(&config, "resources")?.iter().enumerate();
    let rules: Vec<Rule> = rules
        .map(|(place, rule)| read_rule(rule, &format!("resources[{place}]")))
        .collect::<Result<_, _>>()?;
    if rules.is_empty() {
        return Err("resources: at least one is required".to_owned());
    }
    Ok(rules)
}

fn read_rule(rule: &Value, place: &str) -> Result<Rule, String> {
    let Value::Object(rule) = rule else {
        return Err(format!("{place} is no object"));
    };
    known(rule, place, &["resources", "providers"])?;
    let resources = list(rule, "resources")?;
    let resources: Option<Vec<String>> = resources
        .iter()
        .map(|name| name.as_str().map(str::to_owned))
        .collect();
    let resources = resources.ok_or_else(|| format!("{place}.resources is no list of texts"))?;
    if resources.is_empty() {
        return Err(format!("{place}.resources: at least one is required"));
    }
    for resource in &resources {
        if resource == "*" || (resource.starts_with('*') && !resource.starts_with("*.")) {
            return Err(format!(
                "{place}.resources: {resource} is ambiguous; write *.GROUP, *. for the core group \
                 or *.* for everything"
            ));
        }
    }
    let mut providers = Vec::new();
    for (at, provider) in list(rule, "providers")?.iter().enumerate() {
        read_provider(
            provider,
            &format!("{place}.providers[{at}]"),
            &mut providers,
        )?;
    }
    if providers.is_empty() {
        return Err(format!("{place}.providers: at least one is required"));
    }
    Ok(Rule {
        resources,
        providers,
    })
}

fn read_provider(value: &Value, place: &str, out: &mut Vec<Provider>) -> Result<(), String> {
    let entries = value.as_object().map(Map::entries).unwrap_or_default();
    let [(name, options)] = entries else {
        return Err(format!(
            "{place} names {} providers instead of one",
            entries.len()
        ));
    };
    if name == "identity" {
        out.push(Provider::Identity);
        return Ok(());
    }
    let Some(kind) = KINDS.into_iter().find(|kind| kind.name() == name) else {
        let hint = if name == "kms" {
            "key management services are not supported"
        } else {
            "there is no such provider"
        };
        return Err(format!(
            "{place}.{name}: {hint}; known are aesgcm, aescbc, secretbox and identity"
        ));
    };
    let options = options.as_object().cloned().unwrap_or_default();
    let place = format!("{place}.{name}");
    known(&options, &place, &["keys"])?;
    let keys = list(&options, "keys")?;
    if keys.is_empty() {
        return Err(format!("{place}.keys: at least one is required"));
    }
    for (at, key) in keys.iter().enumerate() {
        out.push(read_key(kind, key, &format!("{place}.keys[{at}]"))?);
    }
    Ok(())
}

fn read_key(kind: Kind, key: &Value, place: &str) -> Result<Provider, String> {
    let name = key.str_at(&["name"]).unwrap_or_default();
    if name.is_empty() || name.contains(':') {
        return Err(format!("{place}.name is empty or holds a colon"));
    }
    // The secret itself is in no message.
    let secret = key.str_at(&["secret"]).unwrap_or_default();
    let secret = STANDARD
        .decode(secret)
        .map_err(|_| format!("{place}.secret is not base64"))?;
    let cipher = Cipher::new(kind, &secret).map_err(|lengths| {
        format!(
            "{place}.secret is {} bytes long, it has to be {lengths}",
            secret.len()
        )
    })?;
    let prefix = format!("k8s:enc:{}:v1:{name}:", kind.name()).into_bytes();
    Ok(Provider::Key { prefix, cipher })
}

fn list<'a>(object: &'a Map, name: &str) -> Result<&'a [Value], String> {
    match object.get(name) {
        None | Some(Value::Null) => Ok(&[]),
        Some(Value::Array(items)) => Ok(items),
        Some(_) => Err(format!("{name} is no list")),
    }
}

fn known(object: &Map, place: &str, names: &[&str]) -> Result<(), String> {
    let odd = object.keys().find(|key| !names.contains(&key.as_str()));
    let dot = if place.is_empty() { "" } else { "." };
    match odd {
        None => Ok(()),
        Some(key) => Err(format!(
            "{place}{dot}{key} is unknown; known are {}",
            names.join(", ")
        )),
    }
}

/// A configuration with one new key. What is not encrypted yet stays readable.
pub(super) fn generate(kind: Kind, key_name: &str, resources: &[String]) -> String {
    let mut key = [0; 32];
    getrandom::fill(&mut key).expect("the system gives random bytes");
    let resources: Vec<String> = resources
        .iter()
        .map(|name| format!("  - \"{name}\"\n"))
        .collect();
    format!(
        "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n\
         - resources:\n{}  providers:\n  - {}:\n      keys:\n      - name: {key_name}\n        \
         secret: {}\n  - identity: {{}}\n",
        resources.concat(),
        kind.name(),
        STANDARD.encode(key)
    )
}
