//! Protobuf: between upstream's bytes and the value tree, driven by the type graph.
//!
//! Contract: the messages of upstream's `generated.proto` files as their generated Go code writes
//! them, and the envelope of apimachinery `pkg/runtime/serializer/protobuf`. That code follows the
//! Go structs: a plain scalar or struct is always written, even when it holds nothing; a pointer
//! only when it is set; fields in the order of their numbers, dictionaries in the order of their
//! keys. [`Empty`](crate::Empty) tells plain fields from pointers.
//!
//! A message has no `apiVersion` and no `kind`: these stand in the envelope.

mod encode;
mod envelope;
mod error;
mod message;
mod read;
mod scalar;
mod wire;

pub use encode::encode;
pub use envelope::{
    Envelope, ListHead, MAGIC, read_envelope, read_list, write_envelope, write_list,
    write_watch_frame,
};
pub use error::DecodeError;
use error::Failure;
pub(crate) use message::Messages;
pub use read::decode;

#[cfg(test)]
mod tests;
