//! Why bytes are not the message that they should be.

use object::json;
use object::quantity::QuantityError;

use crate::decode::DECODE_DEPTH_MAX;

/// Why bytes are not the message that they should be. The words are those of upstream's decoders
/// where these have any.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum DecodeError {
    /// There is nothing to read.
    #[error("empty data")]
    NoData,
    /// The bytes do not begin as an envelope does.
    #[error(
        "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
    )]
    NoMagic,
    /// Nothing follows the first bytes of the envelope.
    #[error("empty body")]
    NoBody,
    /// The bytes stop inside a field.
    #[error("unexpected EOF")]
    UnexpectedEnd,
    /// A number has more than 64 bits.
    #[error("proto: integer overflow")]
    Overflow,
    /// A length does not fit a signed integer.
    #[error("proto: negative length found during unmarshaling")]
    NegativeLength,
    /// A field has the number 0, or one that is too large.
    #[error("proto: illegal tag {number} (wire type {wire})")]
    IllegalTag {
        /// The number, as a signed integer of 32 bits.
        number: i32,
        /// How the field's bytes are laid out.
        wire: u8,
    },
    /// A field is laid out in a way that protobuf does not have.
    #[error("proto: illegal wireType {wire}")]
    IllegalWireType {
        /// What stands there.
        wire: u8,
    },
    /// A group ends that did not begin.
    #[error("proto: unexpected end of group")]
    UnexpectedEndOfGroup,
    /// A field is laid out as another type of value.
    #[error("proto: wrong wireType = {wire} for field {field}")]
    WrongWireType {
        /// How it is laid out.
        wire: u8,
        /// The field, as JSON calls it.
        field: String,
    },
    /// Messages are nested too deeply.
    #[error("the object nests typed values deeper than {DECODE_DEPTH_MAX} levels")]
    TooDeep,
    /// A quantity is none.
    #[error(transparent)]
    Quantity(#[from] QuantityError),
    /// Free-form content is not JSON.
    #[error("free-form content is not JSON: {0}")]
    Json(#[from] json::Error),
    /// A field set is not a JSON object.
    #[error("a field set must be a JSON object")]
    FieldSet,
    /// A time cannot be written as RFC 3339.
    #[error("time is {seconds} seconds from 1970, which is outside of the years 0 to 9999")]
    Time {
        /// The seconds from the start of 1970.
        seconds: i64,
    },
    /// A floating point number is infinite or no number.
    #[error("unsupported value: {0}")]
    Double(f64),
    /// A value is said to be neither an integer nor a string.
    #[error("impossible IntOrString.Type: {0}")]
    IntOrString(i64),
}

/// Why reading stopped. A result with a pointer in it stays in registers, which one with all that
/// an error may hold does not.
pub(super) type Failure = Box<DecodeError>;

impl From<Failure> for DecodeError {
    fn from(failure: Failure) -> DecodeError {
        *failure
    }
}
