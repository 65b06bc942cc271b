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
        "{port}: the pipeline was restarted, and the contents of its table and counters are lost; \
         start turboflow again"
    )]
    Restarted {
        /// The name of the port.
        port: String,
    },
    /// The pipeline does not answer.
    #[error(
        "{port}: no P4 program answers: check that this is the CPU port of the pipeline, and that \
         the pipeline is running"
    )]
    NoAnswer {
        /// The name of the port.
        port: String,
    },
    /// The program's words have another size.
    #[error(
        "{port}: the P4 program has words of {bits} bits; turboflow can read words of 32 or 64 bits"
    )]
    Words {
        /// The name of the port.
        port: String,
        /// The size of its words, in bits.
        bits: u16,
    },
    /// The program takes frames only over this port.
    #[error(
        "{port}: the P4 program meters only captures that are sent to it, not live traffic: add \
         `source.files`, or use a program that meters live traffic"
    )]
    OnlyReplay {
        /// The name of the port.
        port: String,
    },
    /// The program takes no frames over this port.
    #[error(
        "{port}: the P4 program meters only live traffic of the pipeline's ports, not captures: \
         leave out `source.files`, or use a program that meters captures"
    )]
    OnlyLive {
        /// The name of the port.
        port: String,
    },
    /// The cells of the program's clock are longer.
    #[error(
        "{port}: the cells of the P4 program ({program_ns} ns) are longer than those of this run \
         ({wanted_ns} ns): compile the program with shorter cells (-DCELL_SHIFT), or raise \
         `timeouts.idle`, `timeouts.active` and `timeouts.linger` to {program_ns} ns or more, and \
         leave out `timeouts.align`, or make it a multiple of the shortest of them"
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
        "{port}: the cells of the P4 program ({program_ns} ns) are too short to be swept in time; \
         compile the program with -DCELL_SHIFT=25 or more"
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
        "{port}: the P4 program was compiled for another record definition (id {found:016x}) than \
         that of this run (id {wanted:016x}); run with the definition of the program, or compile \
         the program for this run's definition (turboflow p4 generate)"
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
    #[error(
        "{port}: the P4 program has {room} slots in each table, and this run needs {wanted}: lower \
         `engine.microflow-slots`, or compile the program with more slots (-DSLOT_BITS)"
    )]
    Slots {
        /// The name of the port.
        port: String,
        /// Slots of its table.
        room: u32,
        /// Slots wanted.
        wanted: u32,
    },
    /// The program's table is larger than can be swept.
    #[error(
        "{port}: the P4 program has {slots} slots in each table, and at most {most} are possible: \
         compile the program with fewer slots (-DSLOT_BITS)"
    )]
    TooManySlots {
        /// The name of the port.
        port: String,
        /// Slots of its table.
        slots: u32,
        /// The most slots possible.
        most: u32,
    },
}
