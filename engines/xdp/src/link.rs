// SPDX-License-Identifier: Apache-2.0
//! What keeps the program on an interface, and whether it still does.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use libbpf_rs::libbpf_sys::{bpf_link_detach, bpf_link_info, bpf_obj_get_info_by_fd};

use crate::attach::exists;

/// Whether the packets of an interface still come to the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attachment {
    /// The interface is there, and the program is not on it any more.
    Displaced,
    /// There is no such interface any more.
    Gone,
    /// They do, as long as it is up.
    Holds {
        /// Number of the interface.
        index: u32,
    },
}

/// A link of the program to an interface. Closing it takes the program off.
pub(crate) struct Link {
    fd: OwnedFd,
    /// Number of the interface.
    index: u32,
    /// Number of the program, as the kernel gave it.
    program: u32,
}

impl Link {
    pub(crate) fn new(fd: OwnedFd, index: u32) -> io::Result<Self> {
        let program = describe(&fd)?.prog_id;
        Ok(Self { fd, index, program })
    }

    /// Takes the program off. To close the link is not enough where somebody else holds it too: who lists links does for a moment, who
    /// has pinned it for good.
    pub(crate) fn take_off(self) {
        // SAFETY: the descriptor is open. Where it fails, the interface is gone, or closing it has to do.
        unsafe { bpf_link_detach(self.fd.as_raw_fd()) };
    }

    /// Asks the kernel, in one system call that needs no right. Nobody without a link of his own takes the place of a link: the
    /// kernel refuses `ip link set dev IFACE xdp off`. But one can be detached (`bpftool link detach`), or given another program.
    pub(crate) fn attachment(&self) -> Attachment {
        let holds = Attachment::Holds { index: self.index };
        let Ok(info) = describe(&self.fd) else {
            // Who does not answer says nothing of the program.
            return holds;
        };
        // SAFETY: the kernel has filled in what belongs to the link's kind, which is XDP, and all of it is plain numbers.
        let index = unsafe { info.__bindgen_anon_1.xdp.ifindex };
        // Another number than at the start is that of another namespace, into which somebody has put the interface.
        if index != 0 && info.prog_id == self.program {
            holds
        } else if exists(self.index) {
            Attachment::Displaced
        } else {
            Attachment::Gone
        }
    }
}

fn describe(link: &OwnedFd) -> io::Result<bpf_link_info> {
    let mut info = bpf_link_info::default();
    let mut length_bytes = size_of::<bpf_link_info>() as u32;
    // SAFETY: the kernel writes as much as the length says at most, which is that of `info`, and numbers only.
    let error = unsafe {
        bpf_obj_get_info_by_fd(link.as_raw_fd(), (&raw mut info).cast(), &mut length_bytes)
    };
    match error {
        0 => Ok(info),
        error => Err(io::Error::from_raw_os_error(-error)),
    }
}
