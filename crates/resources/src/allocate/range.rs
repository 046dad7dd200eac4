//! A range of numbers of which each is taken at most once.

use std::net::Ipv4Addr;

/// The addresses of services, 10.0.0.0/24, without its first and last.
const ADDRESS_FIRST: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const ADDRESS_LAST: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 254);
/// The first addresses are handed out last, so that clients who choose find them free.
const ADDRESSES_TO_CHOOSE: u32 = 16;

const PORT_FIRST: u32 = 30_000;
const PORT_LAST: u32 = 32_767;
const PORTS_TO_CHOOSE: u32 = 86;

/// Why a number cannot be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Taken {
    /// Somebody has it.
    #[error("provided port is already allocated")]
    Already,
    /// It does not exist.
    #[error(
        "provided port is not in the valid range. The range of valid ports is \
         {PORT_FIRST}-{PORT_LAST}"
    )]
    NotInRange,
    /// All are taken.
    #[error("range is full")]
    Full,
}

/// The range that service addresses come from.
pub(super) fn addresses() -> Range {
    Range::new(
        ADDRESS_FIRST.to_bits(),
        ADDRESS_LAST.to_bits(),
        ADDRESSES_TO_CHOOSE,
    )
}

/// The range that node ports come from.
pub(super) fn ports() -> Range {
    Range::new(PORT_FIRST, PORT_LAST, PORTS_TO_CHOOSE)
}

/// Numbers from `first` on. The search goes round, so that a number that became free is not
/// handed out again at once.
pub(super) struct Range {
    first: u32,
    taken: Vec<bool>,
    next: usize,
    to_choose: usize,
}

impl Range {
    fn new(first: u32, last: u32, to_choose: u32) -> Range {
        let to_choose = to_choose as usize;
        let taken = vec![false; (last - first) as usize + 1];
        Range {
            first,
            taken,
            next: to_choose,
            to_choose,
        }
    }

    /// Takes a number, or the wanted one.
    pub(super) fn take(&mut self, wanted: Option<u32>) -> Result<u32, Taken> {
        let place = match wanted {
            Some(wanted) => self.place(wanted).ok_or(Taken::NotInRange)?,
            None => self.free().ok_or(Taken::Full)?,
        };
        if std::mem::replace(&mut self.taken[place], true) {
            return Err(Taken::Already);
        }
        if wanted.is_none() {
            self.next = place + 1;
        }
        let place = u32::try_from(place).expect("a range is made of u32 numbers");
        Ok(self.first + place)
    }

    /// Makes a number free.
    pub(super) fn release(&mut self, number: u32) {
        if let Some(place) = self.place(number) {
            self.taken[place] = false;
        }
    }

    fn place(&self, number: u32) -> Option<usize> {
        let place = number.checked_sub(self.first)? as usize;
        (place < self.taken.len()).then_some(place)
    }

    fn free(&self) -> Option<usize> {
        let upper = self.next.max(self.to_choose)..self.taken.len();
        let round = self.to_choose..self.taken.len();
        upper
            .chain(round)
            .chain(0..self.to_choose)
            .find(|place| !self.taken[*place])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_handed_out_once_and_the_first_ones_last() {
        let mut range = Range::new(10, 14, 2);
        let mut given = Vec::new();
        while let Ok(number) = range.take(None) {
            given.push(number);
        }
        assert_eq!(given, [12, 13, 14, 10, 11]);
        assert_eq!(range.take(None), Err(Taken::Full));
        range.release(13);
        assert_eq!(range.take(Some(13)), Ok(13));
        assert_eq!(range.take(Some(13)), Err(Taken::Already));
        for strange in [0, 9, 15, u32::MAX] {
            assert_eq!(range.take(Some(strange)), Err(Taken::NotInRange));
            range.release(strange);
        }
    }

    #[test]
    fn what_became_free_waits_its_turn() {
        let mut range = Range::new(0, 9, 0);
        assert_eq!(range.take(None), Ok(0));
        range.release(0);
        assert_eq!(range.take(None), Ok(1));
    }
}
