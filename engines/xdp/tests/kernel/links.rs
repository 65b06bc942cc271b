// SPDX-License-Identifier: Apache-2.0
//! The program on an interface, and when its link is given another program.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use libbpf_rs::libbpf_sys::{
    BPF_PROG_TYPE_XDP, BPF_XDP, bpf_insn, bpf_link_get_fd_by_id, bpf_link_update, bpf_prog_load,
    bpf_prog_load_opts,
};
use libbpf_rs::query::{LinkInfoIter, LinkTypeInfo};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use turboflow_engine_xdp::{Attachment, KernelConfig, XdpMode};
use turboflow_testing::{Need, is_missing};

use crate::support::{config, load_for_all_cpus};

/// The loopback interface is always the first of a network namespace.
const LOOPBACK: u32 = 1;

fn opened(fd: i32) -> OwnedFd {
    assert!(fd >= 0, "{}", io::Error::from_raw_os_error(-fd));
    // SAFETY: the descriptor was opened just now, and has no other owner.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

/// A program that passes every frame.
fn another_program() -> OwnedFd {
    let instruction = |code, imm| bpf_insn {
        code,
        imm,
        ..bpf_insn::default()
    };
    // r0 = XDP_PASS; exit
    let program = [instruction(0xb7, 2), instruction(0x95, 0)];
    let (name, license) = (c"another", c"Apache-2.0");
    // A link requires programs that were loaded for one.
    let mut options = bpf_prog_load_opts {
        sz: size_of::<bpf_prog_load_opts>() as _,
        expected_attach_type: BPF_XDP,
        ..bpf_prog_load_opts::default()
    };
    // SAFETY: name, licence, instructions and options live for the call; count and size are theirs.
    opened(unsafe {
        bpf_prog_load(
            BPF_PROG_TYPE_XDP,
            name.as_ptr(),
            license.as_ptr(),
            program.as_ptr(),
            program.len() as _,
            &raw mut options,
        )
    })
}

/// The new link that holds a program on the test's loopback interface.
fn link_on_loopback(before: &[u32]) -> OwnedFd {
    let link = LinkInfoIter::default().find(|link| {
        let LinkTypeInfo::Xdp(xdp) = &link.info else {
            return false;
        };
        xdp.ifindex == LOOPBACK && !before.contains(&link.id)
    });
    let id = link.expect("the engine is on the interface by a link").id;
    // SAFETY: takes and returns integers.
    opened(unsafe { bpf_link_get_fd_by_id(id) })
}

#[test]
fn another_program_in_our_link_is_noticed() {
    // SAFETY: only the test's thread changes its namespace, and it has no network descriptors.
    let unshared = unsafe { unshare_unsafe(UnshareFlags::NEWNET) };
    if is_missing(&[Need::Right("make network namespaces", unshared.is_ok())]) {
        return;
    }
    let on_loopback = KernelConfig {
        interfaces: vec!["lo".to_owned()],
        ..config(8)
    };
    let Some(mut engine) = load_for_all_cpus(&on_loopback) else {
        return;
    };
    let before: Vec<u32> = LinkInfoIter::default().map(|link| link.id).collect();
    let modes = engine.attach(XdpMode::Auto, false).unwrap();
    assert_eq!(modes, [XdpMode::Generic]);
    let holds = Attachment::Holds { index: LOOPBACK };
    assert!(engine.attachments().eq([holds]));
    let (link, other) = (link_on_loopback(&before), another_program());
    // SAFETY: takes and returns integers; both descriptors are open.
    let error = unsafe { bpf_link_update(link.as_raw_fd(), other.as_raw_fd(), std::ptr::null()) };
    assert_eq!(error, 0, "{}", io::Error::from_raw_os_error(-error));
    assert!(engine.attachments().eq([Attachment::Displaced]));
}
