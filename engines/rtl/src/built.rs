// SPDX-License-Identifier: Apache-2.0
// The lines that the build script translates, shared by that script and the crate. A line can be
// used as a smaller one, so a few are enough.

/// Parameters of a translated line: `tf_array` in SystemVerilog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Build {
    /// Its name in the shim.
    pub name: &'static str,
    /// Bits of a key: 104 for IPv4, 296 for IPv6.
    pub key_bits: u32,
    /// log2 of the stages.
    pub stage_bits: u32,
    /// log2 of the buckets of a subtable in a stage.
    pub bucket_bits: u32,
    /// Bits of a tag.
    pub tag_bits: u32,
    /// log2 of the slots of a bucket.
    pub slot_bits: u32,
    /// Subtables: 2, or 1.
    pub subtables: u32,
    /// log2 of the entries of the table that gives the stage of a key; 0: the hash gives it.
    pub entry_bits: u32,
}

impl Build {
    /// This line with the default number of entries of `tf_array`: a quarter of the slots, or none
    /// with one stage.
    #[must_use]
    pub const fn with_entries(self) -> Self {
        let addr_bits = self.subtables - 1 + self.bucket_bits + self.slot_bits;
        let entry_bits = match self.stage_bits {
            0 => 0,
            stage_bits => stage_bits + addr_bits - 2,
        };
        Self { entry_bits, ..self }
    }
}

/// The line for IPv4.
pub const V4: Build = Build {
    name: "v4",
    key_bits: 104,
    stage_bits: 2,
    bucket_bits: 9,
    tag_bits: 8,
    slot_bits: 3,
    subtables: 2,
    entry_bits: 0,
}
.with_entries();

/// The line for IPv6.
pub const V6: Build = Build {
    name: "v6",
    key_bits: 296,
    ..V4
};

/// TurboFlow's direct-mapped table (TurboFlow, section 4): the same stage with one subtable and
/// buckets of one slot.
pub const DIRECT: Build = Build {
    name: "direct",
    key_bits: 104,
    stage_bits: 0,
    bucket_bits: 12,
    tag_bits: 8,
    slot_bits: 0,
    subtables: 1,
    entry_bits: 0,
};

/// The meter for IPv4: a small line with its egress and its registers (`tf_meter`).
pub const METER_V4: Build = Build {
    name: "meter_v4",
    stage_bits: 1,
    bucket_bits: 4,
    ..V4
}
.with_entries();

/// The meter for IPv6.
pub const METER_V6: Build = Build {
    name: "meter_v6",
    key_bits: 296,
    ..METER_V4
};

/// All of them, each with its top module.
pub const BUILDS: [(&str, Build); 5] = [
    ("tf_array", V4),
    ("tf_array", V6),
    ("tf_array", DIRECT),
    ("tf_meter", METER_V4),
    ("tf_meter", METER_V6),
];

/// Other blocks: each with its top module, its name in the shim, and its parameters.
pub const BLOCKS: [(&str, &str, &[&str]); 3] = [
    ("tf_parser", "parser", &[]),
    ("tf_opennic", "opennic", &["NumStages=1"]),
    ("tf_corundum", "corundum", &["NumStages=1"]),
];
