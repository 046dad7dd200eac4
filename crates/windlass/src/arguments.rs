//! The command line. Every flag has an environment form, `WINDLASS_` and its name.

pub(crate) mod flags;
pub(crate) mod identity;
pub(crate) mod oidc;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use resources::Controller;
use resources::admission::Chain;
use tracing::level_filters::LevelFilter;

use flags::Flags;
use identity::Identity;

/// How long a batch of audit events waits for its second attempt.
const AUDIT_BACKOFF: Duration = Duration::from_secs(10);

/// A Kubernetes-compatible API server with Server-Side Apply at its heart.
///
/// Without a command it serves: TLS on 127.0.0.1:6443, data in ./windlass-data.
#[derive(Debug, Parser)]
#[command(name = "windlass", version, args_conflicts_with_subcommands = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    serve: Serve,
}

impl Arguments {
    /// What can be written.
    pub(crate) fn grammar() -> clap::Command {
        <Arguments as clap::CommandFactory>::command()
    }

    /// The command; serving is the default.
    pub(crate) fn command(self) -> Command {
        self.command
            .unwrap_or_else(|| Command::Serve(Box::new(self.serve)))
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve the API.
    Serve(Box<Serve>),
    /// Copy the data of a running or stopped server into a file.
    Backup(Backup),
    /// Make a data directory out of a backup.
    Restore(Restore),
    /// Check a data directory for damage.
    Check(Check),
    /// Make a kubeconfig for a user.
    Kubeconfig(Kubeconfig),
    /// Print a configuration with a new key that encrypts resources on disk.
    EncryptionConfig(EncryptionConfig),
}

#[derive(Clone, Debug, Args)]
pub(crate) struct Serve {
    // First, because reading a flag takes it away.
    #[command(flatten)]
    pub flags: Flags,
    /// A YAML file with flags: each key is the long name of one.
    ///
    /// `listen: 127.0.0.1:6443`, or a list for a flag that takes one. What the command line or the
    /// environment says wins.
    #[arg(long, env = "WINDLASS_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Where the data is.
    ///
    /// The directory is made with mode 0700 if it is missing. It holds the objects, the
    /// certificates and the admin credentials; one server uses it at a time.
    #[arg(
        long,
        env = "WINDLASS_DATA",
        default_value = "./windlass-data",
        value_name = "DIR"
    )]
    pub data: PathBuf,
    /// Where to listen.
    ///
    /// Port 0 picks a free port, which is printed.
    #[arg(
        long,
        env = "WINDLASS_LISTEN",
        default_value = "127.0.0.1:6443",
        value_name = "ADDR:PORT"
    )]
    pub listen: SocketAddr,
    /// How long old versions are kept.
    ///
    /// Watches resume and lists read the past within this time: 300s, 5m, 24h, 7d.
    #[arg(long, env = "WINDLASS_HISTORY", default_value = "5m", value_parser = duration,
          value_name = "DURATION")]
    pub history: Duration,
    /// How many bytes of old versions are kept at most.
    ///
    /// Whichever of this and --history is reached first counts.
    #[arg(long, env = "WINDLASS_HISTORY_BYTES", default_value_t = 1 << 30, value_name = "N")]
    pub history_bytes: u64,
    /// Which controllers to run inside, or `none`.
    ///
    /// Names are separated by commas; `*` stands for all, `-NAME` takes one away.
    /// namespace-controller empties namespaces that are deleted; garbage-collector-controller
    /// collects dependents whose owners are gone; clusterrole-aggregation-controller fills
    /// aggregated cluster roles; serviceaccount-controller and
    /// root-ca-certificate-publisher-controller give each namespace its default service account
    /// and the certificate of the API server; validatingadmissionpolicy-status-controller says
    /// which expressions of policies do not fit. With `none` a real kube-controller-manager does
    /// this work.
    #[arg(
        long,
        env = "WINDLASS_CONTROLLERS",
        default_value = "*",
        value_parser = controller,
        value_delimiter = ',',
        value_name = "LIST|none"
    )]
    pub controllers: Vec<String>,
    /// Admission plugins to switch on beside those that are on by default.
    ///
    /// Names as upstream spells them, separated by commas.
    #[arg(
        long,
        env = "WINDLASS_ENABLE_ADMISSION_PLUGINS",
        value_parser = plugin,
        value_delimiter = ',',
        value_name = "LIST"
    )]
    pub enable_admission_plugins: Vec<String>,
    /// Admission plugins to switch off.
    ///
    /// Names as upstream spells them, separated by commas. Upstream's plugins that do not exist
    /// here are accepted, since being off is what is asked for.
    #[arg(
        long,
        env = "WINDLASS_DISABLE_ADMISSION_PLUGINS",
        value_parser = plugin,
        value_delimiter = ',',
        value_name = "LIST"
    )]
    pub disable_admission_plugins: Vec<String>,
    /// Whether containers may be privileged.
    #[arg(
        long,
        env = "WINDLASS_ALLOW_PRIVILEGED",
        default_value_t = false,
        num_args = 0..=1,
        default_missing_value = "true",
        action = clap::ArgAction::Set,
        value_name = "BOOL"
    )]
    pub allow_privileged: bool,
    /// Gates of features to switch, such as ServerSideApply=false.
    ///
    /// Only ServerSideApply is known; without it, apply answers 415 and writes drop managed fields.
    #[arg(long, env = "WINDLASS_FEATURE_GATES", value_delimiter = ',', value_parser = gate,
          value_name = "NAME=BOOL")]
    pub feature_gates: Vec<(String, bool)>,
    /// Requests that read, worked on at a time; 0 for no limit.
    ///
    /// With priority and fairness, the sum of this and of --max-mutating-requests-inflight is what
    /// the priority levels share. Requests that last, such as watches, are not counted.
    #[arg(
        long,
        env = "WINDLASS_MAX_REQUESTS_INFLIGHT",
        default_value_t = 400,
        value_name = "N"
    )]
    pub max_requests_inflight: u32,
    /// Requests that write, worked on at a time; 0 for no limit.
    ///
    /// See --max-requests-inflight.
    #[arg(
        long,
        env = "WINDLASS_MAX_MUTATING_REQUESTS_INFLIGHT",
        default_value_t = 200,
        value_name = "N"
    )]
    pub max_mutating_requests_inflight: u32,
    /// Whether FlowSchemas and PriorityLevelConfigurations decide whose turn it is.
    ///
    /// Without them the two limits above hold for everyone but system:masters.
    #[arg(
        long,
        env = "WINDLASS_ENABLE_PRIORITY_AND_FAIRNESS",
        default_value_t = true,
        num_args = 0..=1,
        default_missing_value = "true",
        action = clap::ArgAction::Set,
        value_name = "BOOL"
    )]
    pub enable_priority_and_fairness: bool,
    /// Whether each thread that answers requests stays on a processor of its own.
    ///
    /// That makes writes faster. Switch it off where others are kept on the same processors, or
    /// where the server shall stay out of their way. It is off where the server may not use all
    /// the time of its processors.
    #[arg(
        long,
        env = "WINDLASS_PIN_WORKERS",
        default_value_t = true,
        num_args = 0..=1,
        default_missing_value = "true",
        action = clap::ArgAction::Set,
        value_name = "BOOL"
    )]
    pub pin_workers: bool,
    /// Which requests are recorded, and how much of them.
    ///
    /// A Policy of audit.k8s.io/v1. Events go to --audit-log-path, to --audit-webhook-config-file
    /// or to both.
    #[arg(long, env = "WINDLASS_AUDIT_POLICY_FILE", value_name = "FILE")]
    pub audit_policy_file: Option<PathBuf>,
    /// The file that audit events are written to, one a line; - is stdout.
    ///
    /// Requests wait for it when it is slow. Without it nothing is written.
    #[arg(long, env = "WINDLASS_AUDIT_LOG_PATH", value_name = "FILE|-")]
    pub audit_log_path: Option<PathBuf>,
    /// Megabytes after which the audit log is put aside; 0 for never.
    ///
    /// The file gets the time into its name, and a new one begins.
    #[arg(
        long,
        env = "WINDLASS_AUDIT_LOG_MAXSIZE",
        default_value_t = 100,
        value_name = "MEGABYTES"
    )]
    pub audit_log_maxsize: u32,
    /// Days after which audit logs that were put aside are removed; 0 for never.
    ///
    /// They are looked through whenever one is put aside.
    #[arg(
        long,
        env = "WINDLASS_AUDIT_LOG_MAXAGE",
        default_value_t = 366,
        value_name = "DAYS"
    )]
    pub audit_log_maxage: u32,
    /// How many audit logs that were put aside are kept; 0 for all.
    ///
    /// The oldest are removed first.
    #[arg(
        long,
        env = "WINDLASS_AUDIT_LOG_MAXBACKUP",
        default_value_t = 100,
        value_name = "N"
    )]
    pub audit_log_maxbackup: usize,
    /// A kubeconfig file that names where audit events are sent to.
    ///
    /// They are sent in batches. No request waits for them: when the other side is too slow, events
    /// are let go and counted in apiserver_audit_error_total.
    #[arg(long, env = "WINDLASS_AUDIT_WEBHOOK_CONFIG_FILE", value_name = "FILE")]
    pub audit_webhook_config_file: Option<PathBuf>,
    /// How many audit events a batch holds at most.
    ///
    /// A full batch is sent at once.
    #[arg(
        long,
        env = "WINDLASS_AUDIT_WEBHOOK_BATCH_MAX_SIZE",
        default_value_t = 400,
        value_name = "N"
    )]
    pub audit_webhook_batch_max_size: usize,
    /// How long an audit event waits for others to be sent with it.
    ///
    /// Written as --history is.
    #[arg(long, env = "WINDLASS_AUDIT_WEBHOOK_BATCH_MAX_WAIT", default_value = "30s",
          value_parser = duration, value_name = "DURATION")]
    pub audit_webhook_batch_max_wait: Duration,
    /// Which resources are encrypted on disk, and with which keys.
    ///
    /// An EncryptionConfiguration of apiserver.config.k8s.io/v1 with the providers aesgcm, aescbc,
    /// secretbox and identity; `windlass encryption-config` makes one. What was written before is
    /// encrypted as soon as it is written again.
    #[arg(long, env = "WINDLASS_ENCRYPTION_PROVIDER_CONFIG", value_name = "FILE")]
    pub encryption_provider_config: Option<PathBuf>,
    /// How much to log: off, error, warn, info, debug or trace.
    #[arg(
        long,
        env = "WINDLASS_LOG",
        default_value = "info",
        value_name = "LEVEL"
    )]
    pub log: LevelFilter,
    #[command(flatten)]
    pub identity: Identity,
}

