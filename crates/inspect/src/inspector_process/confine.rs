// SPDX-License-Identifier: Apache-2.0
//! Drops all privileges of a process that is about to read hostile packets.
//!
//! It can still read and write the socket that it has, and use memory up to a limit. An attacker
//! who takes it over with a crafted packet can lie about applications, but do nothing else.

use std::io;

use rustix::process::{Resource, Rlimit, setrlimit};

/// Sets the limits that every system has: on memory, and no new files, processes or core dumps.
pub(super) fn limit(memory_bytes: u64) -> io::Result<()> {
    for (resource, limit) in [
        (Resource::As, memory_bytes),
        (Resource::Core, 0),
        (Resource::Fsize, 0),
        (Resource::Nproc, 0),
        // The library may read a file during its setup; `seal` forbids that.
    ] {
        set(resource, limit)?;
    }
    Ok(())
}

fn set(resource: Resource, limit: u64) -> io::Result<()> {
    let both = Rlimit {
        current: Some(limit),
        maximum: Some(limit),
    };
    Ok(setrlimit(resource, both)?)
}

/// Drops the remaining privileges permanently, before the first packet is read.
pub(super) fn seal() -> io::Result<()> {
    // The three standard streams are already open.
    set(Resource::Nofile, 3)?;
    #[cfg(target_os = "linux")]
    linux::seal()?;
    Ok(())
}

#[cfg(target_os = "linux")]
mod linux {
    use std::io;

    use rustix::process::{Gid, Uid, getuid};
    use rustix::thread::{
        CapabilitySet, CapabilitySets, set_capabilities, set_no_new_privs, set_thread_groups,
        set_thread_res_gid, set_thread_res_uid,
    };

    /// The overflow user and group, which own nothing.
    const OVERFLOW: u32 = 65_534;

    pub(super) fn seal() -> io::Result<()> {
        let lost = lose_rights();
        set_no_new_privs(true)?;
        let is_filtered = system_calls::allow_few()?;
        // A service may forbid changing users and capabilities. With the system calls filtered,
        // they are useless anyway.
        if is_filtered { Ok(()) } else { lost }
    }

    fn lose_rights() -> io::Result<()> {
        if getuid().is_root() {
            let (user, group) = (Uid::from_raw(OVERFLOW), Gid::from_raw(OVERFLOW));
            set_thread_groups(&[])?;
            set_thread_res_gid(group, group, group)?;
            set_thread_res_uid(user, user, user)?;
        }
        let none = CapabilitySets {
            effective: CapabilitySet::empty(),
            permitted: CapabilitySet::empty(),
            inheritable: CapabilitySet::empty(),
        };
        Ok(set_capabilities(None, none)?)
    }

    #[cfg(any(
        target_arch = "x86_64",
        target_arch = "aarch64",
        target_arch = "riscv64"
    ))]
    mod system_calls {
        use std::io;

        use seccompiler::{
            BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
            SeccompFilter, SeccompRule, apply_filter,
        };

        /// The system calls for reading a socket, memory, random numbers, clocks and ending the
        /// process.
        const ALLOWED: [i64; 27] = [
            libc::SYS_brk,
            libc::SYS_clock_gettime,
            libc::SYS_close,
            libc::SYS_exit,
            libc::SYS_exit_group,
            libc::SYS_fstat,
            libc::SYS_futex,
            libc::SYS_getpid,
            libc::SYS_getrandom,
            libc::SYS_gettid,
            libc::SYS_gettimeofday,
            libc::SYS_madvise,
            libc::SYS_mremap,
            libc::SYS_munmap,
            libc::SYS_newfstatat,
            libc::SYS_read,
            libc::SYS_readv,
            libc::SYS_recvfrom,
            libc::SYS_restart_syscall,
            libc::SYS_rt_sigaction,
            libc::SYS_rt_sigprocmask,
            libc::SYS_rt_sigreturn,
            libc::SYS_sendto,
            libc::SYS_sigaltstack,
            libc::SYS_tgkill,
            libc::SYS_write,
            libc::SYS_writev,
        ];

        /// Allowed unless they make memory executable; with the number of the relevant argument.
        const PROTECTING: [(i64, u8); 2] = [(libc::SYS_mmap, 2), (libc::SYS_mprotect, 2)];

        /// All other system calls fail with "not permitted".
        pub(super) fn allow_few() -> io::Result<bool> {
            let program = program().map_err(io::Error::other)?;
            apply_filter(&program).map_err(|error| {
                let mend = "a service has to allow `seccomp` in its SystemCallFilter";
                io::Error::other(format!(
                    "its system calls cannot be limited ({error}): {mend}"
                ))
            })?;
            Ok(true)
        }

        fn program() -> Result<BpfProgram, seccompiler::BackendError> {
            let mut rules: std::collections::BTreeMap<i64, Vec<SeccompRule>> =
                ALLOWED.iter().map(|call| (*call, Vec::new())).collect();
            for (call, argument) in PROTECTING {
                let executable = libc::PROT_EXEC as u64;
                let condition = SeccompCondition::new(
                    argument,
                    SeccompCmpArgLen::Dword,
                    SeccompCmpOp::MaskedEq(executable),
                    0,
                )?;
                rules.insert(call, vec![SeccompRule::new(vec![condition])?]);
            }
            SeccompFilter::new(
                rules,
                SeccompAction::Errno(libc::EPERM as u32),
                SeccompAction::Allow,
                std::env::consts::ARCH.try_into()?,
            )?
            .try_into()
        }
    }

    #[cfg(not(any(
        target_arch = "x86_64",
        target_arch = "aarch64",
        target_arch = "riscv64"
    )))]
    mod system_calls {
        /// There is no filter for this processor, so only the other limits apply.
        pub(super) fn allow_few() -> std::io::Result<bool> {
            Ok(false)
        }
    }
}
