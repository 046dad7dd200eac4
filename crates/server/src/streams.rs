//! Watches as streams of frames.
//!
//! An event is framed once per wire form, however many watchers see it: the frame is kept with the
//! event. A watcher that stops reading stops being asked for frames; it costs a position in the
//! feed, no memory, and its connection is closed by the write timeout.

use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::stream::{self, Stream};
use hyper::Response;
use hyper::header::{self, HeaderValue};
use kinds::Kind;
use object::{Map, Value, json};
use resources::body::Media;
use resources::record::Stored;
use resources::{Error, Initial, Notice, Record, Resources, Revision, Watching};
use store::Event;
use tokio::sync::watch;
use tokio::time::{Instant, Sleep, sleep_until};

use crate::answer::Failure;
use crate::body::Body;
use crate::handle::Call;
use crate::negotiate::{NotAcceptable, Representation, Shape};
use crate::protobuf;
use crate::render::{self, partial};
use crate::request::ResourcePath;
use crate::state::State;
use crate::table;
use crate::websocket::{self, Message};

/// A watch without `timeoutSeconds` lasts this long, and up to as long again.
const WATCH_SECONDS_MIN: u64 = 1800;
const BOOKMARK_EVERY: Duration = Duration::from_secs(60);
/// The last bookmark comes this long before the end.
const BOOKMARK_BEFORE_END: Duration = Duration::from_secs(2);
/// Events that are ready at once are sent together, up to about this much.
const BATCH_BYTES: usize = 64 * 1024;

/// What it costs to hand a frame to one of many watchers, about. In a row of events each watcher
/// is written to once in the time that a round over all of them takes, and gets whatever happened
/// meanwhile in one piece. If that was more than one event a round, they come faster than rounds
/// do: then every other round is left out, so that watchers never take all of the processor.
const WATCHER_COST: Duration = Duration::from_micros(40);
/// No watcher waits longer than this for the others.
const REST_MAX: Duration = Duration::from_millis(10);
/// With so few watchers a round costs less than a timer can measure.
const REST_MIN: Duration = Duration::from_millis(1);

/// Frames of one event, by wire form; kept with the event and shared by its watchers.
#[derive(Default)]
struct Frames {
    json: OnceLock<Bytes>,
    protobuf: OnceLock<Bytes>,
}

/// Answers a watch.
pub(crate) async fn watch(
    call: &mut Call,
    kind: &Arc<Kind>,
    path: &ResourcePath,
    representation: Representation,
) -> Result<Response<Body>, Failure> {
    let (mut options, seconds) = call.query.watch_options(kind)?;
    if path.watch_prefix && !path.name.is_empty() {
        let selector = format!("metadata.name={}", path.name);
        options.selection.fields =
            object::fields::FieldSelector::parse(&selector).map_err(Error::BadRequest)?;
    }
    let seconds = seconds.unwrap_or_else(random_lifetime);
    let watching = call
        .state
        .resources
        .watch(kind, &path.namespace, options)
        .await;
    let include = match representation.shape {
        Shape::Table(_) => table::Include::of(call)?,
        _ => table::Include::Metadata,
    };
    if representation.media == Media::Yaml {
        return Err(NotAcceptable::Stream.into());
    }
    let now = Instant::now();
    let end = now + Duration::from_secs(seconds);
    call.state.metrics.watch_began();
    let upgrade = websocket::is_wanted(&call.headers).then(|| call.upgrade.take());
    let upgrade = upgrade.flatten();
    let message = match representation.media {
        Media::Protobuf => Message::Binary,
        Media::Json | Media::Yaml => Message::Text,
    };
    let flow = Flow {
        message: upgrade.is_some().then_some(message),
        media: representation.media,
        shape: representation.shape,
        include,
        headed: false,
        kind: Arc::clone(kind),
        end,
        bookmark: next_bookmark(now, end),
        timer: Box::pin(sleep_until(end)),
        sent: None,
        held: None,
        source: watching.map_err(Some),
        state: Arc::clone(&call.state),
        // Asked to be over before it begins.
        ended: seconds == 0,
    };
    let frames = flow.frames(call.state.stopped());
    if let Some(upgrade) = upgrade {
        return websocket::answer(&call.headers, upgrade, frames);
    }
    let mut answer = Response::new(Body::stream(frames));
    let content_type = match representation.media {
        Media::Protobuf => protobuf::WATCH_CONTENT_TYPE,
        Media::Json | Media::Yaml => "application/json",
    };
    answer
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    Ok(answer)
}

