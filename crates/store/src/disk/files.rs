//! The few things the disk engine asks of a file system, behind a trait.
//!
//! Everything that touches the disk goes through here, the checkpoint's database included, so that
//! a test can fail any call, cut the power or flip a bit.

use std::any::Any;
use std::fmt::Debug;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::OFlags;

/// Whether a file has to be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// Open what is there, or fail.
    Existing,
    /// Open what is there, or make it.
    Either,
    /// Make it, or fail if it is there.
    New,
}

/// A file system.
pub trait Files: Debug + Send + Sync + 'static {
    /// Opens a file for reading and writing.
    fn open(&self, path: &Path, presence: Presence) -> io::Result<Arc<dyn DataFile>>;
    /// Makes a file that is written in whole sectors, from where a page of memory begins. Where the
    /// system can, they go to the disk without a stay in its memory, which makes a sync cheaper.
    fn create_direct(&self, path: &Path) -> io::Result<Arc<dyn DataFile>> {
        self.open(path, Presence::New)
    }
    /// The names of the files in a directory.
    fn list(&self, directory: &Path) -> io::Result<Vec<String>>;
    /// Makes a directory and those above it durably, if they are not there.
    fn create_directory(&self, directory: &Path) -> io::Result<()>;
    /// Makes the names in a directory durable.
    fn sync_directory(&self, directory: &Path) -> io::Result<()>;
    /// Gives a file another name, in place of what had that name.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Takes an exclusive lock that the system releases when the process ends.
    fn lock(&self, path: &Path) -> io::Result<Lock>;
}

/// An attempt to take a lock.
pub enum Lock {
    /// Ours until this value is dropped.
    Taken(Box<dyn Any + Send + Sync>),
    /// Held by the process with this id, as far as it said so.
    HeldBy(u32),
}

/// An open file.
pub trait DataFile: Debug + Send + Sync + 'static {
    /// How long the file is.
    fn len(&self) -> io::Result<u64>;
    /// Whether the file is empty.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
    /// Fills the buffer from an offset; an error if the file ends before.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()>;
    /// Writes all of the bytes at an offset.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;
    /// Cuts the file off, or fills it up with zeros.
    fn set_len(&self, len: u64) -> io::Result<()>;
    /// Makes everything written so far durable.
    fn sync(&self) -> io::Result<()>;
}

/// The unit in which a disk writes in full or not at all.
pub(crate) const SECTOR: usize = 512;
/// Where in memory bytes have to begin for any disk to read them.
const ALIGNMENT: usize = 4096;

/// What a buffer holds from a place on, filled up with zeros to whole sectors, and moved to where
/// a disk can read it.
pub(crate) fn aligned(buffer: &mut Vec<u8>, from: usize) -> &[u8] {
    let length = (buffer.len() - from).next_multiple_of(SECTOR);
    buffer.resize(from + length, 0);
    // Made room for before the address is looked at: the buffer may move.
    buffer.resize(from + length + ALIGNMENT, 0);
    let start = from + buffer[from..].as_ptr().align_offset(ALIGNMENT);
    buffer.copy_within(from..from + length, start);
    &buffer[start..start + length]
}

/// New files hold secrets, whatever the directory they are in allows.
const OWNER_ONLY: u32 = 0o600;

/// The file system of the machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemFiles;

impl Files for SystemFiles {
    fn open(&self, path: &Path, presence: Presence) -> io::Result<Arc<dyn DataFile>> {
        let mut options = read_and_write();
        match presence {
            Presence::Existing => {}
            Presence::Either => {
                options.create(true).truncate(false);
            }
            Presence::New => {
                options.create_new(true);
            }
        }
        Ok(Arc::new(SystemFile(options.open(path)?)))
    }

    fn create_direct(&self, path: &Path) -> io::Result<Arc<dyn DataFile>> {
        let cached = read_and_write().create_new(true).open(path)?;
        let mut options = read_and_write();
        options.custom_flags(OFlags::DIRECT.bits().cast_signed());
        // Not every file system can.
        let direct = options.open(path).ok();
        Ok(Arc::new(DirectFile {
            is_refused: AtomicBool::new(false),
            direct,
            cached: SystemFile(cached),
        }))
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(directory)? {
            // A name that is no text is not one of ours.
            names.extend(entry?.file_name().into_string());
        }
        Ok(names)
    }

