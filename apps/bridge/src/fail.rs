// SPDX-License-Identifier: Apache-2.0
//! What forwards frames after the process has ended.
//!
//! - `open`: a [`LinuxBridge`] of both ports below the program. It remains when the program is
//!   gone, and then forwards all frames.
//! - `frozen`: the program's link and tables are pinned in a [folder](pin_folder), so they remain
//!   in the kernel.
//! - `closed`: nothing is set up, so nothing is forwarded.

mod linux_bridge;
mod pins;

use std::io;
use std::path::PathBuf;

use thiserror::Error;

pub use linux_bridge::{LinuxBridge, firewalls};
pub use pins::{BPF_FOLDER, left_pins, pin_folder};

/// Why the fail mode cannot be set up.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FailError {
    /// The kernel refused a step.
    #[error("fail = \"open\": {what} failed: {source}{mend}")]
    Refused {
        /// The step, including its interface.
        what: String,
        /// The kernel's error.
        source: io::Error,
        /// What to do, starting with a semicolon; empty if unknown.
        mend: &'static str,
    },
    /// Another interface has the name.
    #[error(
        "fail = \"open\": the bridge of {first} and {second} cannot be named {name}, because \
         another interface has that name: remove the interface with `ip link del dev {name}`"
    )]
    NameTaken {
        /// The name that the Linux bridge should have.
        name: String,
        /// One port.
        first: String,
        /// The other port.
        second: String,
    },
    /// No BPF file system is mounted.
    #[error(
        "fail = \"frozen\": there is no BPF file system at {folder}: mount one with \
         `mount -t bpf bpf {folder}`"
    )]
    NoBpfFiles {
        /// Where it was expected.
        folder: PathBuf,
    },
    /// A bridge whose process has died left its program on the ports.
    #[error(
        "interfaces {first} and {second} still have the program of a frozen bridge whose process \
         died ({folder}): detach that program with `rm -r {folder}` (nothing is forwarded until \
         this bridge starts), or write fail = \"frozen\" to take the program over"
    )]
    LeftFrozen {
        /// One port.
        first: String,
        /// The other port.
        second: String,
        /// The folder that holds its pins.
        folder: PathBuf,
    },
    /// The folder cannot be created.
    #[error("fail = \"frozen\": the folder {folder} cannot be used: {source}")]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
}