/// Waits until a custom kind is no longer served as it was: then its watchers start again.
async fn until_replaced(served: Option<(Resources, Arc<Kind>)>) {
    let Some((resources, kind)) = served else {
        return std::future::pending().await;
    };
    let mut changes = resources.catalogue_changes();
    loop {
        if !resources.serves(&kind) || changes.changed().await.is_err() {
            return;
        }
    }
}

/// Spreads the ends of watches that began together.
fn random_lifetime() -> u64 {
    let spread = resources::ids::uuid().bytes().map(u64::from).sum::<u64>();
    WATCH_SECONDS_MIN + spread % WATCH_SECONDS_MIN
}

/// A watch on its way to the client.
struct Flow {
    /// How frames are wrapped, if they are sent over a WebSocket.
    message: Option<Message>,
    media: Media,
    shape: Shape,
    include: table::Include,
    /// Whether a table's columns have been sent.
    headed: bool,
    kind: Arc<Kind>,
    end: Instant,
    bookmark: Instant,
    /// Goes off at the next bookmark or at the end. It is kept, for most frames come before it.
    timer: Pin<Box<Sleep>>,
    /// When frames were handed on last, and for how many rounds to rest then.
    sent: Option<(Instant, u32)>,
    /// What waits for the end of a rest.
    held: Option<Bytes>,
    source: Result<Watching, Option<Error>>,
    state: Arc<State>,
    ended: bool,
}

impl Drop for Flow {
    fn drop(&mut self) {
        self.state.metrics.watch_ended();
    }
}

impl Flow {
    /// What the client reads, until the watch ends or the server does.
    fn frames(self, stopped: watch::Receiver<bool>) -> impl Stream<Item = Bytes> + Send {
        let stop = Box::pin(async move {
            let mut stopped = stopped;
            // A dropped sender means the server is gone, which ends the watch as well.
            let _ = stopped.wait_for(|stopping| *stopping).await;
        });
        // In boxes: the stream moves them at every frame.
        stream::unfold((Box::new(self), stop), |(mut flow, mut stop)| async move {
            let custom = flow.kind.is_custom();
            let served = custom.then(|| (flow.state.resources.clone(), Arc::clone(&flow.kind)));
            let frame = tokio::select! {
                biased;
                () = &mut stop => None,
                // What is known by now is told before the watch ends with its kind.
                frame = flow.next() => frame,
                () = until_replaced(served) => flow.held(),
            };
            frame.map(|frame| (frame, (flow, stop)))
        })
    }

    /// The next frames, as many as are ready; `None` at the end.
    async fn next(&mut self) -> Option<Bytes> {
        if self.ended {
            return None;
        }
        let watching = match &mut self.source {
            Ok(watching) => watching,
            Err(error) => {
                self.ended = true;
                let error = error.take();
                return error.map(|error| self.wrapped(self.error_frame(error)));
            }
        };
        let bookmarks = watching.wants_bookmarks() && self.bookmark <= self.end;
        let due = if bookmarks { self.bookmark } else { self.end };
        if self.timer.deadline() != due {
            self.timer.as_mut().reset(due);
        }
        let first = tokio::select! {
            biased;
            notice = watching.next() => notice,
            () = &mut self.timer => {
                if !bookmarks {
                    return None;
                }
                self.bookmark = next_bookmark(self.bookmark, self.end);
                Ok(Notice::Bookmark(watching.position(), Initial::No))
            }
        };
        let watchers = watching.watchers();
        let first = match first {
            // No event can be shown as a list, and the first one to be shown ends the watch.
            Ok(_) if matches!(self.shape, Shape::MetadataList(_)) => {
                self.ended = true;
                return None;
            }
            Ok(notice) => self.frame(notice),
            Err(error) => {
                self.ended = true;
                return Some(self.wrapped(self.error_frame(error)));
            }
        };
        // Not in this future, which is dropped when the kind goes meanwhile.
        self.held = Some(first);
        if let Some((sent, rounds)) = self.sent
            && let Some(rest) = rest(watchers, rounds)
        {
            sleep_until(sent + rest).await;
        }
        self.held()
    }

