// SPDX-License-Identifier: Apache-2.0
//! The definitions that every engine is tested with.

use turboflow_record::{Definition, Feature, Input, Op};

/// One definition per op and kind of input: none, one that every packet carries, one that some
/// packets lack, and gaps. Combinations without a meaning are left out.
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
        Op::CommunityId,
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
