// SPDX-License-Identifier: Apache-2.0
//! Links of a bridge that outlive the process: they are pinned in the BPF file system, and keep the
//! program and its maps loaded. Frames are treated according to the existing verdicts until a new
//! process replaces the program, in one step.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use libbpf_rs::libbpf_sys::{bpf_link_update, bpf_obj_get, bpf_obj_pin, bpf_prog_get_fd_by_id};

use crate::link::Link;
use crate::{KernelEngine, KernelError, XdpMode};

impl KernelEngine {
    /// As [`attach`](Self::attach) in native mode, but the links are pinned in a folder of the BPF
    /// file system. Links that another process left there are given this program in one step, so no
    /// frame passes without a program in between. [`finish`](Self::finish) detaches the program and
    /// removes the pins.
    ///
    /// # Errors
    /// As `attach`, or where the links cannot be pinned.
    pub fn attach_pinned(&mut self, folder: &Path, replaces: bool) -> Result<(), KernelError> {
        // Named by index, because the next process may list the ports in another order.
        let ports = self.interfaces.iter();
        let paths: Vec<_> = ports
            .map(|(_, index)| folder.join(index.to_string()))
            .collect();
        let mut left = Vec::new();
        for (path, (_, index)) in paths.iter().zip(&self.interfaces) {
            left.extend(LeftLink::open(path, *index)?);
        }
        if left.len() == self.interfaces.len() {
            return self.take_over(left);
        }
        // A program on only one port forwards nothing, so it is detached.
        for link in left {
            Link::new(link.fd, link.index).map_err(failed)?.take_off();
            std::fs::remove_file(link.path).map_err(failed)?;
        }
        self.attach(XdpMode::Native, replaces)?;
        for (link, path) in self.links.iter_mut().zip(paths) {
            link.pin(path)?;
        }
        Ok(())
    }

    /// Replaces the program that another process left on both ports with that of this engine. If
    /// one port refuses, both keep the old program, because it has the verdicts.
    fn take_over(&mut self, left: Vec<LeftLink>) -> Result<(), KernelError> {
        let name = self.program_name();
        let mut programs = self.object.progs();
        let own = programs
            .find(|program| program.name() == name)
            .ok_or(KernelError::Incomplete { name })?;
        for (place, link) in left.iter().enumerate() {
            if let Err(source) = link.update(own.as_fd()) {
                for before in &left[..place] {
                    // The kernel has accepted this program on this link before.
                    let _ = before.update(before.program.as_fd());
                }
                return Err(failed(source));
            }
        }
        let taken = left.into_iter().map(|left| {
            let mut link = Link::new(left.fd, left.index)?;
            link.is_pinned_at(left.path);
            Ok(link)
        });
        self.links = taken.collect::<io::Result<_>>().map_err(failed)?;
        Ok(())
    }
}

/// A link of a port that another process pinned and left.
struct LeftLink {
    fd: OwnedFd,
    /// The index of its interface.
    index: u32,
    path: PathBuf,
    /// The program of that process.
    program: OwnedFd,
}

impl LeftLink {
    /// Opens the pinned link of a port. `None` if there is none, or if it is no longer on that
    /// interface; its file is then removed.
    fn open(path: &Path, index: u32) -> Result<Option<Self>, KernelError> {
        let name = path_of(path).map_err(failed)?;
        // SAFETY: the path ends with a zero.
        let fd = match owned(unsafe { bpf_obj_get(name.as_ptr()) }) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            fd => fd.map_err(failed)?,
        };
        if Link::interface_of(&fd).map_err(failed)? != index {
            std::fs::remove_file(path).map_err(failed)?;
            return Ok(None);
        }
        let id = Link::program_of(&fd).map_err(failed)?;
        // SAFETY: takes and returns integers.
        let program = owned(unsafe { bpf_prog_get_fd_by_id(id) }).map_err(failed)?;
        Ok(Some(Self {
            fd,
            index,
            path: path.to_owned(),
            program,
        }))
    }

    fn update(&self, program: BorrowedFd<'_>) -> io::Result<()> {
        let (link, program) = (self.fd.as_raw_fd(), program.as_raw_fd());
        // SAFETY: both descriptors are open, and no options are passed.
        match unsafe { bpf_link_update(link, program, std::ptr::null()) } {
            0 => Ok(()),
            error => Err(io::Error::from_raw_os_error(-error)),
        }
    }
}

/// A descriptor that libbpf returned, or its error.
fn owned(fd: i32) -> io::Result<OwnedFd> {
    match fd {
        // SAFETY: it was opened just now, and has no other owner.
        0.. => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
        error => Err(io::Error::from_raw_os_error(-error)),
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
