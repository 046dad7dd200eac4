//! A reader of one collection's events: a place in their order, and a way to wait for the next.
//!
//! A watch holds no events of its own. One that falls behind what memory holds goes on from disk;
//! one that falls behind the history altogether ends with `Compacted`.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::record::{Error, Event, Revision};
use crate::store::Inside;
use crate::view::{Collection, Lookup};

/// Events read from disk at once when a watch is behind what memory holds.
const PAST_EVENTS_MAX: usize = 256;

/// The events of one collection after a revision, in order, without gaps.
#[derive(Debug)]
pub struct Watch {
    inside: Arc<Inside>,
    collection: Arc<Collection>,
    /// Everything up to here has been delivered.
    position: Revision,
    /// Where the next event is among those in memory; `None` while it has to come from disk.
    place: Option<u64>,
    /// Events from disk that are still to be delivered.
    past: VecDeque<Arc<Event>>,
}

/// Tells when a collection changed last, for the price of a load.
#[derive(Clone, Debug)]
pub struct Pulse(pub(crate) Arc<Collection>);

impl Pulse {
    /// The newest revision that changed the collection; it may not be visible yet.
    pub fn newest(&self) -> Revision {
        self.0.newest()
    }
}

impl Watch {
    pub(crate) fn new(
        inside: Arc<Inside>,
        collection: Arc<Collection>,
        after: Revision,
    ) -> Result<Watch, Error> {
        let oldest = inside.view().compacted();
        if after < oldest {
            return Err(Error::Compacted {
                asked: after,
                oldest,
            });
        }
        collection.watchers.fetch_add(1, Ordering::Relaxed);
        let mut watch = Watch {
            inside,
            collection,
            position: after,
            place: None,
            past: VecDeque::new(),
        };
        watch.find_place();
        Ok(watch)
    }

    /// The next event; waits for it.
    pub async fn next(&mut self) -> Result<Arc<Event>, Error> {
        loop {
            // Whoever was just woken finds something, and need not listen for more.
            if let Some(event) = self.try_next()? {
                return Ok(event);
            }
            let collection = self.collection.clone();
            let changed = collection.changed.notified();
            tokio::pin!(changed);
            // Listen before looking: what is published in between must not be slept through.
            changed.as_mut().enable();
            if self.place.is_none() && self.past.is_empty() {
                self.read_past().await?;
            }
            if let Some(event) = self.try_next()? {
                return Ok(event);
            }
            if self.place.is_some() {
                changed.await;
            }
        }
    }

    /// The next event if it is in memory now.
    ///
    /// `None` also when it has to be read from disk first: `next` does that.
    pub fn try_next(&mut self) -> Result<Option<Arc<Event>>, Error> {
        if let Some(event) = self.past.pop_front() {
            self.position = event.record.revision;
            return Ok(Some(event));
        }
        if self.place.is_none() {
            self.find_place();
        }
        // The revision first, then the events: each one up to it is then in its place.
        let visible = self.inside.view().visible();
        let inner = self.collection.read();
        while let Some(place) = self.place {
            match inner.event(place) {
                Lookup::Known(Some(event)) if event.record.revision <= visible => {
                    self.place = Some(place + 1);
                    // A watch that began in the future is not told of what came before it.
                    if event.record.revision > self.position {
                        self.position = event.record.revision;
                        return Ok(Some(event.clone()));
                    }
                }
                Lookup::Known(_) if self.inside.view().is_closed() => return Err(Error::Closed),
                Lookup::Known(_) => {
                    self.position = self.position.max(visible);
                    return Ok(None);
                }
                Lookup::Forgotten => self.place = None,
            }
        }
        Ok(None)
    }

    /// The revision up to which everything of this collection has been delivered.
    ///
    /// Once `try_next` has found nothing more, this is the newest revision of the whole store.
    pub fn position(&self) -> Revision {
        self.position
    }

    /// How many watch the same collection, this one included.
    pub fn watchers(&self) -> usize {
        self.collection.watchers.load(Ordering::Relaxed)
    }

    /// Looks for the next event in memory.
    fn find_place(&mut self) {
        self.place = match self.collection.read().place_after(self.position) {
            Lookup::Known(place) => Some(place),
            Lookup::Forgotten => None,
        };
    }

    /// Reads the next events from disk, if they are there and not in memory.
    async fn read_past(&mut self) -> Result<(), Error> {
        self.find_place();
        if self.place.is_none() {
            let after = self.position;
            let past = self
                .inside
                .past_events(&self.collection, after, PAST_EVENTS_MAX)
                .await?;
            assert!(
                !past.is_empty(),
                "an event that memory forgot is on disk or compacted"
            );
            self.past.extend(past);
        }
        Ok(())
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.collection.watchers.fetch_sub(1, Ordering::Relaxed);
    }
}
