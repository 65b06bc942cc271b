// SPDX-License-Identifier: Apache-2.0
//! Files that have a temporary name beside their target until they are complete.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::ExportError;

/// The temporary files of this process.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn unfinished() -> MutexGuard<'static, Vec<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes the unfinished files of this process, which is about to end. Afterwards, no file can be
/// created or completed.
pub fn remove_unfinished() {
    let paths = unfinished();
    for path in paths.iter() {
        // This file may have just been renamed.
        let _ = fs::remove_file(path);
    }
    // Keeps the list locked for ever.
    std::mem::forget(paths);
}

/// How files are created and completed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileOptions {
    /// Whether a file counts as complete only when its content and its name have been synced to
    /// disk.
    pub sync: bool,
    /// Whether a target that is a symbolic link is refused. Otherwise the file that the link leads
    /// to is replaced. (Links to directories in the path are always followed.)
    pub refuses_links: bool,
}

/// A file that gets its final name when it is complete.
///
/// Until then an existing file stays as it is; the new file then takes over its owner and mode. The
/// temporary file is removed if this value is dropped before [`UnfinishedFile::complete`]. The file
/// is locked (`man 2 flock`), so that [`left_over`] can tell files that are still being written
/// from those of a killed process.
#[derive(Debug)]
pub struct UnfinishedFile {
    file: File,
    /// The temporary name; `None` after completion.
    temporary: Option<PathBuf>,
    target: PathBuf,
    directory: PathBuf,
    sync: bool,
}

impl UnfinishedFile {
    /// Creates the temporary file for `path`, which is a regular file or does not exist.
    ///
    /// # Errors
    /// [`ExportError::SymbolicLink`], [`ExportError::IsDirectory`], [`ExportError::NoDirectory`] or
    /// [`ExportError::Create`] if the file cannot be written.
    pub fn create(path: &Path, options: FileOptions) -> Result<Self, ExportError> {
        refuse_link(path, options)?;
        // A symbolic link stays: the file it leads to is replaced.
        let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let source_of = |source| ExportError::Create {
            path: path.to_owned(),
            source,
        };
        let existing = fs::metadata(&target).ok();
        if existing.as_ref().is_some_and(fs::Metadata::is_dir) {
            let path = path.to_owned();
            return Err(ExportError::IsDirectory { path });
        }
        let name = target
            .file_name()
            .ok_or_else(|| source_of(io::ErrorKind::InvalidInput.into()))?;
        let directory = directory_of(&target).to_owned();
        if !directory.is_dir() {
            return Err(ExportError::NoDirectory {
                path: path.to_owned(),
                directory,
            });
        }
        if existing.is_some() {
            // A rename would replace even a write-protected file, so check that it is writable.
            let mut append = OpenOptions::new();
            append.append(true).open(&target).map_err(source_of)?;
        }
        let created = create_beside(&directory, &name.to_string_lossy());
        let (file, temporary) = created.map_err(source_of)?;
        let unfinished = Self {
            file,
            temporary: Some(temporary),
            target,
            directory,
            sync: options.sync,
        };
        if let Some(existing) = existing {
            unfinished.take_after(&existing).map_err(source_of)?;
        }
        Ok(unfinished)
    }

    /// Takes over owner and mode of the file that it will replace.
    fn take_after(&self, existing: &fs::Metadata) -> io::Result<()> {
        #[cfg(unix)]
        {
            use std::os::unix::fs::{MetadataExt, fchown};

            // The owner comes first, because changing it clears bits of the mode.
            match fchown(&self.file, Some(existing.uid()), Some(existing.gid())) {
                Err(error) if has_no_owner_to_give(&error) => {
                    // Its group may still be one of the groups of this process.
                    let _ = fchown(&self.file, None, Some(existing.gid()));
                }
                outcome => outcome?,
            }
        }
        self.file.set_permissions(existing.permissions())
    }

    /// Gives the file its final name.
    ///
    /// # Errors
    /// The underlying I/O error.
    pub fn complete(mut self) -> io::Result<()> {
        let target = self.target.clone();
        self.rename_to(&target)
    }

