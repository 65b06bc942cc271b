// SPDX-License-Identifier: Apache-2.0
//! Filter expressions as tcpdump has them (`tcp port 443`): compiled by libpcap, which is looked
//! for when a filter is asked for and not before; run by the kernel for interfaces, and here for
//! files.

mod compiler;
mod files;
mod program;

#[cfg(all(test, target_os = "linux"))]
pub(crate) use program::Captured;

pub use compiler::{Compiler, FilterError};
pub use files::FileFilter;
pub use program::{Instruction, InvalidProgram, Program};
