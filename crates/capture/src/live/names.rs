// SPDX-License-Identifier: Apache-2.0
//! Names of interfaces. The kernel has one of at most 15 bytes for each, and any number of
//! alternative names of up to 127 bytes (`ip link property add dev eth0 altname ...`), which only
//! rtnetlink understands.

use std::ffi::{CString, c_int};

use turboflow_netlink::{Link, Netlink};

use super::socket;

/// The kernel's own name and the index of the interface that has this name or alternative name.
pub(super) fn find(name: &str) -> Option<(CString, c_int)> {
    if let Some(own) = socket::kernel_name(name) {
        let index = socket::index_of(&own)?;
        let own = socket::control_socket()
            .ok()
            .and_then(|socket| socket::name_of(&socket, index));
        return own.map(|own| (own, index));
    }
    let link = Link::named(&mut Netlink::route().ok()?, name).ok()??;
    Some((CString::new(link.name).ok()?, link.index.cast_signed()))
}

/// The kernel's own name of the interface that has this name or alternative name.
#[must_use]
pub fn kernel_name(name: &str) -> Option<String> {
    let (own, _) = find(name)?;
    own.into_string().ok()
}

/// The index of the interface that has this name or alternative name.
#[must_use]
pub fn index(name: &str) -> Option<u32> {
    find(name).map(|(_, index)| index.cast_unsigned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_interface_has_its_own_name() {
        assert_eq!(kernel_name("lo").as_deref(), Some("lo"));
        for absent in [
            "",
            "no-such-interface",
            &"x".repeat(100),
            &"x".repeat(500),
            "l\0o",
        ] {
            assert_eq!(kernel_name(absent), None, "{absent:?}");
        }
    }
}