    fn rename_to(&mut self, name: &Path) -> io::Result<()> {
        if self.sync {
            self.file.sync_all()?;
        }
        if let Some(temporary) = &self.temporary {
            // Under the lock, so that a file is either completed or removed, never both.
            let mut paths = unfinished();
            fs::rename(temporary, name)?;
            paths.retain(|path| path != temporary);
        }
        self.temporary = None;
        if self.sync {
            sync_directory(&self.directory).map_err(|error| {
                let words = format!(
                    "the file is complete and has its name, but its directory {} could not be \
                     synced: {error}",
                    self.directory.display()
                );
                io::Error::new(error.kind(), words)
            })?;
        }
        Ok(())
    }

    /// Keeps the first `length_bytes` bytes, followed by `tail`, as `TARGET.part`. Returns the path
    /// of that file.
    pub(crate) fn keep(mut self, length_bytes: u64, tail: &[u8]) -> io::Result<PathBuf> {
        self.file.set_len(length_bytes)?;
        self.file.seek(SeekFrom::Start(length_bytes))?;
        self.file.write_all(tail)?;
        let mut name = self.target.clone().into_os_string();
        name.push(".part");
        let part = PathBuf::from(name);
        self.rename_to(&part)?;
        Ok(part)
    }
}

impl Write for UnfinishedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for UnfinishedFile {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            let mut paths = unfinished();
            // The error cannot be reported here. The name of a file that stays shows which process
            // left it.
            let _ = fs::remove_file(temporary);
            paths.retain(|path| path != temporary);
        }
    }
}

/// Syncs the names in a directory to disk: a name is part of its directory.
pub(crate) fn sync_directory(directory: &Path) -> io::Result<()> {
    match File::open(directory).and_then(|directory| directory.sync_all()) {
        Err(error) if has_no_sync(&error) => Ok(()),
        outcome => outcome,
    }
}

/// Whether the error means that a directory cannot be synced at all: network and user-space file
/// systems may not support it (EINVAL, EOPNOTSUPP, ENOSYS), and a directory that this process may
/// write but not read cannot be opened for it.
fn has_no_sync(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidInput, PermissionDenied, Unsupported};
    matches!(error.kind(), InvalidInput | PermissionDenied | Unsupported)
}

/// Whether the error means that the owner cannot be changed: only root may give a file away
/// (EPERM), user namespaces of containers do not map every owner (EINVAL), and some file systems
/// have no owners (EOPNOTSUPP, ENOSYS).
#[cfg(unix)]
fn has_no_owner_to_give(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidInput, PermissionDenied, Unsupported};
    matches!(error.kind(), InvalidInput | PermissionDenied | Unsupported)
}

/// Refuses a path that is a symbolic link, if the options say so. Links of the system to open
/// files, such as `/dev/stdout`, are allowed.
///
/// # Errors
/// [`ExportError::SymbolicLink`].
pub fn refuse_link(path: &Path, options: FileOptions) -> Result<(), ExportError> {
    let of_system = ["/dev", "/proc"].iter().any(|root| path.starts_with(root));
    match fs::read_link(path) {
        Ok(target) if options.refuses_links && !of_system => Err(ExportError::SymbolicLink {
            path: path.to_owned(),
            target,
        }),
        _ => Ok(()),
    }
}

/// The directory of a file.
pub(crate) fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

/// Creates `.NAME.PID-N.tmp` in `directory`, with the first free number N. The process id is not
/// sufficient: in containers, every process may have the same one, and a killed process leaves its
/// file behind.
fn create_beside(directory: &Path, name: &str) -> io::Result<(File, PathBuf)> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    loop {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let temporary = directory.join(format!(".{name}.{}-{number}.tmp", process::id()));
        let mut paths = unfinished();
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&temporary);
        match file {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            file => {
                let file = file?;
                paths.push(temporary.clone());
                drop(paths);
                // May wait for a process that looks for leftovers. On a file system without locks,
                // this file would not be found if it were left over.
                let _ = file.lock();
                return Ok((file, temporary));
            }
        }
    }
}

/// Unfinished files in a directory that no process is writing any more and whose target names
/// satisfy `is_target`: what was written before the process was killed or the power failed.
#[must_use]
pub fn left_over(directory: &Path, is_target: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut found: Vec<_> = entries
        .filter(|entry| target_of(&entry.file_name().to_string_lossy()).is_some_and(&is_target))
        .map(|entry| entry.path())
        .filter(|path| is_abandoned(path))
        .collect();
    found.sort();
    found
}

