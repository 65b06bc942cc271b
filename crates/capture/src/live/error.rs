// SPDX-License-Identifier: Apache-2.0
//! Errors of opening an interface. Messages say what to do.

use std::io;

/// Why packets of an interface cannot be captured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InterfaceError {
    /// `any` is not a single interface.
    #[error(
        "interface any: a packet that passes several interfaces would be metered once at each; \
         name the interfaces with -i, there are: {present}"
    )]
    Any {
        /// The names of existing interfaces.
        present: String,
    },
    /// A system call failed for a reason that is not the user's.
    #[error("interface {name}: {what}: {source}")]
    Io {
        /// The interface.
        name: String,
        /// What was attempted.
        what: &'static str,
        /// The kernel's error.
        source: io::Error,
    },
    /// There is no such interface.
    #[error("there is no interface {name}; there are: {present}")]
    NotFound {
        /// The name.
        name: String,
        /// The names of existing interfaces.
        present: String,
    },
    /// The program lacks permission to open packet sockets.
    #[error(
        "interface {name} may not be captured: run as root, or give the program the right once, \
         with `sudo setcap cap_net_raw=ep $(command -v turboflow)`"
    )]
    PermissionDenied {
        /// The interface.
        name: String,
    },
    /// The kernel has too little memory for the ring.
    #[error(
        "interface {name}: the kernel gives no ring of {size_bytes} bytes ({source}); ask for \
         a smaller one"
    )]
    Ring {
        /// The interface.
        name: String,
        /// The requested size.
        size_bytes: usize,
        /// The kernel's error.
        source: io::Error,
    },
    /// The ring size is out of range.
    #[error("`source.ring-size` must be from {low_bytes} to {high_bytes} bytes, not {size_bytes}")]
    RingSize {
        /// The requested size.
        size_bytes: u64,
        /// The smallest.
        low_bytes: usize,
        /// The largest.
        high_bytes: usize,
    },
    /// A hardware type whose frames TurboFlow cannot parse.
    #[error(
        "interface {name} is of hardware type {number}, which turboflow does not read: it reads \
         Ethernet, loopback, and interfaces of bare IP packets (tun, WireGuard, ipip, sit)"
    )]
    UnsupportedLinkType {
        /// The interface.
        name: String,
        /// The kernel's number for the type (ARPHRD).
        number: u16,
    },
}
