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

/// New files hold secrets, whatever the directory they are in allows.
const OWNER_ONLY: u32 = 0o600;

/// The file system of the machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemFiles;

impl Files for SystemFiles {
    fn open(&self, path: &Path, presence: Presence) -> io::Result<Arc<dyn DataFile>> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).mode(OWNER_ONLY);
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
        let mut options = OpenOptions::new();
        let mut file = options
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(OWNER_ONLY)
            .open(path)?;
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