/// Whether no process is writing an unfinished file any more.
pub(crate) fn is_abandoned(path: &Path) -> bool {
    File::open(path).is_ok_and(|file| file.try_lock().is_ok()) && !is_being_created(path)
}

/// Whether a file may have just been created and not been locked yet: it is empty, and a process
/// with the number in its name is running.
fn is_being_created(temporary: &Path) -> bool {
    let name = temporary.file_name().unwrap_or_default().to_string_lossy();
    let process = parts_of(&name).map(|(_, process)| Path::new("/proc").join(process));
    let is_empty = fs::metadata(temporary).is_ok_and(|metadata| metadata.len() == 0);
    is_empty && process.is_some_and(|process| process.exists())
}

/// The name of the target of a file `.NAME.PID-N.tmp`.
pub(crate) fn target_of(temporary: &str) -> Option<&str> {
    parts_of(temporary).map(|(name, _)| name)
}

/// Target name and process id of a file `.NAME.PID-N.tmp`.
fn parts_of(temporary: &str) -> Option<(&str, &str)> {
    let inner = temporary.strip_prefix('.')?.strip_suffix(".tmp")?;
    let (name, numbers) = inner.rsplit_once('.')?;
    let (process, number) = numbers.split_once('-')?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    (is_number(process) && is_number(number)).then_some((name, process))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_unfinished_files_tell_their_target() {
        assert_eq!(target_of(".a.b.csv.17-0.tmp"), Some("a.b.csv"));
        for other in [
            ".a.csv.tmp",
            "a.csv.1-2.tmp",
            ".a.csv.1-.tmp",
            ".a.csv.x-1.tmp",
        ] {
            assert_eq!(target_of(other), None, "{other}");
        }
    }
    #[test]
    fn what_a_file_system_does_not_have_is_not_asked_of_it() {
        // EPERM, EACCES, EINVAL, ENOSYS, EOPNOTSUPP of Linux.
        for number in [1, 13, 22, 38, 95] {
            let error = io::Error::from_raw_os_error(number);
            assert!(has_no_sync(&error), "{error}");
            assert!(has_no_owner_to_give(&error), "{error}");
        }
        // EIO, ENOSPC, EROFS, EDQUOT.
        for number in [5, 28, 30, 122] {
            let error = io::Error::from_raw_os_error(number);
            assert!(!has_no_sync(&error), "{error}");
            assert!(!has_no_owner_to_give(&error), "{error}");
        }
    }

    #[test]
    fn a_file_that_is_just_created_is_not_left_over() {
        let folder = tempfile::tempdir().unwrap();
        let own = process::id();
        // Process ids that cannot exist: those of Linux are below 2^22.
        for (name, content) in [
            (format!(".new.csv.{own}-0.tmp"), ""),
            (format!(".old.csv.{own}-1.tmp"), "x"),
            (".empty.csv.4194305-0.tmp".to_owned(), ""),
        ] {
            fs::write(folder.path().join(name), content).unwrap();
        }
        let found = left_over(folder.path(), |_| true);
        let names: Vec<_> = found
            .iter()
            .map(|path| target_of(path.file_name().unwrap().to_str().unwrap()).unwrap())
            .collect();
        assert_eq!(names, ["empty.csv", "old.csv"]);
    }

    #[test]
    fn a_file_is_listed_until_it_has_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let in_folder = || {
            let paths = unfinished();
            let own = paths.iter().filter(|path| path.starts_with(&folder));
            own.count()
        };
        let options = FileOptions::default();
        let first = UnfinishedFile::create(&folder.path().join("a"), options).unwrap();
        let second = UnfinishedFile::create(&folder.path().join("b"), options).unwrap();
        let third = UnfinishedFile::create(&folder.path().join("c"), options).unwrap();
        assert_eq!(in_folder(), 3);
        first.complete().unwrap();
        assert_eq!(in_folder(), 2);
        drop(second);
        assert_eq!(in_folder(), 1);
        third.keep(0, b"").unwrap();
        assert_eq!(in_folder(), 0);
    }
}
