//! Kubeconfigs that say how a webhook is reached.

use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use object::{Value, yaml};
use server::{HttpsClient, OutsideOptions};

use crate::failure::Failure;

/// Reads a kubeconfig: where a webhook is, and a client for it that waits so long for an answer.
pub(crate) fn webhook(
    path: &Path,
    timeout: Option<Duration>,
) -> Result<(String, HttpsClient), Failure> {
    let wrong = |detail: String| Failure::Given {
        path: path.to_owned(),
        detail,
    };
    let text = std::fs::read(path).map_err(|error| wrong(error.to_string()))?;
    let document = yaml::parse(&text).map_err(|error| wrong(error.to_string()))?;
    let context = document.str_at(&["current-context"]).unwrap_or_default();
    let chosen = named(&document, "contexts", context);
    let chosen = chosen.and_then(|chosen| chosen.get("context"));
    let part = |list: &str, key: &str| {
        let name = chosen.and_then(|chosen| chosen.str_at(&[key]))?;
        named(&document, list, name)?.get(key)
    };
    let cluster = part("clusters", "cluster")
        .ok_or_else(|| wrong("its current context names no cluster".to_owned()))?;
    let none = Value::Null;
    let user = part("users", "user").unwrap_or(&none);
    let server = cluster.str_at(&["server"]).unwrap_or_default();
    if !server.starts_with("https://") {
        return Err(wrong(format!("the server \"{server}\" is no https URL")));
    }
    let skips = cluster.get("insecure-skip-tls-verify");
    if skips.and_then(Value::as_bool) == Some(true) {
        let text = "insecure-skip-tls-verify is not supported: anybody could answer; name the \
                    authority with certificate-authority";
        return Err(wrong(text.to_owned()));
    }
    let files = Files { path };
    let certificate = files.bytes(user, "client-certificate").map_err(wrong)?;
    let key = files.bytes(user, "client-key").map_err(wrong)?;
    let authorization = authorization(&files, user).map_err(wrong)?;
    let client = HttpsClient::new(OutsideOptions {
        authority: files
            .bytes(cluster, "certificate-authority")
            .map_err(wrong)?
            .unwrap_or_default(),
        certificate: certificate.zip(key),
        authorization,
        name: cluster.str_at(&["tls-server-name"]).map(str::to_owned),
        timeout,
    });
    Ok((server.to_owned(), client.map_err(wrong)?))
}

fn authorization(files: &Files<'_>, user: &Value) -> Result<Option<String>, String> {
    if let Some(token) = user.str_at(&["token"]) {
        return Ok(Some(format!("Bearer {token}")));
    }
    if let Some(file) = user.str_at(&["tokenFile"]) {
        let token = files.read(file)?;
        let token = String::from_utf8_lossy(&token);
        return Ok(Some(format!("Bearer {}", token.trim())));
    }
    let name = user.str_at(&["username"]);
    Ok(name.map(|name| {
        let password = user.str_at(&["password"]).unwrap_or_default();
        format!("Basic {}", STANDARD.encode(format!("{name}:{password}")))
    }))
}

fn named<'a>(document: &'a Value, list: &str, name: &str) -> Option<&'a Value> {
    let list = document.get(list).and_then(Value::as_array)?;
    list.iter()
        .find(|item| item.str_at(&["name"]) == Some(name))
}

/// Files that a kubeconfig names, seen from where it is.
struct Files<'a> {
    path: &'a Path,
}

impl Files<'_> {
    /// What a field holds in base64 (`-data`), or the file that it names.
    fn bytes(&self, part: &Value, field: &str) -> Result<Option<Vec<u8>>, String> {
        if let Some(text) = part.str_at(&[&format!("{field}-data")]) {
            let bytes = STANDARD.decode(text);
            return bytes
                .map(Some)
                .map_err(|error| format!("{field}-data: {error}"));
        }
        part.str_at(&[field])
            .map(|file| self.read(file))
            .transpose()
    }

    fn read(&self, file: &str) -> Result<Vec<u8>, String> {
        let directory = self.path.parent().unwrap_or(Path::new("."));
        let file: PathBuf = directory.join(file);
        std::fs::read(&file).map_err(|error| format!("{}: {error}", file.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn which_kubeconfigs_are_refused() {
        let path = std::env::temp_dir().join(format!("windlass-hook-{}", std::process::id()));
        let whole = "current-context: c\ncontexts: [{name: c, context: {cluster: k, user: u}}]\n\
                     clusters: [{name: k, cluster: {server: 'https://h', EXTRA}}]\n";
        let cases = [
            ("{", "kubeconfig"),
            ("current-context: x", "names no cluster"),
            (
                &whole.replace("https:", "http:").replace(", EXTRA", ""),
                "is no https URL",
            ),
            (
                &whole.replace("EXTRA", "insecure-skip-tls-verify: true"),
                "insecure-skip-tls-verify is not supported",
            ),
            (
                &whole.replace("EXTRA", "certificate-authority: /absent"),
                "/absent",
            ),
            (
                &whole.replace("EXTRA", "certificate-authority-data: '???'"),
                "certificate-authority-data",
            ),
        ];
        for (text, expected) in cases {
            std::fs::write(&path, text).unwrap();
            let Err(failure) = webhook(&path, None) else {
                panic!("{text} is taken");
            };
            let failure = failure.to_string();
            let is_told = expected == "kubeconfig" || failure.contains(expected);
            assert!(is_told, "{failure} instead of {expected}");
        }
        std::fs::remove_file(path).unwrap();
    }
}
