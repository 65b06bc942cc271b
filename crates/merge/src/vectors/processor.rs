// SPDX-License-Identifier: Apache-2.0
//! Who made the processor: what says how it goes about the same instructions.

use std::sync::OnceLock;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    not(target_arch = "x86_64"),
    allow(dead_code, reason = "only x86-64 machines are asked")
)]
pub(super) enum Processor {
    Amd {
        /// As AMD counts them: 19h has Zen 3 and Zen 4, 1ah Zen 5.
        family: u32,
    },
    Intel,
    Other,
}

impl Processor {
    /// That of this machine.
    pub(super) fn this() -> Self {
        // A virtual machine takes microseconds to answer.
        static FOUND: OnceLock<Processor> = OnceLock::new();
        *FOUND.get_or_init(Self::find)
    }

    #[cfg(target_arch = "x86_64")]
    #[allow(unused_unsafe, reason = "asking is safe from Rust 1.94 on")]
    fn find() -> Self {
        use std::arch::x86_64::__cpuid;
        // SAFETY: every x86-64 machine answers.
        let (vendor, signature) = unsafe { (__cpuid(0), __cpuid(1).eax) };
        let family = (signature >> 8 & 0xf) + (signature >> 20 & 0xff);
        let name = [vendor.ebx, vendor.edx, vendor.ecx].map(u32::to_le_bytes);
        match name.as_flattened() {
            b"AuthenticAMD" => Self::Amd { family },
            b"GenuineIntel" => Self::Intel,
            _ => Self::Other,
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    const fn find() -> Self {
        Self::Other
    }
}

/// Whether prefetches go on while one of them waits for its address to be translated: Intel's (measured on a Xeon with AMX), not
/// AMD's (on Zen 4).
#[must_use]
pub fn overlaps_translations() -> bool {
    Processor::this() == Processor::Intel
}
