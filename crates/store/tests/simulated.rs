//! A disk in memory that fails when told to.
//!
//! What is written is readable at once and durable after a sync, as on a real one. A power cut
//! keeps what is durable and any part of the rest, sector by sector. A failed sync loses what it
//! should have made durable: it stays readable, and no later sync brings it to the disk.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use windlass_store::{DataFile, Files, Lock, Presence};

use crate::support::Random;

const SECTOR: usize = 512;

/// Which calls fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The call with this number fails, later ones succeed.
    Once(u64),
    /// The call with this number fails, and all after it.
    From(u64),
    /// The process is killed before the call with this number: nothing after it has any effect.
    Kill(u64),
    /// The power goes away before the call with this number, if that is a sync, else at the next.
    PowerCut(u64),
}

#[derive(Clone)]
pub(crate) struct Disk(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    inodes: Vec<Inode>,
    names: BTreeMap<PathBuf, usize>,
    durable_names: BTreeMap<PathBuf, usize>,
    /// Changes of names since the directory was synced.
    name_changes: Vec<NameChange>,
    locks: BTreeSet<PathBuf>,
    /// Calls so far that change something.
    calls: u64,
    fault: Option<Fault>,
    error: Option<ErrorKind>,
    is_off: bool,
    capacity: Option<usize>,
    random: Random,
}

#[derive(Clone, Default)]
struct Inode {
    /// How often it was synced.
    syncs: u32,
    content: Vec<u8>,
    durable: Vec<u8>,
    /// Changes since the last sync.
    changes: Vec<Change>,
}

#[derive(Clone)]
enum Change {
    Write(usize, Vec<u8>),
    SetLen(usize),
}

#[derive(Clone)]
enum NameChange {
    Set(PathBuf, usize),
    Remove(PathBuf),
}

impl fmt::Debug for Disk {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Disk")
    }
}

impl Disk {
    pub(crate) fn new() -> Disk {
        Disk(Arc::new(Mutex::new(State {
            random: Random::new(1),
            ..State::default()
        })))
    }

    pub(crate) fn files(&self) -> Arc<dyn Files> {
        Arc::new(self.clone())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    /// Calls so far that change something: writes, syncs, lengths, names.
    pub(crate) fn calls(&self) -> u64 {
        self.state().calls
    }

    pub(crate) fn fail(&self, fault: Fault, error: ErrorKind) {
        let mut state = self.state();
        state.fault = Some(fault);
        state.error = Some(error);
    }

    /// The disk works again.
    pub(crate) fn heal(&self) {
        let mut state = self.state();
        state.fault = None;
        state.capacity = None;
    }

    /// The disk takes this many more bytes.
    pub(crate) fn leave_room_for(&self, bytes: usize) {
        let mut state = self.state();
        let used = state.used();
        state.capacity = Some(used + bytes);
    }

    /// The disk after the power comes back: what is durable, and some of what was not yet.
    pub(crate) fn after_power_cut(&self, seed: u64) -> Disk {
        let mut random = Random::new(seed);
        let state = self.state();
        let mut names = state.durable_names.clone();
        let kept = random.below(state.name_changes.len() as u64 + 1) as usize;
        for change in &state.name_changes[..kept] {
            change.apply(&mut names);
        }
        let inodes = state
            .inodes
            .iter()
            .map(|inode| inode.after_power_cut(&mut random))
            .collect();
        let state = State {
            inodes,
            durable_names: names.clone(),
            names,
            random,
            ..State::default()
        };
        Disk(Arc::new(Mutex::new(state)))
    }

    /// The disk as the next process finds it when this one is killed: everything written is
    /// there, and what was not durable is not durable yet.
    pub(crate) fn after_kill(&self) -> Disk {
        let state = self.state();
        let state = State {
            inodes: state.inodes.clone(),
            names: state.names.clone(),
            durable_names: state.durable_names.clone(),
            name_changes: state.name_changes.clone(),
            random: state.random.clone(),
            ..State::default()
        };
        Disk(Arc::new(Mutex::new(state)))
    }

    /// The files and their lengths.
    pub(crate) fn list_all(&self) -> Vec<(PathBuf, usize)> {
        let state = self.state();
        let files = state.names.iter();
        files
            .map(|(path, inode)| (path.clone(), state.inodes[*inode].content.len()))
            .collect()
    }

    pub(crate) fn flip_bit(&self, path: &Path, bit: usize) {
        let mut state = self.state();
        let inode = state.names[path];
        let inode = &mut state.inodes[inode];
        inode.content[bit / 8] ^= 1 << (bit % 8);
        inode.durable = inode.content.clone();
    }

    /// How often the file that has this name was synced, under whatever name.
    pub(crate) fn syncs(&self, path: &Path) -> u32 {
        let state = self.state();
        state.inodes[state.names[path]].syncs
    }

    pub(crate) fn content(&self, path: &Path) -> Vec<u8> {
        let state = self.state();
        state.inodes[state.names[path]].content.clone()
    }
}

impl Inode {
    fn after_power_cut(&self, random: &mut Random) -> Inode {
        let mut content = self.durable.clone();
        for change in &self.changes {
            match change {
                Change::Write(offset, bytes) => {
                    let mut at = *offset;
                    while at < offset + bytes.len() {
                        let end = ((at / SECTOR + 1) * SECTOR).min(offset + bytes.len());
                        if random.below(2) == 0 {
                            write(&mut content, at, &bytes[at - offset..end - offset]);
                        }
                        at = end;
                    }
                }
                Change::SetLen(len) if random.below(2) == 0 => content.resize(*len, 0),
                Change::SetLen(_) => {}
            }
        }
        Inode {
            durable: content.clone(),
            content,
            ..Inode::default()
        }
    }
}

impl NameChange {
    fn apply(&self, names: &mut BTreeMap<PathBuf, usize>) {
        match self {
            NameChange::Set(path, inode) => {
                names.retain(|_, other| other != inode);
                names.insert(path.clone(), *inode);
            }
            NameChange::Remove(path) => {
                names.remove(path);
            }
        }
    }
}

fn write(content: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    if content.len() < offset + bytes.len() {
        content.resize(offset + bytes.len(), 0);
    }
    content[offset..offset + bytes.len()].copy_from_slice(bytes);
}

impl State {
    fn used(&self) -> usize {
        self.names
            .values()
            .map(|inode| self.inodes[*inode].content.len())
            .sum()
    }