impl Serve {
    /// The controllers that run inside.
    pub(crate) fn controllers(&self) -> Vec<Controller> {
        let named = |name: &str| self.controllers.iter().any(|it| it == name);
        let runs = |controller: &Controller| {
            let name = controller.name();
            (named("*") || named(name)) && !named(&format!("-{name}"))
        };
        let all = Controller::ALL.into_iter();
        all.filter(|it| runs(it) && !named("none")).collect()
    }

    /// How many requests are worked on at a time.
    pub(crate) fn limits(&self) -> server::Limits {
        server::Limits {
            reads_max: self.max_requests_inflight,
            writes_max: self.max_mutating_requests_inflight,
            fair: self.enable_priority_and_fairness,
        }
    }

    /// Where audit events are written.
    pub(crate) fn audit_log(&self) -> Option<server::audit::LogOptions> {
        let path = self.audit_log_path.clone()?;
        Some(server::audit::LogOptions {
            path,
            file_bytes_max: u64::from(self.audit_log_maxsize) * 1024 * 1024,
            days_max: self.audit_log_maxage,
            backups_max: self.audit_log_maxbackup,
        })
    }

    /// Where audit events are sent.
    pub(crate) fn audit_webhook(&self) -> Option<server::audit::WebhookOptions> {
        let config = self.audit_webhook_config_file.clone()?;
        Some(server::audit::WebhookOptions {
            config,
            batch_events_max: self.audit_webhook_batch_max_size.max(1),
            batch_wait_max: self.audit_webhook_batch_max_wait,
            backoff: AUDIT_BACKOFF,
        })
    }

