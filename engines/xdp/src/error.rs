// SPDX-License-Identifier: Apache-2.0
//! What can be wrong around the program.

/// Why the engine could not start or go on.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// A number of the configuration is out of its range.
    #[error("{what} is {value}: {allowed}")]
    Configuration {
        /// Which.
        what: &'static str,
        /// As given.
        value: u64,
        /// What it may be.
        allowed: &'static str,
    },
    /// The kernel or libbpf refused.
    #[error(
        "the kernel engine could not {doing} ({source}); it needs root and BPF, --engine software needs neither"
    )]
    Refused {
        /// Doing what.
        doing: &'static str,
        /// As libbpf says it.
        #[source]
        source: libbpf_rs::Error,
    },
    /// The program that was compiled in has no map or program of that name.
    #[error("the kernel engine's program has no `{name}`: it was built wrongly")]
    Incomplete {
        /// Of the map or program.
        name: &'static str,
    },
    /// The ring carried something that is no record.
    #[error(
        "the kernel engine's ring carried {count} items that are no records: program and reader do not match"
    )]
    ForeignItems {
        /// How many.
        count: u64,
    },
}

impl KernelError {
    pub(crate) fn refused(doing: &'static str) -> impl FnOnce(libbpf_rs::Error) -> Self {
        move |source| Self::Refused { doing, source }
    }

    /// Whether it was a missing right, and not a fault: `EPERM` or `EACCES`.
    #[must_use]
    pub fn is_permission(&self) -> bool {
        matches!(self, Self::Refused { source, .. } if source.kind() == libbpf_rs::ErrorKind::PermissionDenied)
    }
}
