//! The flags of kube-apiserver, for programs that start one: envtest, test frameworks, scripts.
//!
//! A binary that is called `kube-apiserver` takes upstream's flags. Those that we know by the same
//! name are ours; a few are translated; the others are let pass with a note, since a program cannot
//! be told not to send them. The data lies in the certificate directory, which such programs remove
//! when they are done, and no controllers run, as in a kube-apiserver.

use std::ffi::{OsStr, OsString};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use clap::{Arg, Parser as _};
use tracing::warn;

use crate::arguments::{Arguments, Command, Serve};
use crate::credentials::{Credentials, write_secret};
use crate::failure::Failure;
use crate::serve::make_directory;

const NAME: &str = "kube-apiserver";
/// Upstream's defaults.
const CERTIFICATES: &str = "/var/run/kubernetes";
const PORT: &str = "6443";
const ADDRESS: &str = "0.0.0.0";
const SERVICE_RANGE: &str = "10.0.0.0/24";

/// Flags that change nothing here, and that nobody has to be told about.
const QUIET: [&str; 8] = [
    "advertise-address",
    "external-hostname",
    "profiling",
    "v",
    "vmodule",
    "storage-backend",
    "storage-media-type",
    "watch-cache",
];

/// What kube-apiserver was asked for.
pub(crate) enum Asked {
    /// Which flags there are.
    Help,
    /// Which version it is.
    Version,
    /// To serve; with the directory of certificates and what to tell about flags.
    Serve(Box<Serve>, PathBuf, Vec<String>),
}

/// Whether the program was called by upstream's name.
pub(crate) fn is_called(program: Option<&OsString>) -> bool {
    let name = program.map(Path::new).and_then(Path::file_name);
    name == Some(OsStr::new(NAME))
}

/// Reads upstream's flags.
pub(crate) fn parse(words: &[OsString]) -> Result<Asked, Failure> {
    let words: Vec<String> = words
        .iter()
        .skip(1)
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    if words
        .iter()
        .any(|word| matches!(word.as_str(), "--help" | "-h"))
    {
        return Ok(Asked::Help);
    }
    if words.iter().any(|word| word.starts_with("--version")) {
        return Ok(Asked::Version);
    }
    let translated = translate(&words);
    let certificates = translated.certificates.clone();
    let arguments =
        Arguments::try_parse_from(translated.words).unwrap_or_else(|error| error.exit());
    match arguments.command() {
        Command::Serve(serve) => Ok(Asked::Serve(serve, certificates, translated.notes)),
        _ => Err(Failure::Refused(format!("{NAME} takes flags only"))),
    }
}

/// Tells which flags were let pass, and makes sure that there is a certificate where programs that
/// start a kube-apiserver look for it.
pub(crate) fn prepare(
    serve: &mut Serve,
    certificates: &Path,
    notes: &[String],
) -> Result<(), Failure> {
    for note in notes {
        warn!("{note}");
    }
    if serve.identity.tls_cert_file.is_some() {
        return Ok(());
    }
    let pair = ["apiserver.crt", "apiserver.key"].map(|name| certificates.join(name));
    if !pair.iter().all(|path| path.is_file()) {
        make_directory(certificates)?;
        make_directory(&serve.data)?;
        let (certificate, key) =
            Credentials::open(&serve.data)?.server_certificate(serve.listen)?;
        write_secret(&pair[1], &key)?;
        write_secret(&pair[0], &certificate)?;
    }
    let [certificate, key] = pair;
    serve.identity.tls_cert_file = Some(certificate);
    serve.identity.tls_private_key_file = Some(key);
    Ok(())
}

/// Our words for upstream's.
struct Translated {
    words: Vec<String>,
    certificates: PathBuf,
    notes: Vec<String>,
}

fn translate(words: &[String]) -> Translated {
    let command = Arguments::grammar();
    let known = |name: &str| {
        command
            .get_arguments()
            .find(|it| it.get_long() == Some(name))
    };
    let mut out = vec!["windlass".to_owned(), "serve".to_owned()];
    let mut notes = Vec::new();
    let (mut address, mut port) = (ADDRESS.to_owned(), PORT.to_owned());
    let mut certificates = PathBuf::from(CERTIFICATES);
    for (name, value) in read(words, &known) {
        match (name.as_str(), value.as_str()) {
            ("bind-address", value) => value.clone_into(&mut address),
            ("secure-port", value) => value.clone_into(&mut port),
            ("cert-dir", value) => certificates = PathBuf::from(value),
            ("etcd-servers", _) => {
                notes.push("--etcd-servers is not used: the store is inside".to_owned());
            }
            ("service-cluster-ip-range", SERVICE_RANGE) => {}
            ("feature-gates", gates) => {
                let (ours, others) = split_gates(gates);
                if !ours.is_empty() {
                    out.push(format!("--feature-gates={ours}"));
                }
                notes.extend(others.map(|gate| format!("the feature gate {gate} has no effect")));
            }
            (name, value) if is_ours(name) && known(name).is_some() => {
                out.push(format!("--{name}={value}"));
            }
            (name, _) if QUIET.contains(&name) => {}
            (name, _) => notes.push(format!("--{name} has no effect")),
        }
    }
    let address = address.parse().unwrap_or(IpAddr::from([0, 0, 0, 0]));
    let listen = SocketAddr::new(address, port.parse().unwrap_or(0));
    let data = certificates.join("windlass-data");
    out.push(format!("--data={}", data.display()));
    out.push(format!("--listen={listen}"));
    out.push("--controllers=none".to_owned());
    Translated {
        words: out,
        certificates,
        notes,
    }
}

