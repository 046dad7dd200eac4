//! Audit events as lines of a file, which is put aside when it is full.
//!
//! One thread writes. Its queue is bounded: when the disk is slower than the requests, they wait,
//! for an event that was let go cannot be made up for.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tokio::sync::{mpsc, oneshot};
use tracing::warn;

use super::Error;

/// Requests wait when this many events are not written yet.
const QUEUE_EVENTS_MAX: usize = 10_000;
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Where events are written, and how much is kept.
#[derive(Clone, Debug)]
pub struct LogOptions {
    /// The file; `-` is stdout.
    pub path: PathBuf,
    /// A file larger than this is put aside; 0 for never.
    pub file_bytes_max: u64,
    /// Files put aside are removed after this many days; 0 for never.
    pub days_max: u32,
    /// How many files put aside are kept; 0 for all.
    pub backups_max: usize,
}

/// What the thread is told.
pub(crate) enum Message {
    Line(Vec<u8>),
    /// Tells when everything before is written.
    Flush(oneshot::Sender<()>),
}

/// Opens the log and starts its thread, which ends with the last sender.
pub(crate) fn start(options: LogOptions) -> Result<mpsc::Sender<Message>, Error> {
    let path = options.path.clone();
    let failed = |source| Error::Log { path, source };
    let mut log = Log::open(options).map_err(failed.clone())?;
    let (sender, mut queue) = mpsc::channel(QUEUE_EVENTS_MAX);
    let thread = std::thread::Builder::new().name("audit-log".to_owned());
    thread
        .spawn(move || {
            while let Some(message) = queue.blocking_recv() {
                let done = match message {
                    Message::Line(line) => log.write(&line),
                    Message::Flush(done) => {
                        let flushed = log.flush();
                        // Nobody may wait any more.
                        let _ = done.send(());
                        flushed
                    }
                };
                let flushed = if queue.is_empty() {
                    log.flush()
                } else {
                    Ok(())
                };
                if let Err(error) = done.and(flushed) {
                    warn!(%error, "an audit event could not be written");
                }
            }
        })
        .map_err(failed)?;
    Ok(sender)
}

struct Log {
    options: LogOptions,
    out: Out,
    written_bytes: u64,
    /// The time in the last file's name, so that the next one's is later.
    aside_millis: u128,
}

enum Out {
    Stdout(io::Stdout),
    File(BufWriter<File>),
}

impl Log {
    fn open(options: LogOptions) -> io::Result<Log> {
        if options.path == Path::new("-") {
            let out = Out::Stdout(io::stdout());
            return Ok(Log {
                options,
                out,
                written_bytes: 0,
                aside_millis: 0,
            });
        }
        let (file, written_bytes) = open_file(&options.path)?;
        Ok(Log {
            options,
            out: Out::File(file),
            written_bytes,
            aside_millis: 0,
        })
    }

    fn write(&mut self, line: &[u8]) -> io::Result<()> {
        let bytes = line.len() as u64 + 1;
        let limit = self.options.file_bytes_max;
        if limit > 0 && self.written_bytes > 0 && self.written_bytes + bytes > limit {
            self.rotate()?;
        }
        self.written_bytes += bytes;
        let out: &mut dyn Write = match &mut self.out {
            Out::Stdout(out) => out,
            Out::File(out) => out,
        };
        out.write_all(line)?;
        out.write_all(b"\n")
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.out {
            Out::Stdout(out) => out.flush(),
            Out::File(out) => out.flush(),
        }
    }

    /// Puts the file aside under the time, and removes what is too old or too much.
    fn rotate(&mut self) -> io::Result<()> {
        let Out::File(_) = &self.out else {
            return Ok(());
        };
        self.flush()?;
        let aside = self.aside(SystemTime::now());
        fs::rename(&self.options.path, aside)?;
        let (file, written_bytes) = open_file(&self.options.path)?;
        (self.out, self.written_bytes) = (Out::File(file), written_bytes);
        self.clean(SystemTime::now())
    }

    /// `audit-2026-01-02T03-04-05.678.log` for `audit.log`; a later one if that is taken.
    fn aside(&mut self, now: SystemTime) -> PathBuf {
        let (stem, extension) = self.names();
        let since = now.duration_since(SystemTime::UNIX_EPOCH);
        let millis = since.map_or(0, |since| since.as_millis());
        let mut millis = millis.max(self.aside_millis + 1);
        loop {
            let seconds = i64::try_from(millis / 1000).unwrap_or(0);
            let time = object::time::Time::from_unix_seconds(seconds).to_string();
            let time = time.trim_end_matches('Z').replace(':', "-");
            let name = format!("{stem}-{time}.{:03}{extension}", millis % 1000);
            let path = self.options.path.with_file_name(name);
            if !path.exists() {
                self.aside_millis = millis;
                return path;
            }
            millis += 1;
        }
    }

    fn names(&self) -> (String, String) {
        let text =
            |part: Option<&std::ffi::OsStr>| part.map(|part| part.to_string_lossy().into_owned());
        let stem = text(self.options.path.file_stem()).unwrap_or_default();
        let extension = text(self.options.path.extension());
        (stem, extension.map_or(String::new(), |it| format!(".{it}")))
    }

    fn clean(&self, now: SystemTime) -> io::Result<()> {
        let (stem, extension) = self.names();
        let folder = match self.options.path.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        };
        let prefix = format!("{stem}-");
        let mut backups: Vec<PathBuf> = fs::read_dir(folder)?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| {
                let name = path.file_name().map(|name| name.to_string_lossy());
                name.is_some_and(|name| {
                    let time = name.strip_prefix(&prefix);
                    let time = time.and_then(|rest| rest.strip_suffix(&extension));
                    time.is_some_and(|time| time.len() == "2026-01-02T03-04-05.678".len())
                })
            })
            .collect();
        // The name is the time: the newest first.
        backups.sort();
        backups.reverse();
        for (place, path) in backups.iter().enumerate() {
            let many = self.options.backups_max > 0 && place >= self.options.backups_max;
            let written = fs::metadata(path).and_then(|meta| meta.modified());
            let age = written
                .ok()
                .and_then(|written| now.duration_since(written).ok());
            let old = self.options.days_max > 0
                && age.is_some_and(|age| age > DAY * self.options.days_max);
            if many || old {
                fs::remove_file(path)?;
            }
        }
        Ok(())
    }
}

fn open_file(path: &Path) -> io::Result<(BufWriter<File>, u64)> {
    let file = File::options()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(path)?;
    let written = file.metadata()?.len();
    Ok((BufWriter::new(file), written))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_file_is_put_aside_and_old_ones_are_removed() {
        let folder = std::env::temp_dir().join(format!("windlass-audit-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let options = LogOptions {
            path: folder.join("audit.log"),
            file_bytes_max: 40,
            days_max: 1,
            backups_max: 2,
        };
        fs::write(folder.join("audit-notes.log"), "kept").unwrap();
        let mut log = Log::open(options).unwrap();
        for number in 0..9 {
            log.write(format!("event number {number:06}").as_bytes())
                .unwrap();
        }
        log.flush().unwrap();
        let mut names: Vec<String> = fs::read_dir(&folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        assert_eq!(names.len(), 4, "{names:?}");
        let newest = fs::read_to_string(folder.join("audit.log")).unwrap();
        assert_eq!(newest, "event number 000008\n");
        let before = fs::read_to_string(folder.join(&names[1])).unwrap();
        assert_eq!(before, "event number 000006\nevent number 000007\n");
        log.clean(SystemTime::now() + 2 * DAY).unwrap();
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 2);
        fs::remove_dir_all(&folder).unwrap();
    }
}
