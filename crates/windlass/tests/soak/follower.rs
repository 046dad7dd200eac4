//! A client that lists and watches over HTTP written by hand, goes on where it was cut off, and
//! writes down everything it sees.

use std::collections::BTreeMap;
use std::io::{Error, ErrorKind, Result};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::ServerName;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::gate::Gate;
use super::guarantees::{Change, Seen};
use super::{Objects, Progress, Random, content_of, version_of};

const COLLECTION: &str = "/api/v1/namespaces/default/configmaps";
/// A client that follows a collection.
pub(crate) struct Follower {
    pub gate: Gate,
    pub tls: Arc<rustls::ClientConfig>,
    pub token: String,
    pub progress: Progress,
    pub random: Random,
    /// One in so many ends of a session is followed by a long absence.
    pub absences: u64,
    /// Changes that an absence lasts, which may outlast the history,
    pub absence_changes: usize,
    /// and the time that it lasts at least.
    pub absence_time: Duration,
}

/// What a follower brings home.
pub(crate) struct Followed {
    pub log: Vec<Seen>,
    pub objects: Objects,
    /// How often its version was too old to go on.
    pub expired: usize,
}

type Answer = BufReader<TlsStream<TcpStream>>;

impl Follower {
    /// Follows until it has seen the last change.
    pub(crate) async fn run(mut self) -> Followed {
        let mut home = Followed {
            log: Vec::new(),
            objects: BTreeMap::new(),
            expired: 0,
        };
        let mut position = None;
        loop {
            if self.is_home(position) {
                return home;
            }
            // However a session ends, the next one goes on.
            let _ = match position {
                None => self.list(&mut home, &mut position).await,
                Some(from) => self.watch(from, &mut home, &mut position).await,
            };
            if self.random.below(self.absences) == 0 {
                let long_enough = async {
                    tokio::select! {
                        () = tokio::time::sleep(self.absence_time) => {}
                        () = self.progress.end() => {}
                    }
                };
                tokio::join!(self.progress.later(self.absence_changes), long_enough);
            }
        }
    }

    fn is_home(&self, position: Option<u64>) -> bool {
        let last = self.progress.last();
        last.is_some_and(|last| position >= Some(last))
    }

    async fn list(&mut self, home: &mut Followed, position: &mut Option<u64>) -> Result<()> {
        let mut answer = self.ask(COLLECTION).await?;
        let mut text = Vec::new();
        while let Some(chunk) = answer.chunk().await? {
            text.extend_from_slice(&chunk);
        }
        let list: Value = serde_json::from_slice(&text)?;
        let items = list["items"].as_array().ok_or_else(odd)?;
        let object = |item: &Value| {
            let name = item["metadata"]["name"].as_str().unwrap_or_default();
            (name.to_owned(), (version_of(item), content_of(item)))
        };
        home.objects = items.iter().map(object).collect();
        let version = version_of(&list);
        home.log.push(Seen::List(version, home.objects.clone()));
        *position = Some(version);
        Ok(())
    }

    async fn watch(
        &mut self,
        from: u64,
        home: &mut Followed,
        position: &mut Option<u64>,
    ) -> Result<()> {
        let query = "watch=1&allowWatchBookmarks=true&timeoutSeconds=3";
        let path = format!("{COLLECTION}?{query}&resourceVersion={from}");
        let mut answer = self.ask(&path).await?;
        home.log.push(Seen::Resumed(from));
        let mut text = Vec::new();
        while !self.is_home(*position) {
            let Some(chunk) = answer.chunk().await? else {
                return Ok(());
            };
            text.extend_from_slice(&chunk);
            while let Some(end) = text.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = text.drain(..=end).collect();
                let event: Value = serde_json::from_slice(&line)?;
                if !take(&event, home, position) {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    async fn ask(&self, path: &str) -> Result<Body> {
        let socket = TcpStream::connect(self.gate.address).await?;
        let name = ServerName::try_from("localhost").map_err(Error::other)?;
        let connector = TlsConnector::from(Arc::clone(&self.tls));
        let mut stream = BufReader::new(connector.connect(name, socket).await?);
        let request = format!(
            "GET {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\n\r\n",
            self.token
        );
        stream.write_all(request.as_bytes()).await?;
        let mut length = None;
        let mut line = String::new();
        stream.read_line(&mut line).await?;
        if !line.starts_with("HTTP/1.1 200 ") {
            return Err(odd());
        }
        loop {
            line.clear();
            stream.read_line(&mut line).await?;
            match line.trim_end().split_once(':') {
                Some(("content-length", value)) => length = value.trim().parse().ok(),
                Some(_) => {}
                None => return Ok(Body { stream, length }),
            }
        }
    }
}

/// The body of an answer: of a length that is told, or in chunks.
struct Body {
    stream: Answer,
    length: Option<usize>,
}

impl Body {
    async fn chunk(&mut self) -> Result<Option<Vec<u8>>> {
        let stream = &mut self.stream;
        if let Some(length) = self.length {
            self.length = Some(0);
            let mut bytes = vec![0; length];
            stream.read_exact(&mut bytes).await?;
            return Ok((length > 0).then_some(bytes));
        }
        let mut line = String::new();
        stream.read_line(&mut line).await?;
        let length = usize::from_str_radix(line.trim_end(), 16).map_err(|_| odd())?;
        let mut bytes = vec![0; length + 2];
        stream.read_exact(&mut bytes).await?;
        bytes.truncate(length);
        Ok((length > 0).then_some(bytes))
    }
}

/// Takes an event in; tells whether the session goes on.
fn take(event: &Value, home: &mut Followed, position: &mut Option<u64>) -> bool {
    let object = &event["object"];
    let (version, content) = (version_of(object), content_of(object));
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let change = match event["type"].as_str() {
        Some("ADDED") => Change::Added,
        Some("MODIFIED") => Change::Modified,
        Some("DELETED") => Change::Deleted,
        Some("BOOKMARK") => {
            home.log.push(Seen::Bookmark(version));
            *position = Some(version);
            return true;
        }
        _ => {
            assert_eq!(object["code"], 410, "a watch ends with {event}");
            home.expired += 1;
            *position = None;
            return false;
        }
    };
    let seen = Seen::Event(version, change, name.to_owned(), content.clone());
    home.log.push(seen);
    *position = Some(version);
    match change {
        Change::Deleted => home.objects.remove(name),
        _ => home.objects.insert(name.to_owned(), (version, content)),
    };
    true
}

fn odd() -> Error {
    ErrorKind::InvalidData.into()
}
