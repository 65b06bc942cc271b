// SPDX-License-Identifier: Apache-2.0
//! What forwards when the process is gone.
//!
//! `open`: a [`LinuxBridge`] of both ports below the program, which forwards when the program goes,
//! and stays. `frozen`: the program's link and tables are pinned in a [folder](pin_folder), and
//! stay. `closed`: nothing is made here, so nothing forwards.

mod linux_bridge;
mod pins;

use std::io;
use std::path::PathBuf;

use thiserror::Error;

pub use linux_bridge::{LinuxBridge, firewalls};
pub use pins::{BPF_FOLDER, left_pins, pin_folder};

/// Why what forwards in a failure cannot be made.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FailError {
    /// The kernel refuses a step.
    #[error("fail = \"open\": {what} failed: {source}{mend}")]
    Refused {
        /// The step, with its interface.
        what: String,
        /// The kernel's error.
        source: io::Error,
        /// What to do, behind a semicolon; empty if that is not known.
        mend: &'static str,
    },
    /// There is another interface of the name.
    #[error(
        "fail = \"open\": there is an interface {name} that is not the bridge of {first} and \
         {second}: remove it with `ip link del dev {name}`"
    )]
    NameTaken {
        /// The name that the Linux bridge is to have.
        name: String,
        /// One port.
        first: String,
        /// The other port.
        second: String,
    },
    /// There is no BPF file system.
    #[error(
        "fail = \"frozen\": there is no BPF file system at {folder}: `mount -t bpf bpf {folder}`"
    )]
    NoBpfFiles {
        /// Where it is looked for.
        folder: PathBuf,
    },
    /// A bridge that died left its program there.
    #[error(
        "interfaces {first} and {second} still have the program of a frozen bridge whose process \
         died ({folder}): `rm -r {folder}` takes it off, and nothing forwards until this one \
         starts; or write fail = \"frozen\" to take it over"
    )]
    LeftFrozen {
        /// One port.
        first: String,
        /// The other port.
        second: String,
        /// The folder of its pins.
        folder: PathBuf,
    },
    /// The folder cannot be made.
    #[error("fail = \"frozen\": the folder {folder} cannot be made: {source}")]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
}
