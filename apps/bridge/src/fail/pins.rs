// SPDX-License-Identifier: Apache-2.0
//! Where `fail = "frozen"` pins the program's link and its tables.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::statfs;
use rustix::process::geteuid;
use turboflow_netlink::Link;

use super::FailError;

/// Where the BPF file system is mounted.
pub const BPF_FOLDER: &str = "/sys/fs/bpf";
/// `BPF_FS_MAGIC`.
const BPF_FILES: u64 = 0xcafe_4a11;
/// Only the owner can look inside and take over the pins.
const MODE: u32 = 0o700;

/// The folder of the pins of a bridge between these two ports, below a BPF file system. It is
/// created if it does not exist. A restarted process finds the pins of the one before.
///
/// # Errors
/// If there is no BPF file system, the folder cannot be created, or it belongs to another user.
pub fn pin_folder(below: &Path, first: &Link, second: &Link) -> Result<PathBuf, FailError> {
    let is_bpf = statfs(below).is_ok_and(|found| found.f_type as u64 == BPF_FILES);
    if !is_bpf {
        return Err(FailError::NoBpfFiles {
            folder: below.to_owned(),
        });
    }
    let own = below.join("turboflow");
    let network = network().map_err(|source| FailError::Folder {
        folder: own.clone(),
        source,
    })?;
    let folder = own.join(folder_name(first, second, network));
    let made = DirBuilder::new().recursive(true).mode(MODE).create(&folder);
    let made = match made {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => check_owner(&own).and_then(|()| check_owner(&folder)),
    };
    match made {
        Ok(()) => Ok(folder),
        Err(source) => Err(FailError::Folder { folder, source }),
    }
}

/// The folder in which a bridge that died left its pins for these ports, if there is one.
#[must_use]
pub fn left_pins(below: &Path, first: &Link, second: &Link) -> Option<PathBuf> {
    let name = folder_name(first, second, network().ok()?);
    let folder = below.join("turboflow").join(name);
    let mut files = std::fs::read_dir(&folder).ok()?;
    files.next().is_some().then_some(folder)
}

/// The inode number of this process's network namespace, which identifies it.
fn network() -> io::Result<u64> {
    Ok(std::fs::metadata("/proc/self/ns/net")?.ino())
}

/// Anyone may be able to create folders in the BPF file system, and the owner of a folder could
/// remove the pins.
fn check_owner(folder: &Path) -> io::Result<()> {
    let found = std::fs::symlink_metadata(folder)?;
    let is_own = found.uid() == geteuid().as_raw() && found.mode() & 0o077 == 0;
    match found.is_dir() && is_own {
        true => Ok(()),
        false => Err(io::Error::other(format!(
            "{} is not a folder that only this user may enter; remove it with `rm -r {}`",
            folder.display(),
            folder.display()
        ))),
    }
}

/// The name does not depend on the order of the ports. It includes the namespace, because other
/// network namespaces may have interfaces with the same names and share the BPF file system. Colons
/// separate the parts, because no interface name contains one. Points are escaped: the BPF file
/// system reserves them.
fn folder_name(first: &Link, second: &Link, network: u64) -> String {
    let plain = |link: &Link| link.name.replace('%', "%25").replace('.', "%2e");
    let mut names = [plain(first), plain(second)];
    names.sort();
    format!("{}:{network}", names.join(":"))
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
        let name = |first, second| folder_name(&link(first), &link(second), 7);
        assert_eq!(name("eth0", "eth1"), "eth0:eth1:7");
        assert_eq!(name("eth1", "eth0"), "eth0:eth1:7");
        assert_eq!(name("eth0.10", "eth0%2e10"), "eth0%252e10:eth0%2e10:7");
        assert_ne!(name("a-b", "c"), name("a", "b-c"));
    }

    #[test]
    fn a_folder_that_others_may_enter_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let open = folder.path().join("open");
        DirBuilder::new().mode(0o755).create(&open).unwrap();
        let said = check_owner(&open).unwrap_err().to_string();
        assert!(said.contains("rm -r"), "{said}");
        let own = folder.path().join("own");
        DirBuilder::new().mode(MODE).create(&own).unwrap();
        assert!(check_owner(&own).is_ok());
        std::os::unix::fs::symlink(&own, folder.path().join("link")).unwrap();
        assert!(check_owner(&folder.path().join("link")).is_err());
    }

    #[test]
    fn a_folder_elsewhere_is_no_place_for_pins() {
        let said = pin_folder(Path::new("/"), &link("a"), &link("b")).unwrap_err();
        assert!(said.to_string().contains("mount -t bpf bpf /"), "{said}");
    }
}
