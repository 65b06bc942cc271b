// SPDX-License-Identifier: Apache-2.0
//! Links of a bridge that outlive the process: they are pinned in the BPF file system, and hold the
//! program and its tables. Frames go on by the verdicts that are there, until a new process puts
//! its program in the place of the old one, in one step.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use libbpf_rs::libbpf_sys::{bpf_link_update, bpf_obj_get, bpf_obj_pin};

use crate::link::Link;
use crate::{KernelEngine, KernelError, XdpMode};

/// The files in the folder of the pins, by the place of the port.
const NAMES: [&str; 2] = ["first", "second"];

impl KernelEngine {
    /// As [`attach`](Self::attach) in native mode, with links that are pinned in a folder of the
    /// BPF file system. Links that another process left there get this program, and no frame passes
    /// without one of the two. When this engine ends by itself, it takes its program off and
    /// removes the pins.
    ///
    /// # Errors
    /// As `attach`, or where the links cannot be pinned.
    pub fn attach_pinned(&mut self, folder: &Path, replaces: bool) -> Result<(), KernelError> {
        let paths = NAMES.map(|name| folder.join(name));
        let mut taken = Vec::new();
        for (path, (_, index)) in paths.iter().zip(&self.interfaces) {
            if let Some(link) = self.take_over(path, *index)? {
                taken.push(link);
            }
        }
        if taken.len() == self.interfaces.len() {
            self.links = taken;
            return Ok(());
        }
        // One port alone forwards nothing.
        taken.into_iter().for_each(Link::take_off);
        self.attach(XdpMode::Native, replaces)?;
        for (link, path) in self.links.iter_mut().zip(paths) {
            link.pin(path)?;
        }
        Ok(())
    }

    /// The link of a port that another process pinned, with this engine's program. `None` if there
    /// is none, or its interface is gone: then the file is removed.
    fn take_over(&self, path: &Path, index: u32) -> Result<Option<Link>, KernelError> {
        let name = path_of(path).map_err(failed)?;
        // SAFETY: the path ends with a zero.
        let fd = unsafe { bpf_obj_get(name.as_ptr()) };
        if fd < 0 {
            return match io::Error::from_raw_os_error(-fd) {
                error if error.kind() == io::ErrorKind::NotFound => Ok(None),
                error => Err(failed(error)),
            };
        }
        // SAFETY: the link was opened just now, and has no other owner.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        let is_of_port = Link::interface_of(&fd).map_err(failed)? == index;
        let program = self
            .object
            .progs()
            .find(|program| program.name() == self.program_name())
            .ok_or(KernelError::Incomplete {
                name: self.program_name(),
            })?;
        let program = program.as_fd().as_raw_fd();
        // SAFETY: both are open, and no options are given.
        let updates = is_of_port
            && unsafe { bpf_link_update(fd.as_raw_fd(), program, std::ptr::null()) } == 0;
        if !updates {
            std::fs::remove_file(path).map_err(failed)?;
            return Ok(None);
        }
        let mut link = Link::new(fd, index).map_err(failed)?;
        link.is_pinned_at(path.to_owned());
        Ok(Some(link))
    }
}

impl Link {
    fn pin(&mut self, path: PathBuf) -> Result<(), KernelError> {
        let name = path_of(&path).map_err(failed)?;
        // SAFETY: the link is open, and the path ends with a zero.
        match unsafe { bpf_obj_pin(self.as_fd().as_raw_fd(), name.as_ptr()) } {
            0 => {
                self.is_pinned_at(path);
                Ok(())
            }
            error => Err(failed(io::Error::from_raw_os_error(-error))),
        }
    }
}

fn path_of(path: &Path) -> io::Result<CString> {
    CString::new(path.as_os_str().as_bytes()).map_err(io::Error::other)
}

fn failed(source: io::Error) -> KernelError {
    KernelError::Map {
        what: "links in the BPF file system",
        source,
    }
}
