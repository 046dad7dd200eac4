//! The control socket: how commands reach the server that uses a data directory.
//!
//! It is a socket in the directory, for its owner only. One request a connection, one line each
//! way: `backup FILE` is answered with `ok REPORT` or `error TEXT`.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use store::{BackupReport, Store};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tracing::warn;

use crate::failure::Failure;

/// A request is no longer than this.
const LINE_BYTES_MAX: u64 = 16 * 1024;

fn socket_path(data: &Path) -> PathBuf {
    data.join("control.sock")
}

/// Answers commands until it is dropped.
pub(crate) async fn listen(data: &Path, store: Store) -> Result<(), Failure> {
    let path = socket_path(data);
    // The directory is locked by us, so a socket in it is left over from a server that died.
    let _ = fs::remove_file(&path);
    let failed = |source| Failure::Write {
        path: path.clone(),
        source,
    };
    let listener = UnixListener::bind(&path).map_err(failed)?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).map_err(failed)?;
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            if let Err(error) = answer(stream, &store).await {
                warn!(%error, "a command was not answered");
            }
        }
    });
    Ok(())
}

async fn answer(mut stream: UnixStream, store: &Store) -> io::Result<()> {
    let (reader, mut writer) = stream.split();
    let mut line = String::new();
    let limited = tokio::io::AsyncReadExt::take(reader, LINE_BYTES_MAX);
    BufReader::new(limited).read_line(&mut line).await?;
    let reply = match line.trim_end().split_once(' ') {
        Some(("backup", file)) => match store.backup(Path::new(file)).await {
            Ok(report) => format!("ok {}\n", describe(&report)),
            Err(error) => format!("error {error}\n"),
        },
        _ => "error unknown command\n".to_owned(),
    };
    writer.write_all(reply.as_bytes()).await
}

/// What a backup holds, for people.
pub(crate) fn describe(report: &BackupReport) -> String {
    let BackupReport {
        records,
        revision,
        bytes,
    } = report;
    format!("{records} objects at revision {revision} ({bytes} bytes)")
}

/// Backs up a data directory: through its server if one runs, else by itself.
pub(crate) async fn backup(data: &Path, file: &Path) -> Result<String, Failure> {
    let file = std::path::absolute(file).map_err(|source| Failure::Write {
        path: file.to_owned(),
        source,
    })?;
    let Ok(mut stream) = UnixStream::connect(socket_path(data)).await else {
        if !data.is_dir() {
            let source = io::Error::from(io::ErrorKind::NotFound);
            return Err(Failure::Directory {
                path: data.to_owned(),
                source,
            });
        }
        let store = Store::open(data, store::Options::default())?;
        let report = store.backup(&file).await?;
        store.close().await;
        return Ok(describe(&report));
    };
    let lost = |source| Failure::Read {
        path: socket_path(data),
        source,
    };
    let (reader, mut writer) = stream.split();
    let request = format!("backup {}\n", file.display());
    writer.write_all(request.as_bytes()).await.map_err(lost)?;
    let mut line = String::new();
    BufReader::new(reader)
        .read_line(&mut line)
        .await
        .map_err(lost)?;
    match line.trim_end().split_once(' ') {
        Some(("ok", report)) => Ok(report.to_owned()),
        Some((_, text)) => Err(Failure::Refused(text.to_owned())),
        None => Err(Failure::Refused("the server gave no answer".to_owned())),
    }
}
