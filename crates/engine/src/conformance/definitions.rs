// SPDX-License-Identifier: Apache-2.0
//! Definitions that every engine is tried with.

use turboflow_record::{Definition, Feature, Input, Op};

/// Every op by itself, over nothing, over what every packet has, over what some lack, and over
/// gaps, wherever that makes sense.
#[must_use]
pub fn each_op_alone() -> Vec<Definition> {
    let ops = [
        Op::Count,
        Op::Sum,
        Op::Min,
        Op::Max,
        Op::First,
        Op::Last,
        Op::Nth { k: 2 },
        Op::BitOr,
        Op::Mean,
        Op::Variance,
        Op::Histogram {
            edges: vec![1, 2, 60, 700, 1_000],
        },
        Op::List { k: 3 },
        Op::GapMin,
        Op::GapMax,
        Op::GapMean,
        Op::GapVariance,
        Op::Duration,
        Op::Rate,
    ];
    assert_eq!(ops.len(), Op::NAMES.len(), "every op is tried");
    let inputs = [
        None,
        Some(Input::IpLength),
        Some(Input::TcpWindow),
        Some(Input::Gap),
    ];
    let alone = |(op, of): (&Op, Option<Input>)| Definition {
        features: vec![Feature::new("alone", op.clone(), of)],
        ..Definition::default()
    };
    let pairs = ops.iter().flat_map(|op| inputs.map(|of| (op, of)));
    pairs
        .map(alone)
        .filter(|definition| definition.check().is_ok())
        .collect()
}
