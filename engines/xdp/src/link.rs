// SPDX-License-Identifier: Apache-2.0
//! The BPF link that attaches the program to an interface, and its state.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

use libbpf_rs::libbpf_sys::{bpf_link_detach, bpf_link_info, bpf_obj_get_info_by_fd};

use crate::interface::exists;

/// Whether packets of an interface still reach the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attachment {
    /// The interface exists, and the program is no longer attached.
    Displaced,
    /// The interface no longer exists.
    Gone,
    /// Packets reach the program while the interface is up.
    Holds {
        /// Index of the interface.
        index: u32,
    },
}

/// A link of the program to an interface. Closing it detaches the program.
pub(crate) struct Link {
    fd: OwnedFd,
    /// Index of the interface.
    index: u32,
    /// Id of the program, assigned by the kernel.
    program: u32,
    /// The file that pins the link, so that it outlives this process.
    pinned: Option<PathBuf>,
}

impl Link {
    pub(crate) fn new(fd: OwnedFd, index: u32) -> io::Result<Self> {
        let program = describe(&fd)?.prog_id;
        Ok(Self {
            fd,
            index,
            program,
            pinned: None,
        })
    }

    /// The index of the interface that a link is on; 0 if the interface is gone.
    pub(crate) fn interface_of(fd: &OwnedFd) -> io::Result<u32> {
        // SAFETY: the kernel has filled in the fields for the link's type, which is XDP; all are
        // integers.
        Ok(unsafe { describe(fd)?.__bindgen_anon_1.xdp.ifindex })
    }

    /// The id of the program that a link attaches.
    pub(crate) fn program_of(fd: &OwnedFd) -> io::Result<u32> {
        Ok(describe(fd)?.prog_id)
    }

    /// Notes the file that pins the link.
    pub(crate) fn is_pinned_at(&mut self, path: PathBuf) {
        self.pinned = Some(path);
    }

    /// Detaches the program. Closing the link is not sufficient while another process holds it too:
    /// listing links holds each for a moment, pinning one holds it permanently.
    pub(crate) fn take_off(self) {
        // Meanwhile, another process may have attached its program through the pinned link.
        if self.pinned.is_some() && describe(&self.fd).is_ok_and(|its| its.prog_id != self.program)
        {
            return;
        }
        // SAFETY: the descriptor is open. On failure the interface is gone, or closing the link
        // must suffice.
        unsafe { bpf_link_detach(self.fd.as_raw_fd()) };
        if let Some(path) = self.pinned {
            // A file that remains pins a link without an interface; the next process removes it.
            let _ = std::fs::remove_file(path);
        }
    }

    /// Queries the state with one system call, which needs no privilege. `ip link set dev IFACE xdp
    /// off` cannot remove a program that a link attached. But a link can be detached (`bpftool link
    /// detach`), or given another program.
    pub(crate) fn attachment(&self) -> Attachment {
        let holds = Attachment::Holds { index: self.index };
        let Ok(info) = describe(&self.fd) else {
            // Without an answer, nothing is known about the program.
            return holds;
        };
        // SAFETY: the kernel has filled in the fields for the link's type, which is XDP; all are
        // integers.
        let index = unsafe { info.__bindgen_anon_1.xdp.ifindex };
        // If the index has changed, the interface was moved to another namespace.
        if index != 0 && info.prog_id == self.program {
            holds
        } else if exists(self.index) {
            Attachment::Displaced
        } else {
            Attachment::Gone
        }
    }
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn describe(link: &OwnedFd) -> io::Result<bpf_link_info> {
    let mut info = bpf_link_info::default();
    let mut length_bytes = size_of::<bpf_link_info>() as u32;
    // SAFETY: the kernel writes at most the given length, which is that of `info`, and integers
    // only.
    let error = unsafe {
        bpf_obj_get_info_by_fd(link.as_raw_fd(), (&raw mut info).cast(), &mut length_bytes)
    };
    match error {
        0 => Ok(info),
        error => Err(io::Error::from_raw_os_error(-error)),
    }
}
