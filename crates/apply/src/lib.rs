//! Which object a write asks for and which manager owns each field.

pub mod patch;
