//! Watch: what happened to a collection since a version, and what happens from now on.
//!
//! A watcher is a position in the store's feed plus a filter. Selector transitions: an object that
//! begins to match is ADDED, one that ceases to match is DELETED in its previous state with the
//! version of the change.

use std::collections::VecDeque;
use std::sync::Arc;

use kinds::Kind;
use store::{Event, Range, Record, Revision, Watch};

use crate::Resources;
use crate::error::{Error, Subject};
use crate::options::WatchOptions;
use crate::present::is_presented;
use crate::read::{Matcher, namespace_prefix};

/// One thing a watcher is told.
#[derive(Debug)]
pub enum Notice {
    /// The object exists, or begins to match.
    Added(Record, Option<Arc<Event>>),
    /// It changed.
    Modified(Record, Option<Arc<Event>>),
    /// It is gone, or ceases to match.
    Deleted(Record, Option<Arc<Event>>),
    /// Everything up to this version has been told.
    Bookmark(Revision, Initial),
}

/// Whether a bookmark ends the initial state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Initial {
    /// It does.
    End,
    /// It is one of those that come now and then.
    No,
}

/// A watch in progress.
pub struct Watching {
    resources: Resources,
    kind: Arc<Kind>,
    options: WatchOptions,
    prefix: String,
    waiting: VecDeque<Notice>,
    /// An event that has to be presented in another version before it can be told.
    unpresented: Option<Arc<Event>>,
    feed: Watch,
}

impl Resources {
    /// Starts a watch of a collection, or of the part of it in `namespace`.
    pub async fn watch(
        &self,
        kind: &Arc<Kind>,
        namespace: &str,
        options: WatchOptions,
    ) -> Result<Watching, Error> {
        let from = options.version.filter(|version| version.0 > 0);
        let initial = options.initial_events.unwrap_or(from.is_none());
        let prefix = namespace_prefix(kind, namespace);
        let mut waiting = VecDeque::new();
        let start = if initial {
            if let Some(version) = from {
                self.wait_for(version).await?;
            }
            let range = Range {
                prefix: &prefix,
                ..Range::default()
            };
            let page = self.store.range(&kind.collection, range).await;
            let mut page = page.map_err(|error| Error::from_store(error, Subject::default))?;
            self.present(kind, &mut page.records).await?;
            let mut matcher = Matcher::new(kind, &options.selection);
            let matching = page
                .records
                .into_iter()
                .filter(|record| matcher.matches(record));
            waiting.extend(matching.map(|record| Notice::Added(record, None)));
            if options.bookmarks && options.initial_events == Some(true) {
                waiting.push_back(Notice::Bookmark(page.revision, Initial::End));
            }
            page.revision
        } else {
            from.unwrap_or_else(|| self.store.revision())
        };
        if let Some(custom) = &kind.custom
            && start.0 < custom.since
        {
            // Of an earlier kind of this name nothing is known.
            let (asked, oldest) = (start, Revision(custom.since));
            return Err(watch_error(store::Error::Compacted { asked, oldest }));
        }
        let feed = self.store.watch(&kind.collection, start).await;
        let feed = feed.map_err(watch_error)?;
        Ok(Watching {
            resources: self.clone(),
            kind: Arc::clone(kind),
            options,
            prefix,
            waiting,
            unpresented: None,
            feed,
        })
    }
}

impl Watching {
    /// Waits for the next notice.
    pub async fn next(&mut self) -> Result<Notice, Error> {
        loop {
            if let Some(notice) = self.waiting.pop_front() {
                return Ok(notice);
            }
            let event = match self.unpresented.clone() {
                Some(event) => event,
                None => self.feed.next().await.map_err(watch_error)?,
            };
            // Whoever gives up waiting for the webhook finds the event here again.
            self.unpresented = Some(Arc::clone(&event));
            let event = self.resources.present_event(&self.kind, event).await?;
            self.unpresented = None;
            if let Some(notice) = self.notice(event) {
                return Ok(notice);
            }
        }
    }

    /// The next notice if there is one by now.
    pub fn try_next(&mut self) -> Result<Option<Notice>, Error> {
        loop {
            if let Some(notice) = self.waiting.pop_front() {
                return Ok(Some(notice));
            }
            if self.unpresented.is_some() {
                return Ok(None);
            }
            let Some(event) = self.feed.try_next().map_err(watch_error)? else {
                return Ok(None);
            };
            if !is_presented(&self.kind, &event) {
                self.unpresented = Some(event);
                return Ok(None);
            }
            if let Some(notice) = self.notice(event) {
                return Ok(Some(notice));
            }
        }
    }

    /// The version up to which everything has been told, for a bookmark.
    pub fn position(&self) -> Revision {
        self.feed.position()
    }

    /// How many watch the same kind, this one included.
    pub fn watchers(&self) -> usize {
        self.feed.watchers()
    }

    /// Whether the client asked for bookmarks.
    pub fn wants_bookmarks(&self) -> bool {
        self.options.bookmarks
    }

    fn notice(&self, event: Arc<Event>) -> Option<Notice> {
        if !event.record.name.starts_with(&self.prefix) {
            return None;
        }
        let everything = self.options.selection.is_everything();
        let mut matcher = Matcher::new(&self.kind, &self.options.selection);
        let mut matches = |record: &Record| everything || matcher.matches(record);
        let before = event.previous.as_ref().is_some_and(&mut matches);
        let now = !event.deleted && matches(&event.record);
        match (before, now) {
            (false, true) => Some(Notice::Added(event.record.clone(), Some(event))),
            (true, true) => Some(Notice::Modified(event.record.clone(), Some(event))),
            (true, false) => {
                let mut last = event.previous.clone().expect("it matched, so it was there");
                last.revision = event.record.revision;
                // The shared frame of the event shows the deletion, not a selector's exit.
                let shared = event.deleted.then_some(event);
                Some(Notice::Deleted(last, shared))
            }
            (false, false) => None,
        }
    }
}

fn watch_error(error: store::Error) -> Error {
    match error {
        store::Error::Compacted { asked, oldest } => Error::Expired {
            message: format!("too old resource version: {asked} ({oldest})"),
            continue_token: String::new(),
        },
        other => Error::from_store(other, Subject::default),
    }
}
