// SPDX-License-Identifier: Apache-2.0
//! Network interfaces by name and by index.

use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketType, netdevice, socket};

use crate::KernelError;

/// A socket for requests about interfaces.
pub(crate) fn control_socket() -> rustix::io::Result<OwnedFd> {
    socket(AddressFamily::INET, SocketType::DGRAM, None)
}

/// The index of an interface.
///
/// # Errors
/// Where there is no interface of that name.
pub fn interface_index(name: &str) -> Result<u32, KernelError> {
    let index = control_socket().and_then(|socket| netdevice::name_to_index(&socket, name));
    index.map_err(|_| KernelError::NoInterface {
        name: name.to_owned(),
    })
}

/// Whether there is an interface with this index.
pub(crate) fn exists(index: u32) -> bool {
    let name = control_socket().and_then(|socket| netdevice::index_to_name(&socket, index));
    !matches!(name, Err(Errno::NODEV | Errno::NXIO))
}