    /// What is held back, with whatever else is ready.
    fn held(&mut self) -> Option<Bytes> {
        let first = self.held.take()?;
        let mut frames = 1;
        let mut all: Option<BytesMut> = None;
        loop {
            let size = all.as_ref().map_or(first.len(), BytesMut::len);
            let Ok(watching) = &mut self.source else {
                break;
            };
            if size >= BATCH_BYTES {
                break;
            }
            // A failure is told by the next call, after what is ready has been sent.
            let Ok(Some(notice)) = watching.try_next() else {
                break;
            };
            let frame = self.frame(notice);
            all.get_or_insert_with(|| BytesMut::from(&first[..]))
                .extend_from_slice(&frame);
            frames += 1;
        }
        let rested = self.sent.map_or(1, |(_, rounds)| rounds);
        let rounds = if frames > rested { 2 } else { 1 };
        self.sent = Some((Instant::now(), rounds));
        Some(all.map_or(first, BytesMut::freeze))
    }

    fn frame(&mut self, notice: Notice) -> Bytes {
        let frame = match notice {
            Notice::Added(record, event) => self.object_frame("ADDED", &record, event),
            Notice::Modified(record, event) => self.object_frame("MODIFIED", &record, event),
            Notice::Deleted(record, event) => self.object_frame("DELETED", &record, event),
            Notice::Bookmark(revision, initial) => self.bookmark_frame(revision, initial),
        };
        self.wrapped(frame)
    }

    /// A frame as the connection carries it.
    fn wrapped(&self, frame: Bytes) -> Bytes {
        match self.message {
            None => frame,
            Some(Message::Text) => Message::Text.frame(&frame),
            // A message has a length of its own; that of the stream is left out.
            Some(Message::Binary) => {
                let message = frame.get(protobuf::FRAME_HEAD_BYTES..).unwrap_or_default();
                Message::Binary.frame(message)
            }
        }
    }

    fn object_frame(&mut self, name: &str, record: &Record, event: Option<Arc<Event>>) -> Bytes {
        let plain = self.shape == Shape::Object && self.state.resources.is_stored_form(&self.kind);
        match event {
            Some(event) if plain && name == natural_name(&event) => {
                let frames = event.frames.get_or_init(|| Box::new(Frames::default()));
                match frames.downcast_ref::<Frames>() {
                    Some(frames) => {
                        let form = match self.media {
                            Media::Protobuf => &frames.protobuf,
                            Media::Json | Media::Yaml => &frames.json,
                        };
                        form.get_or_init(|| self.make_frame(name, record)).clone()
                    }
                    None => self.make_frame(name, record),
                }
            }
            _ => {
                let frame = self.make_frame(name, record);
                self.headed = true;
                frame
            }
        }
    }

