// SPDX-License-Identifier: Apache-2.0
//! Tests the metadata of a driver that has a clock: `tests/driver`, which `scripts/try-kernels.sh`
//! builds and loads.

use std::ffi::c_int;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use turboflow_engine::MicroflowBatch;
use turboflow_engine_xdp::{DriverKnows, KernelConfig, KernelEngine, XdpMode};
use turboflow_record::{Input, KeyField};

use crate::planned::{
    Expected, all_features, compare_totals, compile, definitions, records, totals,
};
use crate::support::{DESIGNS, collect, config, tcp};

/// The device and its clock, as in `clocked.c`.
const DEVICE: &str = "clocked0";
const FIRST_NS: u64 = 1_700_000_000_123_456_789;
const STEP_NS: u64 = 1_000_003;

fn checked(result: c_int) -> c_int {
    assert!(result >= 0, "{}", io::Error::last_os_error());
    result
}

/// Sends frames unchanged.
fn send(frames: &[Vec<u8>]) {
    // SAFETY: takes integers; the descriptor is new and has no other owner.
    let socket = unsafe {
        let fd = checked(libc::socket(libc::AF_PACKET, libc::SOCK_RAW, 0));
        OwnedFd::from_raw_fd(fd)
    };
    let index = rustix::net::netdevice::name_to_index(&socket, DEVICE).unwrap();
    // SAFETY: all zero is a valid value.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_ifindex = index as i32;
    for bytes in frames {
        // SAFETY: the frame and the address live for the call; the lengths are theirs.
        let sent = unsafe {
            libc::sendto(
                socket.as_raw_fd(),
                bytes.as_ptr().cast(),
                bytes.len(),
                0,
                (&raw const address).cast(),
                size_of_val(&address) as u32,
            )
        };
        assert_eq!(sent, bytes.len() as isize, "{}", io::Error::last_os_error());
    }
}

/// Every op on times, for flows with interleaved packets, with both designs of the table: no
/// nanosecond is lost, and no time is that of another frame.
#[test]
#[ignore = "wants the driver of tests/driver: scripts/try-kernels.sh has it"]
fn hardware_timestamps_are_the_drivers() {
    let told = DriverKnows::told_by(DEVICE).unwrap();
    assert!(told.timestamps && !told.tags);
    let mut features = all_features();
    features.retain(|feature| feature.of == Some(Input::HardwareTimestamp));
    assert!(features.len() >= 8, "{}", features.len());
    let frames: Vec<Vec<u8>> = (0..60).map(|number| tcp(number % 3, 0x10)).collect();
    for definition in &definitions(&features, &KeyField::FIVE_TUPLE) {
        let layout = compile(definition);
        let expected = Expected::of_driver(&frames, &layout, |number, values| {
            values.set(Input::HardwareTimestamp, FIRST_NS + STEP_NS * number);
        });
        for tables in DESIGNS {
            let mut engine = KernelEngine::load(&KernelConfig {
                is_bound: true,
                interfaces: vec![DEVICE.to_owned()],
                layout: Some(layout.clone()),
                tables,
                ..config(64)
            })
            .unwrap();
            let modes = engine.attach(XdpMode::Native, false).unwrap();
            assert_eq!(modes, [XdpMode::Native]);
            send(&frames);
            engine.finish().unwrap();
            let mut batch = MicroflowBatch::default();
            collect(&mut engine, &mut batch);
            let totals = totals(&records(&batch, &layout), &layout);
            let compared = compare_totals(&totals, &expected, &layout);
            assert_eq!(compared, 3);
        }
    }
}
