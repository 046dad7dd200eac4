//! The engine without a disk: a view, a writer, and a thread that keeps house once a second.

use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use crate::record::{Committed, Error};
use crate::store::{Options, lock};
use crate::view::{View, wake};
use crate::writer::{Group, Request, Writer};

const MAINTENANCE_INTERVAL: Duration = Duration::from_secs(1);
/// Expired keys deleted while the writer is held; others may commit in between.
const EXPIRED_BATCH: usize = 256;

#[derive(Debug)]
pub(crate) struct Engine {
    pub(crate) view: View,
    writer: Mutex<Writer>,
    options: Options,
}

impl Engine {
    pub(crate) fn start(options: Options) -> Arc<Engine> {
        let engine = Arc::new(Engine {
            view: View::default(),
            writer: Mutex::default(),
            options,
        });
        let weak = Arc::downgrade(&engine);
        // Without the thread a store still works, it only forgets on commits alone.
        let _ = std::thread::Builder::new()
            .name("store-house".into())
            .stack_size(256 * 1024)
            .spawn(move || keep_house(&weak));
        engine
    }

    pub(crate) fn commit(&self, request: Request) -> Result<Committed, Error> {
        let now = self.options.clock.now_millis();
        let mut writer = lock(&self.writer);
        let committed = self.commit_one(&mut writer, request, now)?;
        self.forget(&mut writer, now);
        Ok(committed)
    }

    fn commit_one(
        &self,
        writer: &mut Writer,
        request: Request,
        now: u64,
    ) -> Result<Committed, Error> {
        let mut group = Group::default();
        let committed = writer.prepare(&mut group, request, now)?;
        writer.apply(&self.view, &group);
        wake(&group.changed());
        Ok(committed)
    }

    pub(crate) fn maintain(&self) {
        let now = self.options.clock.now_millis();
        loop {
            let mut writer = lock(&self.writer);
            let expired = writer.expired(now, EXPIRED_BATCH);
            if expired.is_empty() {
                self.forget(&mut writer, now);
                return;
            }
            for request in expired {
                let done = self.commit_one(&mut writer, request, now);
                assert!(done.is_ok(), "only a key's newest version can expire");
            }
        }
    }

    fn forget(&self, writer: &mut Writer, now: u64) {
        let expired = now.saturating_sub(self.options.history_millis());
        let bytes_max = self
            .options
            .history_bytes
            .min(self.options.history_memory_bytes);
        // Refuse first, then forget: a reader must not find a gap where it expected history.
        let oldest = writer.forget_while(&self.view, |at_millis, bytes, revision| {
            let is_too_much = at_millis < expired || bytes > bytes_max;
            if is_too_much {
                self.view.compact(revision);
            }
            is_too_much
        });
        assert!(oldest.is_none_or(|oldest| oldest == self.view.compacted()));
    }
}

fn keep_house(engine: &Weak<Engine>) {
    loop {
        std::thread::sleep(MAINTENANCE_INTERVAL);
        match engine.upgrade() {
            Some(engine) if !engine.view.is_closed() => engine.maintain(),
            _ => return,
        }
    }
}
