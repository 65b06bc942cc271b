// SPDX-License-Identifier: Apache-2.0
//! Filter expressions in tcpdump's syntax (`tcp port 443`). They are compiled by libpcap, which is
//! loaded only when there is a filter. For interfaces the kernel runs them, for files this crate.

mod compiler;
mod files;
mod program;

#[cfg(all(test, target_os = "linux"))]
pub(crate) use program::Captured;

pub use compiler::{Compiler, FilterError};
pub use files::FileFilter;
pub use program::{Instruction, InvalidProgram, Program};
