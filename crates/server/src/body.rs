//! The bodies of answers: whole, list or stream.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::Stream;
use http_body::{Frame, SizeHint};
use resources::record::Stored;
use resources::{Record, Revision};

use crate::stall;

/// A list is sent in pieces of about this size, whatever its length.
const LIST_CHUNK_BYTES: usize = 128 * 1024;

/// What an answer's body is made of.
pub(crate) enum Body {
    /// Bytes that are all there.
    Full(Option<Bytes>),
    /// The records of a list, copied piece by piece while they are sent.
    List(ListBody),
    /// Frames that come when they come.
    Stream(Pin<Box<dyn Stream<Item = Bytes> + Send>>),
}

impl Body {
    pub(crate) fn full(bytes: Bytes) -> Body {
        Body::Full((!bytes.is_empty()).then_some(bytes))
    }

    pub(crate) fn empty() -> Body {
        Body::Full(None)
    }

    /// All bytes, which stay in place; `None` for a stream.
    pub(crate) fn whole(&mut self) -> Option<Bytes> {
        if let Body::List(_) = self
            && let Body::List(list) = std::mem::replace(self, Body::empty())
        {
            *self = Body::full(list.collect().into());
        }
        match self {
            Body::Full(bytes) => bytes.clone(),
            Body::List(_) | Body::Stream(_) => None,
        }
    }

    pub(crate) fn stream(frames: impl Stream<Item = Bytes> + Send + 'static) -> Body {
        Body::Stream(Box::pin(frames))
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        stall::asked();
        let next = match &mut *self {
            Body::Full(bytes) => bytes.take(),
            Body::List(list) => list.next_chunk(),
            Body::Stream(frames) => match frames.as_mut().poll_next(context) {
                Poll::Ready(next) => next,
                Poll::Pending => return Poll::Pending,
            },
        };
        if next.is_some() {
            stall::gave();
        }
        Poll::Ready(next.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Body::Full(bytes) => bytes.is_none(),
            Body::List(list) => list.left_bytes == 0,
            Body::Stream(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Body::Full(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            Body::List(list) => SizeHint::with_exact(list.left_bytes as u64),
            Body::Stream(_) => SizeHint::default(),
        }
    }
}

/// A list on its way out. Its length is known before its text is made.
pub(crate) struct ListBody {
    head: Vec<u8>,
    item_header: Vec<u8>,
    records: std::vec::IntoIter<Record>,
    first: bool,
    left_bytes: usize,
}

const LIST_END: &[u8] = b"]}\n";

impl ListBody {
    /// `head` opens the list up to the bracket of its items; every item begins with `item_header`
    /// (empty: items of typed lists say no kind).
    pub(crate) fn new(head: Vec<u8>, item_header: Vec<u8>, records: Vec<Record>) -> ListBody {
        // The header replaces the brace that an item opens with.
        let header_bytes = item_header.len().saturating_sub(1);
        let items: usize = records
            .iter()
            .filter_map(|record| stored(record).map(|stored| stored.item_len(record.revision)))
            .map(|item| item + header_bytes)
            .sum();
        let commas = records.len().saturating_sub(1);
        let left_bytes = head.len() + items + commas + LIST_END.len();
        ListBody {
            head,
            item_header,
            records: records.into_iter(),
            first: true,
            left_bytes,
        }
    }

    /// How long the whole body is.
    pub(crate) fn len(&self) -> usize {
        self.left_bytes
    }

    /// The whole body at once, for answers that are compressed or converted.
    pub(crate) fn collect(mut self) -> Vec<u8> {
        let mut all = Vec::with_capacity(self.left_bytes);
        while let Some(chunk) = self.next_chunk() {
            all.extend_from_slice(&chunk);
        }
        all
    }

    fn next_chunk(&mut self) -> Option<Bytes> {
        if self.left_bytes == 0 {
            return None;
        }
        let mut out = std::mem::take(&mut self.head);
        out.reserve(LIST_CHUNK_BYTES.min(self.left_bytes));
        while out.len() < LIST_CHUNK_BYTES {
            let Some(record) = self.records.next() else {
                out.extend_from_slice(LIST_END);
                break;
            };
            if !self.first {
                out.push(b',');
            }
            self.first = false;
            if let Some(stored) = stored(&record) {
                write_item(&stored, &self.item_header, record.revision, &mut out);
            }
        }
        self.left_bytes -= out.len();
        Some(Bytes::from(out))
    }
}

fn write_item(stored: &Stored<'_>, header: &[u8], revision: Revision, out: &mut Vec<u8>) {
    if header.is_empty() {
        stored.write_item(revision, out);
    } else {
        stored.write_object(header, Some(revision), out);
    }
}

/// Records are checked when they are read from the store; one that is no record is left out.
fn stored(record: &Record) -> Option<Stored<'_>> {
    Stored::new(&record.value).ok()
}
