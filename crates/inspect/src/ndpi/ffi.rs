// SPDX-License-Identifier: Apache-2.0
//! The functions of `shim.c`.

use std::ffi::{c_char, c_void};

/// The kinds of a finding's host, as in `shim.c`.
pub(super) const TLS_SERVER: u8 = 1;
pub(super) const DNS_QUERY: u8 = 2;
pub(super) const HTTP_HOST: u8 = 3;

/// `struct turboflow_finding`. Its texts are null-terminated within their arrays.
#[repr(C)]
pub(super) struct Finding {
    pub(super) risk: u64,
    pub(super) master: u16,
    pub(super) application: u16,
    pub(super) category: u16,
    pub(super) confidence: u8,
    pub(super) state: u8,
    pub(super) host_kind: u8,
    pub(super) host: [u8; 256],
    pub(super) ja3: [u8; 33],
    pub(super) ja4: [u8; 37],
}

impl Finding {
    pub(super) const EMPTY: Self = Self {
        risk: 0,
        master: 0,
        application: 0,
        category: 0,
        confidence: 0,
        state: 0,
        host_kind: 0,
        host: [0; 256],
        ja3: [0; 33],
        ja4: [0; 37],
    };
}

/// `struct ndpi_detection_module_struct`, only used behind pointers.
pub(super) type Module = c_void;
/// `struct ndpi_flow_struct`, only used behind pointers.
pub(super) type Flow = c_void;

// SAFETY: the declarations agree with the definitions in `shim.c`, which say what each expects.
unsafe extern "C" {
    pub(super) fn turboflow_ndpi_scale(number: u8, scaled: u8);
    pub(super) fn turboflow_ndpi_open() -> *mut Module;
    pub(super) fn turboflow_ndpi_close(module: *mut Module);
    pub(super) fn turboflow_ndpi_flow() -> *mut Flow;
    pub(super) fn turboflow_ndpi_free(flow: *mut Flow);
    pub(super) fn turboflow_ndpi_heap() -> u64;
    pub(super) fn turboflow_ndpi_packet(
        module: *mut Module,
        flow: *mut Flow,
        datagram: *const u8,
        length: u16,
        time_ms: u64,
        out: *mut Finding,
    );
    pub(super) fn turboflow_ndpi_guess(module: *mut Module, flow: *const Flow, out: *mut Finding);
    pub(super) fn turboflow_ndpi_give_up(module: *mut Module, flow: *mut Flow, out: *mut Finding);
    pub(super) fn turboflow_ndpi_version() -> *const c_char;
    pub(super) fn turboflow_ndpi_applications(module: *mut Module) -> u32;
    pub(super) fn turboflow_ndpi_application(
        module: *mut Module,
        number: u16,
        category: *mut u16,
    ) -> *const c_char;
    pub(super) fn turboflow_ndpi_category(module: *mut Module, number: u16) -> *const c_char;
    pub(super) fn turboflow_ndpi_risk(number: u8) -> *const c_char;
    pub(super) fn turboflow_ndpi_confidence(number: u8) -> *const c_char;
}
