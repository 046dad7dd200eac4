//! What upstream checks in code, kind by kind, on the value tree.
//!
//! Rules: a checker takes what it looks at, the path to it and the list of mistakes. It allocates
//! nothing while all is well, it never stops at the first mistake, and the order of mistakes is
//! upstream's. The tree has been decoded and defaulted, so a value has its field's type; absent,
//! `null` and empty mean the same here unless a checker says otherwise.

pub mod meta;
mod print;
mod read;