    /// Whether server-side apply is switched on.
    pub(crate) fn server_side_apply(&self) -> bool {
        let named = self
            .feature_gates
            .iter()
            .rev()
            .find(|(name, _)| name == "ServerSideApply");
        named.is_none_or(|(_, on)| *on)
    }
}

#[derive(Debug, Args)]
pub(crate) struct Backup {
    /// The file to write; it must not exist.
    pub file: PathBuf,
    /// Where the data is.
    #[arg(
        long,
        env = "WINDLASS_DATA",
        default_value = "./windlass-data",
        value_name = "DIR"
    )]
    pub data: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct Restore {
    /// The backup to read.
    pub file: PathBuf,
    /// The directory to make; it must not hold data.
    #[arg(
        long,
        env = "WINDLASS_DATA",
        default_value = "./windlass-data",
        value_name = "DIR"
    )]
    pub data: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct Check {
    /// Where the data is.
    #[arg(
        long,
        env = "WINDLASS_DATA",
        default_value = "./windlass-data",
        value_name = "DIR"
    )]
    pub data: PathBuf,
}

/// Makes a client certificate, signed by the authority of the data directory, and prints a
/// kubeconfig with it and its key. The server need not run, and is not told: it trusts the
/// certificate until it ends.
#[derive(Debug, Args)]
pub(crate) struct Kubeconfig {
    /// The name of the user.
    #[arg(long, value_name = "NAME")]
    pub user: String,
    /// A group that the user belongs to; may be repeated.
    #[arg(long, value_name = "NAME")]
    pub group: Vec<String>,
    /// How long the certificate is good: 30m, 24h, 7d.
    #[arg(long, default_value = "24h", value_parser = duration, value_name = "DURATION")]
    pub expires: Duration,
    /// The address of the server; that of the admin's kubeconfig unless given.
    #[arg(long, value_name = "URL")]
    pub server: Option<String>,
    /// The file to write, with mode 0600; standard output unless given.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Where the data is.
    #[arg(
        long,
        env = "WINDLASS_DATA",
        default_value = "./windlass-data",
        value_name = "DIR"
    )]
    pub data: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct EncryptionConfig {
    /// The resources to encrypt, such as secrets, configmaps or *.apps.
    #[arg(
        long,
        env = "WINDLASS_RESOURCES",
        default_value = "secrets",
        value_delimiter = ',',
        value_name = "LIST"
    )]
    pub resources: Vec<String>,
    /// The cipher: aesgcm, secretbox or aescbc.
    #[arg(long, env = "WINDLASS_PROVIDER", default_value = "secretbox", value_parser = provider,
          value_name = "NAME")]
    pub provider: resources::encryption::Kind,
    /// The name of the key; choose another for the key that replaces it.
    #[arg(
        long,
        env = "WINDLASS_KEY_NAME",
        default_value = "key1",
        value_name = "NAME"
    )]
    pub key_name: String,
}

