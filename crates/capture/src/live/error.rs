// SPDX-License-Identifier: Apache-2.0
//! Why an interface could not be opened, and the mend.

use std::io;

/// Why packets of an interface cannot be captured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InterfaceError {
    /// `any` is no interface of its own.
    #[error(
        "interface any: a packet that passes several interfaces would be metered once at each; \
         name the interfaces with -i, there are: {present}"
    )]
    Any {
        /// The names of the interfaces there are.
        present: String,
    },
    /// A system call failed that does not fail for a reason of the user's.
    #[error("interface {name}: {what}: {source}")]
    Io {
        /// The interface.
        name: String,
        /// What was being done.
        what: &'static str,
        /// What the kernel says.
        source: io::Error,
    },
    /// There is no such interface.
    #[error("there is no interface {name}; there are: {present}")]
    NotFound {
        /// The name.
        name: String,
        /// The names of those there are.
        present: String,
    },
    /// The program may not open packet sockets.
    #[error(
        "interface {name} may not be captured: run as root, or give the program the right once, \
         with `sudo setcap cap_net_raw=ep $(command -v turboflow)`"
    )]
    PermissionDenied {
        /// The interface.
        name: String,
    },
    /// The kernel has no memory for the ring.
    #[error(
        "interface {name}: the kernel gives no ring of {size_bytes} bytes ({source}); lower \
         --ring-size"
    )]
    Ring {
        /// The interface.
        name: String,
        /// How large it should have been.
        size_bytes: usize,
        /// What the kernel says.
        source: io::Error,
    },
    /// The size of the ring is out of its range.
    #[error("`source.ring-size` must be from {low_bytes} to {high_bytes} bytes, not {size_bytes}")]
    RingSize {
        /// The size asked for.
        size_bytes: u64,
        /// The smallest.
        low_bytes: usize,
        /// The largest.
        high_bytes: usize,
    },
    /// A kind of interface whose frames are not understood.
    #[error(
        "interface {name} is of hardware type {number}, which turboflow does not read: it reads \
         Ethernet, loopback, and interfaces of bare IP packets (tun, WireGuard, ipip, sit)"
    )]
    UnsupportedLinkType {
        /// The interface.
        name: String,
        /// The kernel's number of the type (ARPHRD).
        number: u16,
    },
}
