// SPDX-License-Identifier: Apache-2.0
//! nDPI, a shared library of the system, behind `shim.c`.
//!
//! The library is C code that reads hostile input. It only runs in a process without privileges
//! ([`child_main`](crate::child_main)).

mod ffi;
mod names;

use std::ptr::NonNull;

use turboflow_record::ApplicationNames;

use crate::{Confidence, Facts, Inspector, Progress, Sight, Text};

/// The length of an IP packet has 16 bits, and so does the library's argument.
const MAX_DATAGRAM_BYTES: usize = u16::MAX as usize;

/// The library, ready to inspect. It has its own caches of hosts, so results do not depend on other
/// modules in the process.
pub struct NdpiInspector {
    module: NonNull<ffi::Module>,
    finding: ffi::Finding,
}

/// A flow under inspection. The library frees it, so it must be dropped before its inspector.
pub struct NdpiFlow {
    flow: NonNull<ffi::Flow>,
}

impl NdpiInspector {
    /// Sets up the library, which takes about 0.1 s and 6 MB. `None` if its version differs from
    /// that of the headers at build time, or there is no memory.
    #[must_use]
    pub fn new() -> Option<Self> {
        // SAFETY: has no conditions. The module is freed once, in `drop`.
        let module = NonNull::new(unsafe { ffi::turboflow_ndpi_open() })?;
        names::scale_confidences();
        let finding = ffi::Finding::EMPTY;
        Some(Self { module, finding })
    }

    fn tell(&self, facts: &mut Facts) {
        let finding = &self.finding;
        facts.clear();
        facts.application = u32::from(finding.master) << 16 | u32::from(finding.application);
        // Version 4.2 reports some applications as their own master.
        if finding.master == finding.application {
            facts.application = finding.application.into();
        }
        facts.category = finding.category.try_into().unwrap_or(u8::MAX);
        facts.confidence = Confidence::of_number(finding.confidence).unwrap_or_default();
        facts.risk = finding.risk;
        facts.set_text(Text::Ja3, until_zero(&finding.ja3));
        facts.set_text(Text::Ja4, until_zero(&finding.ja4));
        let host = match finding.host_kind {
            ffi::TLS_SERVER => Some(Text::ServerName),
            ffi::DNS_QUERY => Some(Text::DnsQueryName),
            ffi::HTTP_HOST => Some(Text::HttpHost),
            _ => None,
        };
        if let Some(host) = host {
            facts.set_text(host, until_zero(&finding.host));
        }
    }
}

/// The bytes before the first null byte.
fn until_zero(bytes: &[u8]) -> &[u8] {
    bytes.split(|&byte| byte == 0).next().unwrap_or_default()
}

impl Inspector for NdpiInspector {
    type Flow = NdpiFlow;

    fn open(&mut self) -> Option<NdpiFlow> {
        // SAFETY: has no conditions. The flow is freed once, when the value is dropped.
        let flow = NonNull::new(unsafe { ffi::turboflow_ndpi_flow() })?;
        Some(NdpiFlow { flow })
    }

    fn inspect(&mut self, flow: &mut NdpiFlow, sight: &Sight<'_>, facts: &mut Facts) -> Progress {
        let datagram = &sight.datagram[..sight.datagram.len().min(MAX_DATAGRAM_BYTES)];
        // SAFETY: module and flow are alive and not used by anything else, since both are borrowed
        // for writing; the datagram is `length` bytes; the finding is the struct that it expects.
        unsafe {
            ffi::turboflow_ndpi_packet(
                self.module.as_ptr(),
                flow.flow.as_ptr(),
                datagram.as_ptr(),
                datagram.len() as u16,
                sight.time_ns / 1_000_000,
                &raw mut self.finding,
            );
        }
        self.tell(facts);
        match self.finding.state {
            0 => Progress::Undecided,
            1 => Progress::Known,
            _ => Progress::Complete,
        }
    }

    fn guess(&mut self, flow: &NdpiFlow, facts: &mut Facts) {
        // SAFETY: as in `inspect`; the flow is only read, and its copy does not outlive the call.
        unsafe {
            ffi::turboflow_ndpi_guess(
                self.module.as_ptr(),
                flow.flow.as_ptr(),
                &raw mut self.finding,
            );
        }
        self.tell(facts);
    }

    fn give_up(&mut self, flow: NdpiFlow, facts: &mut Facts) {
        // SAFETY: as in `inspect`; the flow is freed after the call.
        unsafe {
            ffi::turboflow_ndpi_give_up(
                self.module.as_ptr(),
                flow.flow.as_ptr(),
                &raw mut self.finding,
            );
        }
        self.tell(facts);
    }

    fn names(&self) -> ApplicationNames {
        names::names(self.module)
    }

    fn heap_bytes(&self) -> u64 {
        // SAFETY: has no conditions.
        unsafe { ffi::turboflow_ndpi_heap() }
    }
}

impl Drop for NdpiFlow {
    fn drop(&mut self) {
        // SAFETY: it came from `turboflow_ndpi_flow`, and nothing uses it any more.
        unsafe { ffi::turboflow_ndpi_free(self.flow.as_ptr()) }
    }
}

impl Drop for NdpiInspector {
    fn drop(&mut self) {
        // SAFETY: it came from `turboflow_ndpi_open`, and nothing uses it any more.
        unsafe { ffi::turboflow_ndpi_close(self.module.as_ptr()) }
    }
}