    /// Counts a call that changes something, and fails it if it is its turn.
    fn call(&mut self, is_sync: bool) -> io::Result<()> {
        if self.is_off {
            return Err(io::Error::other("the power is off"));
        }
        self.calls += 1;
        let error = self.error.unwrap_or(ErrorKind::Other);
        match self.fault {
            Some(Fault::Once(number)) if self.calls == number => Err(error.into()),
            Some(Fault::From(number)) if self.calls >= number => Err(error.into()),
            Some(Fault::Kill(number)) if self.calls >= number => {
                self.is_off = true;
                Err(io::Error::other("the process is dead"))
            }
            Some(Fault::PowerCut(number)) if self.calls >= number && is_sync => {
                self.is_off = true;
                Err(io::Error::other("the power is off"))
            }
            _ => Ok(()),
        }
    }

    fn check_room(&self, inode: usize, len: usize) -> io::Result<()> {
        let grows = len.saturating_sub(self.inodes[inode].content.len());
        match self.capacity {
            Some(capacity) if grows > 0 && self.used() + grows > capacity => {
                Err(ErrorKind::StorageFull.into())
            }
            _ => Ok(()),
        }
    }

    fn check_power(&self) -> io::Result<()> {
        if self.is_off {
            Err(io::Error::other("the power is off"))
        } else {
            Ok(())
        }
    }
}

impl Disk {
    fn open_file(&self, path: &Path, presence: Presence, is_direct: bool) -> io::Result<OpenFile> {
        let mut state = self.state();
        state.check_power()?;
        let inode = match (state.names.get(path), presence) {
            (Some(_), Presence::New) => return Err(ErrorKind::AlreadyExists.into()),
            (Some(inode), _) => *inode,
            (None, Presence::Existing) => return Err(ErrorKind::NotFound.into()),
            (None, _) => {
                state.call(false)?;
                state.inodes.push(Inode::default());
                let inode = state.inodes.len() - 1;
                state.names.insert(path.to_path_buf(), inode);
                state
                    .name_changes
                    .push(NameChange::Set(path.to_path_buf(), inode));
                inode
            }
        };
        Ok(OpenFile {
            disk: self.clone(),
            inode,
            is_direct,
        })
    }
}

impl Files for Disk {
    fn open(&self, path: &Path, presence: Presence) -> io::Result<Arc<dyn DataFile>> {
        Ok(Arc::new(self.open_file(path, presence, false)?))
    }