    fn create_directory(&self, directory: &Path) -> io::Result<()> {
        let mut missing = Vec::new();
        let mut level = directory;
        while !level.as_os_str().is_empty() && !level.exists() {
            missing.push(level);
            level = level.parent().unwrap_or(Path::new(""));
        }
        std::fs::create_dir_all(directory)?;
        for made in missing {
            let above = made.parent().filter(|above| !above.as_os_str().is_empty());
            self.sync_directory(above.unwrap_or(Path::new(".")))?;
        }
        Ok(())
    }

    fn sync_directory(&self, directory: &Path) -> io::Result<()> {
        File::open(directory)?.sync_all()
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_file(path)
    }

    fn lock(&self, path: &Path) -> io::Result<Lock> {
        let mut file = read_and_write().create(true).truncate(false).open(path)?;
        match file.try_lock() {
            Ok(()) => {
                file.set_len(0)?;
                writeln!(file, "{}", std::process::id())?;
                Ok(Lock::Taken(Box::new(file)))
            }
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                file.read_to_string(&mut text)?;
                Ok(Lock::HeldBy(text.trim().parse().unwrap_or(0)))
            }
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

fn read_and_write() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(OWNER_ONLY);
    options
}

#[derive(Debug)]
struct SystemFile(File);

impl DataFile for SystemFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.0.read_exact_at(buffer, offset)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all_at(bytes, offset)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }
}

/// A file that is open twice: to be written past the system's memory, and for everything else.
#[derive(Debug)]
struct DirectFile {
    direct: Option<File>,
    /// The disk has larger sectors than ours; it said so before it wrote anything.
    is_refused: AtomicBool,
    cached: SystemFile,
}

impl DataFile for DirectFile {
    fn len(&self) -> io::Result<u64> {
        self.cached.len()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.cached.read_at(offset, buffer)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        if let Some(direct) = &self.direct
            && !self.is_refused.load(Ordering::Relaxed)
        {
            match direct.write_all_at(bytes, offset) {
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                    self.is_refused.store(true, Ordering::Relaxed);
                }
                written => return written,
            }
        }
        self.cached.write_at(offset, bytes)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.cached.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.cached.sync()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_disk_is_handed_begins_at_a_page_and_ends_with_a_sector() {
        for (length, from) in [(1, 0), (511, 3), (512, 0), (9_000, 512)] {
            let content: Vec<u8> = (0..length).map(|at| at as u8 | 1).collect();
            let mut buffer = vec![7; from];
            buffer.extend_from_slice(&content);
            let bytes = aligned(&mut buffer, from);
            assert_eq!(bytes.as_ptr().addr() % ALIGNMENT, 0);
            assert_eq!(bytes.len() % SECTOR, 0);
            let (start, padding) = bytes.split_at(length);
            assert_eq!(start, content);
            assert!(padding.len() < SECTOR && padding.iter().all(|byte| *byte == 0));
        }
    }

    #[test]
    fn a_direct_file_takes_also_what_no_disk_would() {
        let name = format!("windlass-direct-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let file = SystemFiles.create_direct(&path).unwrap();
        let mut buffer = vec![1; 2 * SECTOR];
        file.write_at(0, aligned(&mut buffer, 0)).unwrap();
        file.write_at(700, b"between two sectors").unwrap();
        file.write_at(3 * SECTOR as u64, aligned(&mut vec![2; SECTOR], 0))
            .unwrap();
        file.sync().unwrap();
        let mut found = vec![0; file.len().unwrap() as usize];
        file.read_at(0, &mut found).unwrap();
        std::fs::remove_file(&path).unwrap();
        let mut expected = vec![1; 2 * SECTOR];
        expected[700..719].copy_from_slice(b"between two sectors");
        expected.resize(3 * SECTOR, 0);
        expected.resize(4 * SECTOR, 2);
        assert_eq!(found, expected);
    }
}