    fn make_frame(&self, name: &str, record: &Record) -> Bytes {
        let Ok(stored) = Stored::new(&record.value) else {
            let text = "a stored object cannot be read";
            return self.error_frame(Error::Internal(text.to_owned()));
        };
        let revision = Some(record.revision);
        let resources = &self.state.resources;
        let plain = self.shape == Shape::Object && resources.is_stored_form(&self.kind);
        if plain && self.media != Media::Protobuf {
            let mut out = open_frame(name);
            let header =
                resources::record::object_header(&self.kind.kind, &self.kind.api_version());
            stored.write_object(&header, revision, &mut out);
            return close_frame(out);
        }
        match render::tree(resources, &self.kind, &stored, revision) {
            Ok(object) => self.shaped_frame(name, object, revision),
            Err(error) => self.error_frame(Error::Internal(error.to_string())),
        }
    }

    fn shaped_frame(&self, name: &str, object: Map, revision: Option<Revision>) -> Bytes {
        if self.media == Media::Protobuf {
            let object = match self.shape {
                Shape::Metadata(version) | Shape::MetadataList(version) => {
                    partial(&self.kind, object, version)
                }
                Shape::Object | Shape::Table(_) => object,
            };
            return protobuf::frame(name, &object.into());
        }
        let mut out = open_frame(name);
        self.write_shaped(object, revision, &mut out);
        close_frame(out)
    }

    fn error_frame(&self, error: Error) -> Bytes {
        let mut status = Vec::new();
        Failure::from(error).write(&mut status);
        if self.media == Media::Protobuf {
            let status = json::parse(&status).unwrap_or_default();
            return protobuf::frame("ERROR", &status);
        }
        let mut out = open_frame("ERROR");
        out.extend_from_slice(&status);
        close_frame(out)
    }

    fn write_shaped(&self, object: Map, revision: Option<Revision>, out: &mut Vec<u8>) {
        match self.shape {
            Shape::Object => json::write(&object.into(), out),
            Shape::Metadata(version) | Shape::MetadataList(version) => {
                json::write(&partial(&self.kind, object, version).into(), out);
            }
            Shape::Table(version) => {
                let now = self.state.resources.now();
                let meta = table::Meta::of_object(revision);
                let columns = !self.headed;
                table::write_rows(
                    &self.kind,
                    &[object],
                    &meta,
                    table::Style {
                        include: self.include,
                        version,
                        columns,
                        now,
                    },
                    out,
                );
            }
        }
    }

    fn bookmark_frame(&mut self, revision: Revision, initial: Initial) -> Bytes {
        let mut object = self.kind.empty_object();
        let metadata = object.object_at("metadata");
        metadata.insert("resourceVersion", Value::from(revision.to_string()));
        if initial == Initial::End {
            let annotations = metadata.object_at("annotations");
            annotations.insert("k8s.io/initial-events-end", "true".into());
        }
        let object = self.kind.print(object);
        let frame = self.shaped_frame("BOOKMARK", object, Some(revision));
        self.headed = true;
        frame
    }
}

/// How long a watcher rests for so many rounds, if there are many watchers.
fn rest(watchers: usize, rounds: u32) -> Option<Duration> {
    let round = WATCHER_COST.saturating_mul(u32::try_from(watchers).unwrap_or(u32::MAX));
    (round >= REST_MIN).then(|| round.saturating_mul(rounds).min(REST_MAX))
}

/// The regular one, or the one shortly before the end if that comes first and is yet to come.
fn next_bookmark(now: Instant, end: Instant) -> Instant {
    let (regular, last) = (now + BOOKMARK_EVERY, end.checked_sub(BOOKMARK_BEFORE_END));
    match last {
        Some(last) if last > now && regular > last => last,
        _ => regular,
    }
}

/// What an event is to a watcher without selectors.
fn natural_name(event: &Event) -> &'static str {
    match (event.deleted, &event.previous) {
        (true, _) => "DELETED",
        (false, None) => "ADDED",
        (false, Some(_)) => "MODIFIED",
    }
}

fn open_frame(name: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(2048);
    out.extend_from_slice(b"{\"type\":\"");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\",\"object\":");
    out
}

fn close_frame(mut out: Vec<u8>) -> Bytes {
    out.extend_from_slice(b"}\n");
    Bytes::from(out)
}