fn provider(text: &str) -> Result<resources::encryption::Kind, String> {
    use resources::encryption::Kind;
    let kinds = [Kind::AesGcm, Kind::Secretbox, Kind::AesCbc];
    let kind = kinds.into_iter().find(|kind| kind.name() == text);
    kind.ok_or_else(|| format!("there is no provider {text}; known are aesgcm, secretbox, aescbc"))
}

fn controller(text: &str) -> Result<String, String> {
    let names = Controller::ALL.map(Controller::name);
    let name = text.strip_prefix('-').unwrap_or(text);
    if matches!(text, "*" | "none") || names.contains(&name) {
        return Ok(text.to_owned());
    }
    Err(format!(
        "there is no controller {name}; write * for all, none, or some of: {}",
        names.join(", ")
    ))
}

fn plugin(text: &str) -> Result<String, String> {
    Chain::check_name(text).map_err(|error| error.to_string())?;
    Ok(text.to_owned())
}

fn gate(text: &str) -> Result<(String, bool), String> {
    let (name, value) = text
        .split_once('=')
        .ok_or("a gate is written NAME=true or NAME=false")?;
    if name != "ServerSideApply" {
        return Err(format!(
            "there is no feature gate {name}; known are: ServerSideApply"
        ));
    }
    let on = value
        .parse()
        .map_err(|_| format!("{value} is neither true nor false"))?;
    Ok((name.to_owned(), on))
}

