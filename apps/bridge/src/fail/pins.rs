// SPDX-License-Identifier: Apache-2.0
//! Where `fail = "frozen"` pins the program's link and its tables.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fs::statfs;
use turboflow_netlink::Link;

use super::FailError;

/// Where the BPF file system is mounted.
pub const BPF_FOLDER: &str = "/sys/fs/bpf";
/// `BPF_FS_MAGIC`.
const BPF_FILES: u64 = 0xcafe_4a11;
/// Only the owner looks inside and takes over.
const MODE: u32 = 0o700;

/// The folder of the pins of a bridge between these two ports, below a BPF file system; it is made
/// if it is not there. A process that starts anew finds what one before left.
///
/// # Errors
/// If there is no BPF file system, or the folder cannot be made.
pub fn pin_folder(below: &Path, first: &Link, second: &Link) -> Result<PathBuf, FailError> {
    let is_bpf = statfs(below).is_ok_and(|found| found.f_type as u64 == BPF_FILES);
    if !is_bpf {
        return Err(FailError::NoBpfFiles {
            folder: below.to_owned(),
        });
    }
    let folder = below.join("turboflow").join(folder_name(first, second));
    let made = DirBuilder::new().recursive(true).mode(MODE).create(&folder);
    match made {
        Ok(()) => Ok(folder),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(folder),
        Err(source) => Err(FailError::Folder { folder, source }),
    }
}

/// No name of an interface has a colon. The BPF file system keeps points for itself.
fn folder_name(first: &Link, second: &Link) -> String {
    let plain = |link: &Link| link.name.replace('%', "%25").replace('.', "%2e");
    format!("{}:{}", plain(first), plain(second))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(name: &str) -> Link {
        Link {
            name: name.to_owned(),
            ..Link::default()
        }
    }

    #[test]
    fn every_pair_has_a_folder_of_its_own() {
        let name = |first, second| folder_name(&link(first), &link(second));
        assert_eq!(name("eth0", "eth1"), "eth0:eth1");
        assert_eq!(name("eth0.10", "eth0%2e10"), "eth0%2e10:eth0%252e10");
        assert_ne!(name("a-b", "c"), name("a", "b-c"));
    }

    #[test]
    fn a_folder_elsewhere_is_no_place_for_pins() {
        let said = pin_folder(Path::new("/"), &link("a"), &link("b")).unwrap_err();
        assert!(said.to_string().contains("mount -t bpf bpf /"), "{said}");
    }
}