    fn create_direct(&self, path: &Path) -> io::Result<Arc<dyn DataFile>> {
        Ok(Arc::new(self.open_file(path, Presence::New, true)?))
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<String>> {
        let state = self.state();
        state.check_power()?;
        let inside = state
            .names
            .keys()
            .filter(|path| path.parent() == Some(directory));
        Ok(inside
            .map(|path| path.file_name().unwrap().to_str().unwrap().to_owned())
            .collect())
    }

    fn create_directory(&self, _directory: &Path) -> io::Result<()> {
        self.state().check_power()
    }

    fn sync_directory(&self, _directory: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.call(true)?;
        state.durable_names = state.names.clone();
        state.name_changes.clear();
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.call(false)?;
        let inode = state.names.remove(from).ok_or(ErrorKind::NotFound)?;
        state.names.insert(to.to_path_buf(), inode);
        state
            .name_changes
            .push(NameChange::Set(to.to_path_buf(), inode));
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.check_power()?;
        if !state.names.contains_key(path) {
            return Err(ErrorKind::NotFound.into());
        }
        state.call(false)?;
        state.names.remove(path);
        state
            .name_changes
            .push(NameChange::Remove(path.to_path_buf()));
        Ok(())
    }

    fn lock(&self, path: &Path) -> io::Result<Lock> {
        let mut state = self.state();
        state.check_power()?;
        if !state.locks.insert(path.to_path_buf()) {
            return Ok(Lock::HeldBy(4121));
        }
        Ok(Lock::Taken(Box::new(HeldLock {
            disk: self.clone(),
            path: path.to_path_buf(),
        })))
    }
}

struct HeldLock {
    disk: Disk,
    path: PathBuf,
}

impl Drop for HeldLock {
    fn drop(&mut self) {
        self.disk.state().locks.remove(&self.path);
    }
}

#[derive(Debug)]
struct OpenFile {
    disk: Disk,
    inode: usize,
    /// It is written as a disk reads memory.
    is_direct: bool,
}

impl DataFile for OpenFile {
    fn len(&self) -> io::Result<u64> {
        let state = self.disk.state();
        state.check_power()?;
        Ok(state.inodes[self.inode].content.len() as u64)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let state = self.disk.state();
        state.check_power()?;
        let content = &state.inodes[self.inode].content;
        let offset = offset as usize;
        let part = content
            .get(offset..offset + buffer.len())
            .ok_or(ErrorKind::UnexpectedEof)?;
        buffer.copy_from_slice(part);
        Ok(())
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.disk.state();
        let offset = offset as usize;
        if self.is_direct {
            let (address, length) = (bytes.as_ptr().addr(), bytes.len());
            assert_eq!(
                (offset % SECTOR, length % SECTOR, address % 4096),
                (0, 0, 0)
            );
        }
        let result = state
            .call(false)
            .and_then(|()| state.check_room(self.inode, offset + bytes.len()));
        let reached = match &result {
            Ok(()) => bytes.len(),
            Err(error) if error.kind() == ErrorKind::StorageFull => 0,
            // A write that fails may have done a part of its work.
            Err(_) if state.is_off => 0,
            Err(_) => {
                let sectors = (bytes.len() / SECTOR) as u64;
                state.random.below(sectors + 1) as usize * SECTOR
            }
        };
        let inode = &mut state.inodes[self.inode];
        write(&mut inode.content, offset, &bytes[..reached]);
        inode
            .changes
            .push(Change::Write(offset, bytes[..reached].to_vec()));
        result
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut state = self.disk.state();
        state.call(false)?;
        state.check_room(self.inode, len as usize)?;
        let inode = &mut state.inodes[self.inode];
        inode.content.resize(len as usize, 0);
        inode.changes.push(Change::SetLen(len as usize));
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.disk.state();
        let result = state.call(true);
        if state.is_off {
            return result;
        }
        let inode = &mut state.inodes[self.inode];
        inode.syncs += 1;
        let changes = std::mem::take(&mut inode.changes);
        if result.is_ok() {
            for change in changes {
                match change {
                    Change::Write(offset, bytes) => write(&mut inode.durable, offset, &bytes),
                    Change::SetLen(len) => inode.durable.resize(len, 0),
                }
            }
        }
        result
    }
}