/// Reads `300s`, `5m`, `24h` or `7d`, or several of them together.
fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text} is no duration; write for example 300s, 5m, 24h or 7d");
    let mut seconds = 0u64;
    let mut number = String::new();
    for character in text.chars() {
        if character.is_ascii_digit() {
            number.push(character);
            continue;
        }
        let unit = match character {
            's' => 1,
            'm' => 60,
            'h' => 3600,
            'd' => 86_400,
            _ => return Err(wrong()),
        };
        let count: u64 = number.parse().map_err(|_| wrong())?;
        number.clear();
        seconds = count
            .checked_mul(unit)
            .and_then(|it| it.checked_add(seconds))
            .ok_or_else(wrong)?;
    }
    if !number.is_empty() || seconds == 0 {
        return Err(wrong());
    }
    Ok(Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        <Arguments as CommandFactory>::command().debug_assert();
    }

    #[test]
    fn every_flag_has_a_short_line_a_long_one_and_an_environment_form() {
        let command = <Arguments as CommandFactory>::command();
        for flag in command
            .get_arguments()
            .filter(|flag| flag.get_long().is_some())
        {
            let name = flag.get_id().as_str();
            if matches!(name, "help" | "version") {
                continue;
            }
            assert!(flag.get_help().is_some(), "{name} has no help");
            let env = format!("WINDLASS_{}", name.to_uppercase());
            assert_eq!(
                flag.get_env().and_then(|env| env.to_str()),
                Some(env.as_str())
            );
        }
    }

    #[test]
    fn which_controllers_run() {
        let run = |list: &str| {
            let arguments = Arguments::try_parse_from(["windlass", "--controllers", list]);
            let Command::Serve(serve) = arguments?.command() else {
                unreachable!("serving is the default")
            };
            Ok::<_, clap::Error>(serve.controllers())
        };
        assert_eq!(run("*").unwrap(), Controller::ALL);
        assert_eq!(run("none").unwrap(), []);
        let one = run("namespace-controller").unwrap();
        assert_eq!(one, [Controller::Namespace]);
        let but_one = run("*,-namespace-controller").unwrap();
        assert_eq!(but_one.len(), Controller::ALL.len() - 1);
        assert!(run("namespaces").is_err());
    }

    #[test]
    fn which_durations_are_read() {
        assert_eq!(duration("300s"), Ok(Duration::from_secs(300)));
        assert_eq!(duration("1h30m"), Ok(Duration::from_secs(5400)));
        assert_eq!(duration("7d"), Ok(Duration::from_secs(604_800)));
        for wrong in ["", "5", "m", "5x", "0s", "99999999999999999999d"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }
}
