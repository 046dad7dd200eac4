//! What a server that rests gives back: the pages of its own program that it no longer uses.
//!
//! The kernel maps sixteen pages of the program for each one that is touched, so that after a
//! start most of it counts as resident, though a server that waits needs a tenth. The pages stay
//! in the cache of files and come back, each with a fault of about a microsecond, when a request
//! needs them.
//!
//! This is the only file with `unsafe`: nothing in the standard library, and no crate that the
//! server has anyway, wraps this call safely.

#![allow(unsafe_code, reason = "see above")]

use std::ops::Range;
use std::time::Duration;

use rustix::mm::{Advice, madvise};
use server::Activity;

/// How long no request has come when the server rests.
const QUIET: Duration = Duration::from_secs(1);

/// Gives back memory whenever no request came for a while.
pub(crate) async fn whenever_quiet(activity: Activity) {
    let (mut seen, mut given_back_at) = (None, None);
    loop {
        tokio::time::sleep(QUIET).await;
        let now = Some(activity.begun());
        if now == seen && now != given_back_at {
            activity.rest();
            give_back();
            given_back_at = now;
        }
        seen = now;
    }
}

/// Unmaps the pages of the program's code; each comes back when it is used.
fn give_back() {
    // Where it cannot be told which pages these are, they stay.
    let Some(code) = std::fs::read_to_string("/proc/self/maps")
        .ok()
        .and_then(|maps| code_of(&maps, give_back as fn() as usize))
    else {
        return;
    };
    let start = std::ptr::without_provenance_mut(code.start);
    // SAFETY: the range is one mapping of a file that can be executed and not written, so its
    // pages are the file's own, and the kernel reads the same bytes again when they are used. Data
    // that the loader has changed lies in other mappings.
    let _ = unsafe { madvise(start, code.len(), Advice::LinuxDontNeed) };
}

/// The mapping that holds an address, if it is code that was mapped from a file.
fn code_of(maps: &str, address: usize) -> Option<Range<usize>> {
    maps.lines().find_map(|line| {
        // Range, rights, offset, device, inode and, if there is one, path.
        let mut words = line.split_ascii_whitespace();
        let (start, end) = words.next()?.split_once('-')?;
        let range = usize::from_str_radix(start, 16).ok()?..usize::from_str_radix(end, 16).ok()?;
        let is_code = words.next()? == "r-xp" && words.nth(2)? != "0";
        (is_code && range.contains(&address)).then_some(range)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_code_from_a_file_is_given_back() {
        let maps = "\
            5000-6000 r--p 00000000 fe:00 77 /bin/windlass\n\
            6000-9000 r-xp 00001000 fe:00 77 /bin/windlass\n\
            9000-a000 rw-p 00004000 fe:00 77 /bin/windlass\n\
            b000-c000 r-xp 00000000 00:00 0 [vdso]\n";
        assert_eq!(code_of(maps, 0x6000), Some(0x6000..0x9000));
        assert_eq!(code_of(maps, 0x8fff), Some(0x6000..0x9000));
        for elsewhere in [0x5000, 0x9000, 0xb000, 0xd000] {
            assert_eq!(code_of(maps, elsewhere), None, "{elsewhere:x}");
        }
        assert_eq!(code_of("no map", 0x6000), None);
    }

    #[test]
    fn the_program_goes_on_after_its_pages_are_given_back() {
        let resident = || {
            let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
            pages.split(' ').nth(2).unwrap().parse::<u64>().unwrap()
        };
        let before = resident();
        give_back();
        assert!(resident() < before);
    }
}
