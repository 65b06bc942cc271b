// SPDX-License-Identifier: Apache-2.0
//! Errors of the engine in the kernel.

use std::io;

use libbpf_rs::ErrorKind;

/// Why the engine could not start or continue.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// A configured value is out of range.
    #[error("{what} is {value}, but must be {allowed}")]
    Configuration {
        /// The name of the value.
        what: &'static str,
        /// The value.
        value: u64,
        /// The valid range.
        allowed: &'static str,
    },
    /// The rows of all tables exceed the range of row numbers.
    #[error(
        "{slots} microflow slots on each of {cpus} CPUs are more rows than the kernel engine can \
         number; lower `engine.microflow-slots`, or use one table for all CPUs \
         (`engine.xdp.table=row-lock`)"
    )]
    TooManyRows {
        /// Slots of a table.
        slots: u32,
        /// Possible CPUs.
        cpus: usize,
    },
    /// A record definition exceeds a limit of the engine.
    #[error(
        "this definition takes {needed} {what}; the engine in the kernel has room for {room}; `engine.name=software` works"
    )]
    TooLarge {
        /// The limited resource.
        what: &'static str,
        /// The amount needed.
        needed: usize,
        /// The limit.
        room: usize,
    },
    /// A record definition names an input that this engine does not provide.
    #[error("the engine in the kernel does not see `{input}`")]
    Unseen {
        /// The input's name.
        input: &'static str,
    },
    /// The layout is bidirectional.
    #[error(
        "the engine in the kernel does not join the two directions of a flow; `engine.name=software` does"
    )]
    Biflow,
    /// The kernel or libbpf returned an error.
    #[error("the kernel engine could not {doing} ({source}); {}", mend_of(of_io(source.kind())))]
    Refused {
        /// The failed action.
        doing: &'static str,
        /// The error of libbpf.
        #[source]
        source: libbpf_rs::Error,
    },
    /// The program cannot be bound to the interface: its driver has no native mode, or the kernel
    /// is too old.
    #[error(
        "{name} does not take a program that reads `hardware_timestamp` from the driver \
         ({source}): this needs native XDP and Linux 6.7; leave `hardware_timestamp` out of the \
         definition"
    )]
    NoDriver {
        /// The interface.
        name: String,
        /// The error of libbpf.
        #[source]
        source: libbpf_rs::Error,
    },
    /// Memory of the program could not be mapped.
    #[error("the kernel engine could not map its {what} ({source}); {}", mend_of(source.kind()))]
    Map {
        /// The name of the memory.
        what: &'static str,
        /// The error of the kernel.
        #[source]
        source: io::Error,
    },
    /// There is no such interface.
    #[error("there is no interface {name}: `ip link` lists the interfaces")]
    NoInterface {
        /// The name given.
        name: String,
    },
    /// Another XDP program is on the interface.
    #[error(
        "{name} already has an XDP program{}; `engine.xdp.replace` replaces it",
        number_of(*id)
    )]
    Occupied {
        /// The interface.
        name: String,
        /// The other program's id, if known.
        id: Option<u32>,
    },
    /// The program could not be attached to an interface.
    #[error("{name} does not take the kernel engine's program in {mode} mode ({source}); {mend}")]
    Attach {
        /// The interface.
        name: String,
        /// `native` or `generic`.
        mode: &'static str,
        /// The error of the kernel.
        #[source]
        source: io::Error,
        /// What the user can do.
        mend: &'static str,
    },
    /// Other programs were detached for this one, which could then not be attached everywhere.
    #[error("{source}; detached, and not restored: {}", list_of(taken_off))]
    Replaced {
        /// Interfaces, and the ids of their former programs.
        taken_off: Vec<(String, u32)>,
        /// Why this program could not be attached.
        source: Box<KernelError>,
    },
    /// The compiled program lacks a map or program.
    #[error("the kernel engine's program has no `{name}`: the build of turboflow is faulty")]
    Incomplete {
        /// The name of the map or program.
        name: &'static str,
    },
    /// The ring contained items that are not records.
    #[error(
        "the kernel engine's ring carried {count} items that are not records: the XDP program and \
         turboflow do not match"
    )]
    ForeignItems {
        /// The number of such items.
        count: u64,
    },
}

/// The equivalent kind, as far as the advice depends on it.
const fn of_io(kind: ErrorKind) -> io::ErrorKind {
    match kind {
        ErrorKind::PermissionDenied => io::ErrorKind::PermissionDenied,
        ErrorKind::OutOfMemory => io::ErrorKind::OutOfMemory,
        _ => io::ErrorKind::Other,
    }
}

/// Advice for an error of the kernel.
const fn mend_of(kind: io::ErrorKind) -> &'static str {
    match kind {
        io::ErrorKind::PermissionDenied => {
            "it needs root, or CAP_BPF, CAP_PERFMON, CAP_NET_ADMIN and CAP_NET_RAW; \
             `engine.name=software` needs CAP_NET_RAW alone"
        }
        io::ErrorKind::OutOfMemory => {
            "there is too little memory, or a limit on it (a control group's, ulimit -v): lower \
             `source.ring-size` or `engine.microflow-slots`, use one table for all CPUs \
             (`engine.xdp.table=row-lock`), or use `engine.name=software`, which needs no memory \
             of the kernel"
        }
        _ => "it is tested on Linux 6.1 and newer, and 5.19 may work; `engine.name=software` works",
    }
}

fn number_of(id: Option<u32>) -> String {
    id.map_or_else(String::new, |id| format!(" (id {id})"))
}

fn list_of(programs: &[(String, u32)]) -> String {
    let programs: Vec<_> = programs
        .iter()
        .map(|(name, id)| format!("program {id} of {name}"))
        .collect();
    programs.join(", ")
}

impl KernelError {
    pub(crate) fn refused(doing: &'static str) -> impl FnOnce(libbpf_rs::Error) -> Self {
        move |source| Self::Refused { doing, source }
    }

    /// Adds the programs that were already detached to the error.
    pub(crate) fn although(self, taken_off: &[(String, u32)]) -> Self {
        if taken_off.is_empty() {
            return self;
        }
        Self::Replaced {
            taken_off: taken_off.to_vec(),
            source: Box::new(self),
        }
    }

    /// Changes the advice if a program was to be replaced and is still there.
    pub(crate) fn still_there(self, replaces: bool) -> Self {
        match self {
            Self::Occupied { name, id: None } if replaces => Self::Attach {
                name,
                mode: "any",
                source: io::ErrorKind::ResourceBusy.into(),
                mend: "another program is attached to it, and this process cannot find out \
                       which one, because it may not open a netlink socket \
                       (systemd: RestrictAddressFamilies=AF_NETLINK)",
            },
            other => other,
        }
    }

    /// Whether a permission was missing: `EPERM` or `EACCES`.
    #[must_use]
    pub fn is_permission(&self) -> bool {
        match self {
            Self::Refused { source, .. } => source.kind() == libbpf_rs::ErrorKind::PermissionDenied,
            Self::Replaced { source, .. } => source.is_permission(),
            Self::Attach { source, .. } | Self::Map { source, .. } => {
                source.kind() == io::ErrorKind::PermissionDenied
            }
            _ => false,
        }
    }
}
