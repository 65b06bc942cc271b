// SPDX-License-Identifier: Apache-2.0
//! The files that exist, and how to tell that one was replaced.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use turboflow_query::{FoundFiles, QueryError, flow_files_so_far};

/// A file and its state when it was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) path: PathBuf,
    pub(crate) bytes: u64,
    /// `None` if the file does not exist.
    identity: Option<Identity>,
}

/// Properties that change when a file or its content changes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Seen {
    pub(crate) fn of(path: PathBuf) -> Self {
        let metadata = fs::metadata(&path).ok();
        Self {
            bytes: metadata.as_ref().map_or(0, fs::Metadata::len),
            identity: metadata.map(|its| Identity {
                device: its.dev(),
                inode: its.ino(),
                modified: (its.mtime(), its.mtime_nsec()),
                changed: (its.ctime(), its.ctime_nsec()),
            }),
            path,
        }
    }

    /// Whether the path still leads to the same file, and the file is not shorter. It may have
    /// grown.
    pub(crate) fn is_still_there(&self) -> bool {
        let now = Self::of(self.path.clone());
        let place = |seen: &Self| {
            let identity = seen.identity.as_ref();
            identity.map(|its| (its.device, its.inode))
        };
        place(&now) == place(self) && now.bytes >= self.bytes
    }
}

/// The files that the arguments currently stand for. Folders may still be empty.
pub(crate) fn found(given: &[PathBuf]) -> Result<FoundFiles, QueryError> {
    match given {
        [] => Ok(FoundFiles::default()),
        given => flow_files_so_far(given),
    }
}

/// Like [`found`], with the current state of each file.
pub(crate) fn seen(given: &[PathBuf]) -> Vec<Seen> {
    let found = found(given).map(|it| it.files).unwrap_or_default();
    found.into_iter().map(Seen::of).collect()
}