/// Flags of our own are not among upstream's.
fn is_ours(name: &str) -> bool {
    !matches!(name, "data" | "listen" | "controllers" | "config" | "log")
}

/// Flags with their values. One without a value is on.
fn read<'a>(words: &[String], known: &dyn Fn(&str) -> Option<&'a Arg>) -> Vec<(String, String)> {
    let mut flags = Vec::new();
    let mut words = words.iter().peekable();
    while let Some(word) = words.next() {
        let Some(flag) = word.strip_prefix("--").or_else(|| word.strip_prefix('-')) else {
            continue;
        };
        if let Some((name, value)) = flag.split_once('=') {
            flags.push((name.to_owned(), value.to_owned()));
            continue;
        }
        let takes_value = known(flag).is_none_or(|argument| {
            let number = argument.get_num_args();
            number.is_none_or(|number| number.min_values() > 0)
        });
        let next = words.next_if(|next| takes_value && !next.starts_with("--"));
        let value = next.cloned().unwrap_or_else(|| "true".to_owned());
        flags.push((flag.to_owned(), value));
    }
    flags
}

/// The gates that we know, and the names of the others.
fn split_gates(gates: &str) -> (String, impl Iterator<Item = &str>) {
    let is_known = |gate: &&str| gate.starts_with("ServerSideApply=");
    let ours: Vec<&str> = gates.split(',').filter(is_known).collect();
    let others = gates
        .split(',')
        .filter(move |gate| !gate.is_empty() && !is_known(gate));
    (ours.join(","), others)
}

/// The flags, as upstream lists them: one a line.
pub(crate) fn help() -> String {
    let command = Arguments::grammar();
    let mut names: Vec<String> = command
        .get_arguments()
        .filter_map(|argument| argument.get_long())
        .filter(|name| is_ours(name))
        .chain(["bind-address", "cert-dir", "etcd-servers", "secure-port"])
        .map(|name| format!("      --{name}"))
        .collect();
    names.sort();
    format!(
        "This is windlass, called as {NAME}. It takes these flags of kube-apiserver, and lets \
         others pass:\n\n{}\n",
        names.join("\n")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn translated(words: &[&str]) -> Translated {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        translate(&words)
    }

    /// What controller-runtime's envtest passes.
    const ENVTEST: [&str; 13] = [
        "--allow-privileged=true",
        "--authorization-mode=RBAC",
        "--bind-address=127.0.0.1",
        "--cert-dir=/tmp/k8s_test_framework_1",
        "--client-ca-file=/tmp/k8s_test_framework_1/client-cert-auth-ca.crt",
        "--disable-admission-plugins=ServiceAccount",
        "--etcd-servers=http://127.0.0.1:2379",
        "--secure-port=43210",
        "--service-account-issuer=https://127.0.0.1:43210/",
        "--service-account-key-file=/tmp/k8s_test_framework_1/sa-signer.crt",
        "--service-account-signing-key-file=/tmp/k8s_test_framework_1/sa-signer.key",
        "--service-cluster-ip-range=10.0.0.0/24",
        "--advertise-address=127.0.0.1",
    ];

    #[test]
    fn the_flags_of_envtest_are_understood() {
        let translated = translated(&ENVTEST);
        let arguments = Arguments::try_parse_from(&translated.words).unwrap();
        let Command::Serve(serve) = arguments.command() else {
            panic!("it does not serve")
        };
        assert_eq!(serve.listen.to_string(), "127.0.0.1:43210");
        assert_eq!(
            serve.data,
            Path::new("/tmp/k8s_test_framework_1/windlass-data")
        );
        assert_eq!(serve.disable_admission_plugins, ["ServiceAccount"]);
        assert!(serve.controllers().is_empty());
        assert_eq!(translated.notes.len(), 1, "{:?}", translated.notes);
    }

    #[test]
    fn what_is_not_known_passes_with_a_note() {
        let translated = translated(&[
            "--v=4",
            "--feature-gates=ServerSideApply=true,Other=true",
            "--goaway-chance",
            "0.1",
            "--enable-aggregator-routing",
            "--max-requests-inflight",
            "7",
            "--anonymous-auth",
        ]);
        let words = translated.words.join(" ");
        assert!(words.contains("--max-requests-inflight=7"), "{words}");
        assert!(words.contains("--anonymous-auth=true"), "{words}");
        assert!(
            words.contains("--feature-gates=ServerSideApply=true --"),
            "{words}"
        );
        let notes = translated.notes.join("; ");
        for part in [
            "gate Other=true",
            "--goaway-chance",
            "--enable-aggregator-routing",
        ] {
            assert!(notes.contains(part), "{notes}");
        }
    }

    #[test]
    fn the_help_names_flags_but_not_the_one_that_envtest_must_not_find() {
        let help = help();
        assert!(help.contains("--secure-port"), "{help}");
        assert!(!help.contains("--insecure-port"), "{help}");
    }

    #[test]
    fn the_name_decides() {
        for (name, expected) in [
            ("kube-apiserver", true),
            ("/x/kube-apiserver", true),
            ("windlass", false),
        ] {
            assert_eq!(is_called(Some(&OsString::from(name))), expected, "{name}");
        }
    }
}
