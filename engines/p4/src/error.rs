// SPDX-License-Identifier: Apache-2.0
//! The errors of this engine.

use std::io;

/// Why the engine cannot start or continue.
#[derive(Debug, thiserror::Error)]
pub enum P4Error {
    /// An error of the port to the pipeline.
    #[error("{port}: {source}")]
    Port {
        /// The name of the port.
        port: String,
        /// The error.
        source: io::Error,
    },
    /// The pipeline has ended.
    #[error("{port}: the pipeline has ended")]
    Ended {
        /// The name of the port.
        port: String,
    },
    /// The pipeline was restarted.
    #[error(
        "{port}: the pipeline has started anew: what was in its table, and its counters, are lost; \
         start turboflow again"
    )]
    Restarted {
        /// The name of the port.
        port: String,
    },
    /// The pipeline does not answer.
    #[error(
        "{port}: no program answers there: is it the port to the CPU, and is the pipeline running?"
    )]
    NoAnswer {
        /// The name of the port.
        port: String,
    },
    /// The program's words have another size.
    #[error(
        "{port}: the program there has words of {bits} bits, and there are only those of 32 and 64"
    )]
    Words {
        /// The name of the port.
        port: String,
        /// The size of its words, in bits.
        bits: u16,
    },
    /// The program takes frames only over this port.
    #[error("{port}: the program there meters only what it is sent: captures, not ports")]
    OnlyReplay {
        /// The name of the port.
        port: String,
    },
    /// The program takes no frames over this port.
    #[error("{port}: the program there meters what passes through its ports, and no captures")]
    OnlyLive {
        /// The name of the port.
        port: String,
    },
    /// The cells of the program's clock are longer.
    #[error(
        "{port}: the program there cuts time into cells of {program_ns} ns, and this run into cells \
         of {wanted_ns} ns: compile it with shorter cells (-DCELL_SHIFT), or give idle and active \
         timeout and linger of {program_ns} ns or more"
    )]
    Cells {
        /// The name of the port.
        port: String,
        /// The length of the program's cells, in nanoseconds.
        program_ns: u64,
        /// The length of the run's cells, in nanoseconds.
        wanted_ns: u64,
    },
    /// The cells of the program's clock are too short to be swept in time.
    #[error(
        "{port}: the program there cuts time into cells of {program_ns} ns; compile it with \
         -DCELL_SHIFT=25 at least"
    )]
    ShortCells {
        /// The name of the port.
        port: String,
        /// The length of the program's cells, in nanoseconds.
        program_ns: u64,
    },
    /// The frames to be metered cannot be read.
    #[error(transparent)]
    Input(io::Error),
    /// The program is made for another record definition.
    #[error(
        "{port}: the program there was compiled for another record definition: its id is \
         {found:016x}, this run's {wanted:016x}. Run with that definition, or compile the program for this one \
         (turboflow p4 generate)"
    )]
    Definition {
        /// The name of the port.
        port: String,
        /// The id of the program.
        found: u64,
        /// The id of the run's definition.
        wanted: u64,
    },
    /// The program's table is smaller than wanted.
    #[error("{port}: the program there has {room} slots a table, not {wanted}")]
    Slots {
        /// The name of the port.
        port: String,
        /// Slots of its table.
        room: u32,
        /// Slots wanted.
        wanted: u32,
    },
}
