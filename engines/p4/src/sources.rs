// SPDX-License-Identifier: Apache-2.0
//! The sources of the program, for external compilers.

macro_rules! sources {
    ($($path:literal)*) => {
        /// Paths below `p4/`, with the text of each file. `record.p4` depends on the record
        /// definition.
        pub const SOURCES: &[(&str, &str)] =
            &[$(($path, include_str!(concat!("../p4/", $path)))),*];
    };
}

sources! {
    "pna/classify.p4"
    "pna/headers.p4"
    "pna/microflows.p4"
    "pna/parser.p4"
    "pna/status.p4"
    "pna/turboflow.p4"
    "shared/frame.p4"
    "shared/lane.p4"
    "shared/sizes.p4"
    "tna/classify.p4"
    "tna/cpu.p4"
    "tna/egress.p4"
    "tna/headers.p4"
    "tna/ingress.p4"
    "tna/microflows.p4"
    "tna/parser.p4"
    "tna/status.p4"
    "tna/turboflow.p4"
    "v1model/batch.p4"
    "v1model/classify.p4"
    "v1model/headers.p4"
    "v1model/microflows.p4"
    "v1model/parser.p4"
    "v1model/status.p4"
    "v1model/turboflow.p4"
}
