//! A directory for one test, removed with its owner.

use crate::Error;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// A fresh directory below the system's place for temporary files.
#[derive(Debug)]
pub(crate) struct TemporaryDirectory {
    path: PathBuf,
}

impl TemporaryDirectory {
    pub(crate) fn new() -> Result<Self, Error> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let base = std::env::temp_dir();
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let path = base.join(format!("windlass-test-{}-{number}", std::process::id()));
            match std::fs::create_dir(&path) {
                Ok(()) => return Ok(TemporaryDirectory { path }),
                // Left by a process that had our id and was killed.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(source) => {
                    return Err(Error::File {
                        action: "make",
                        path,
                        source,
                    });
                }
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for TemporaryDirectory {
    fn drop(&mut self) {
        // A directory that stays behind in the place for temporary files harms nobody.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_lives_as_long_as_its_owner() {
        let first = TemporaryDirectory::new().unwrap();
        let second = TemporaryDirectory::new().unwrap();
        assert_ne!(first.path(), second.path());
        let path = first.path().to_owned();
        std::fs::write(path.join("file"), "x").unwrap();
        drop(first);
        assert!(!path.exists());
        assert!(second.path().exists());
    }
}
