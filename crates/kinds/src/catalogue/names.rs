//! A map by package and name that is cheap to fill at start-up.
//!
//! The names are compiled in, so nobody can choose them to collide: the FNV-1a hash does, and takes
//! a fraction of the time of the standard one on texts this short.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Values by the place of a package and a name in it.
pub(super) type ByName<V> = HashMap<(usize, &'static str), V, BuildHasherDefault<Fnv>>;

/// FNV-1a with 64 bits.
pub(super) struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Fnv {
        Fnv(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for Fnv {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u8(*byte);
        }
    }

    fn write_u8(&mut self, byte: u8) {
        self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }

    fn write_usize(&mut self, number: usize) {
        // A place or a length: both fit in a byte here, and more would only cost time.
        self.write_u8(number.to_le_bytes()[0]);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
