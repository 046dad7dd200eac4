//! Documents as they are kept: compressed, with the hash of their text.

use std::io::{self, Read, Write};

use bytes::Bytes;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use hyper::header::HeaderValue;
use ring::digest;

/// A compressed document.
pub(super) struct Packed {
    pub(super) bytes: Bytes,
    /// The SHA-512 of the text, in upper case as upstream prints it.
    pub(super) hash: String,
    /// The hash in quotes.
    pub(super) etag: HeaderValue,
    text_bytes: usize,
}

impl Packed {
    /// Compresses what `write` writes, piece by piece, so that no whole text is in memory.
    pub(super) fn of(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Packed {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        let mut tee = Hashing::new(&mut encoder);
        let written = write(&mut tee);
        let (hash, text_bytes) = tee.finish();
        let bytes = written.and_then(|()| encoder.finish());
        let bytes = bytes.expect("writing to memory does not fail");
        let etag = HeaderValue::from_str(&format!("\"{hash}\""));
        Packed {
            bytes: bytes.into(),
            etag: etag.expect("hexadecimal digits are header text"),
            hash,
            text_bytes,
        }
    }
}

/// The hash of what `write` writes.
pub(super) fn hash(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> String {
    let mut nowhere = io::sink();
    let mut tee = Hashing::new(&mut nowhere);
    write(&mut tee).expect("writing to nowhere does not fail");
    tee.finish().0
}

/// The text of a document, for clients that take nothing compressed.
pub(super) fn unpack(packed: &Packed) -> Bytes {
    let mut text = Vec::with_capacity(packed.text_bytes);
    let read = GzDecoder::new(packed.bytes.as_ref()).read_to_end(&mut text);
    read.expect("a document that was compressed here can be read again");
    text.into()
}

/// Passes bytes on and hashes them.
struct Hashing<'a> {
    context: digest::Context,
    inner: &'a mut dyn Write,
    count: usize,
}

impl<'a> Hashing<'a> {
    fn new(inner: &'a mut dyn Write) -> Hashing<'a> {
        Hashing {
            context: digest::Context::new(&digest::SHA512),
            inner,
            count: 0,
        }
    }

    fn finish(self) -> (String, usize) {
        let digest = self.context.finish();
        let hash = digest.as_ref().iter().map(|byte| format!("{byte:02X}"));
        (hash.collect(), self.count)
    }
}

impl Write for Hashing<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.inner.write_all(bytes)?;
        self.context.update(bytes);
        self.count += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}
