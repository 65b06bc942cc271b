// SPDX-License-Identifier: Apache-2.0
//! `--user`: drops root once the interfaces are open.

use anyhow::{Context, bail};
use rustix::process::{Gid, Uid, geteuid};
use rustix::thread::{set_no_new_privs, set_thread_groups, set_thread_res_gid, set_thread_res_uid};

use crate::keys::Key;

/// The list of local users. Users known only to a directory service must be named by number.
const USERS: &str = "/etc/passwd";

/// Switches to `user`, a name or `UID:GID`, permanently.
///
/// The kernel changes only the calling thread and threads that it starts later, so this must run
/// before there are others. When the last user id becomes non-zero, all capabilities are dropped
/// (`man 7 capabilities`).
pub(crate) fn drop_to(user: &str) -> anyhow::Result<()> {
    if !geteuid().is_root() {
        bail!(
            "{} needs root to start with; leave it out, or start as that user",
            Key::User.with(user)
        );
    }
    // The other threads would keep running as root.
    let threads = std::fs::read_dir("/proc/self/task").map_or(1, Iterator::count);
    if threads != 1 {
        bail!("cannot become user {user}: {threads} threads are running already");
    }
    let (uid, gid) = ids_of(user)?;
    let gid = Gid::from_raw(gid);
    let uid = Uid::from_raw(uid);
    set_thread_groups(&[gid])
        .and_then(|()| set_thread_res_gid(gid, gid, gid))
        .and_then(|()| set_thread_res_uid(uid, uid, uid))
        // Programs started from here gain no rights from setuid bits or file capabilities.
        .and_then(|()| set_no_new_privs(true))
        .with_context(|| format!("cannot become user {user}"))
}

/// Checks that the user exists and is not root.
pub(crate) fn check(user: &str) -> anyhow::Result<()> {
    ids_of(user).map(|_| ())
}

fn ids_of(user: &str) -> anyhow::Result<(u32, u32)> {
    let numbers = |uid: &str, gid: &str| Some((uid.parse().ok()?, gid.parse().ok()?));
    let given = user
        .split_once(':')
        .and_then(|(uid, gid)| numbers(uid, gid));
    let ids = match given {
        Some(ids) => ids,
        None => {
            let users = std::fs::read_to_string(USERS).with_context(|| format!("no {USERS}"))?;
            let fields = users
                .lines()
                .map(|line| line.split(':').collect::<Vec<_>>());
            let mut ids = fields.filter_map(|fields| match fields[..] {
                [name, _, uid, gid, ..] if name == user => numbers(uid, gid),
                _ => None,
            });
            ids.next().with_context(|| {
                let user = Key::User.with(user);
                format!("{user}: {USERS} has no such user; create it, or write UID:GID")
            })?
        }
    };
    // To the kernel, -1 means "unchanged", and 0 would drop nothing.
    if ids.0 == 0 || ids.0 == u32::MAX || ids.1 == u32::MAX {
        bail!("{}: name a user other than root", Key::User.with(user));
    }
    Ok(ids)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_users_by_name_and_number() {
        assert_eq!(ids_of("65534:65533").unwrap(), (65_534, 65_533));
        for (user, words) in [
            ("root", "other than root"),
            ("0:0", "other than root"),
            ("4294967295:1", "other than root"),
            ("no-such-user", "no such user"),
            ("1:x", "no such user"),
        ] {
            let message = ids_of(user).unwrap_err().to_string();
            assert!(message.contains(words), "{message}");
        }
    }
}
