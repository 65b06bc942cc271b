// SPDX-License-Identifier: Apache-2.0
//! Merging equals one pass over all packets, and one pass equals plain arithmetic.

use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;

use super::naive::{self, SeenPacket};
use super::strategies::{features, flow, packet};
use super::*;
use crate::PendingStates;
use turboflow_record::{Fault, LAST_TIME_NS, WORDS_V4};

type Flow = Vec<SeenPacket>;

/// Merges records in a random grouping. `choices` determine where each run is split in two, and
/// which of three ways of merging joins the two parts. For the two-way form there is only one way.
fn merge_in_groups<const K: usize, const N: usize>(
    records: &[MicroflowRecord<K, N>],
    plan: &Plan,
    choices: &mut impl Iterator<Item = u16>,
) -> MicroflowRecord<K, N> {
    if let [record] = records {
        return *record;
    }
    let choice = usize::from(choices.next().expect("choices go on for ever"));
    let (left, right) = records.split_at(1 + choice % (records.len() - 1));
    let mut merged = merge_in_groups(left, plan, choices);
    let later = merge_in_groups(right, plan, choices);
    let ways = if plan.is_two_way::<N>() { 1 } else { 3 };
    match (choice >> 8) % ways {
        0 => merged.merge(&later, plan),
        1 => {
            merged.base.merge(&later.base);
            plan.merge_in_blocks(&mut merged.state, &later.state);
        }
        _ => merge_at_once(
            std::slice::from_mut(&mut merged),
            &[(0, later)],
            plan,
            Machine::detect(),
        ),
    }
    merged
}

/// Merges later records into those of their flows. The states of many pairs are merged together.
fn merge_at_once<const K: usize, const N: usize>(
    flows: &mut [MicroflowRecord<K, N>],
    later: &[(usize, MicroflowRecord<K, N>)],
    plan: &Plan,
    machine: Machine,
) {
    struct AtOnce<'a, const K: usize, const N: usize> {
        flows: &'a mut [MicroflowRecord<K, N>],
        later: &'a [(usize, MicroflowRecord<K, N>)],
        plan: &'a Plan,
    }
    impl<const K: usize, const N: usize> WithVectors for AtOnce<'_, K, N> {
        type Output = ();

        fn run<V: Vectors>(self, vectors: V) {
            let (mut pending, flows) = (PendingStates::new(), self.flows.as_mut_ptr());
            for some in self.later.chunks(PendingStates::<N>::ROOM) {
                for (flow, later) in some {
                    assert!(*flow < self.flows.len());
                    // SAFETY: the records live until the merge, and before it only their bases are
                    // accessed.
                    unsafe {
                        let flow = flows.add(*flow);
                        (*flow).base.merge(&later.base);
                        pending.push(&raw mut (*flow).state, &raw const later.state);
                    }
                }
                pending.merge(vectors, self.plan);
            }
        }
    }
    machine.run_loop::<N, _>(AtOnce { flows, later, plan });
}

/// The vector widths that this machine supports.
fn machines() -> Vec<Machine> {
    #[cfg(target_arch = "x86_64")]
    let avx2 = crate::Avx2::detect().map(Machine::Avx2);
    #[cfg(not(target_arch = "x86_64"))]
    let avx2 = None;
    let plain = Machine::Plain(crate::Plain);
    [Some(Machine::detect()), avx2, Some(plain)]
        .into_iter()
        .flatten()
        .collect()
}

/// Flows whose packets alternate, four per flow, so that more pairs are pending than there is room
/// for. Each flow must give its own record.
fn check_by_turns<const K: usize, const N: usize>(
    layout: &Layout,
    flows: &[Flow],
) -> Result<(), TestCaseError> {
    let copies = flows.iter().flat_map(|flow| std::iter::repeat_n(flow, 4));
    let packets: Vec<Vec<MicroflowRecord<K, N>>> = copies
        .map(|flow| {
            let open = |seen: &SeenPacket| layout.open(&seen.packet, &seen.inputs);
            flow.iter().map(open).collect()
        })
        .collect();
    let mut later = Vec::new();
    for turn in 1..packets.iter().map(Vec::len).max().unwrap_or(0) {
        let turn_of = |(flow, packets): (usize, &Vec<_>)| Some((flow, *packets.get(turn)?));
        later.extend(packets.iter().enumerate().filter_map(turn_of));
    }
    let firsts: Vec<_> = packets.iter().map(|packets| packets[0]).collect();
    let mut one_by_one = firsts.clone();
    for (flow, record) in &later {
        one_by_one[*flow].merge(record, layout.plan());
    }
    for machine in machines() {
        let mut at_once = firsts.clone();
        merge_at_once(&mut at_once, &later, layout.plan(), machine);
        prop_assert_eq!(&one_by_one, &at_once);
    }
    Ok(())
}

/// The flow's record, after checking that every grouping gives it.
fn record<const K: usize, const N: usize>(
    layout: &Layout,
    flow: &[SeenPacket],
    choices: &[u16],
) -> Result<MicroflowRecord<K, N>, TestCaseError> {
    let packets: Vec<MicroflowRecord<K, N>> = flow
        .iter()
        .map(|seen| layout.open(&seen.packet, &seen.inputs))
        .collect();
    for (seen, record) in flow.iter().zip(&packets) {
        let (key, reversed) = layout.key::<K>(&seen.packet, &seen.inputs);
        let mut plain = [0; N];
        let program = &layout.compiled.programs[usize::from(reversed)];
        program.open(&mut plain, &seen.packet, &seen.inputs, reversed);
        prop_assert_eq!((key, plain), (record.key, record.state));
    }
    let mut one_pass = packets[0];
    for packet in &packets[1..] {
        one_pass.merge(packet, layout.plan());
    }
    for start in 0..3 {
        let mut choices = choices.iter().copied().cycle().skip(start);
        let grouped = merge_in_groups(&packets, layout.plan(), &mut choices);
        prop_assert_eq!(&one_pass, &grouped);
    }
    Ok(one_pass)
}

fn check_flows<const K: usize, const N: usize>(
    layout: &Layout,
    definition: &Definition,
    flows: &[Flow],
    choices: &[u16],
) -> Result<(), TestCaseError> {
    let mut records: Vec<MicroflowRecord<K, N>> = Vec::new();
    for flow in flows {
        records.push(record(layout, flow, choices)?);
    }
    check_by_turns::<K, N>(layout, flows)?;
    let mut batch = FlowBatch::new(layout.schema());
    layout.append(&records, &mut batch);
    for (row, flow) in flows.iter().enumerate() {
        let flipped = naive::is_flipped(flow);
        for (index, column) in layout.schema().iter().enumerate() {
            let value = batch.value(row, index);
            let stem = column.name.strip_prefix(REVERSE).unwrap_or(&column.name);
            let Some(feature) = definition.features.iter().find(|f| f.name == stem) else {
                continue;
            };
            let joined = is_joined(feature, layout.is_biflow());
            let from_initiator = stem == column.name;
            let side = |seen: &&SeenPacket| joined || (seen.reversed == flipped) == from_initiator;
            let packets: Vec<&SeenPacket> = flow.iter().filter(side).collect();
            let expected = naive::value(feature, &packets, flipped);
            prop_assert!(
                expected.matches(value),
                "{}: {feature:?}: {value:?}, not {expected:?}",
                column.name
            );
            prop_assert!(
                column.nullable || value != Value::Absent,
                "{column:?} is absent"
            );
        }
    }
    Ok(())
}

/// Checks flows, with records of the layout's size.
fn check(definition: &Definition, biflow: bool, flows: &[Flow], choices: &[u16]) -> TestCaseResult {
    let layout = match Layout::compile(definition, biflow) {
        Ok(layout) => layout,
        Err(error) if matches!(error.fault, Fault::TooLarge { .. }) => return Ok(()),
        Err(error) => return Err(TestCaseError::fail(error.to_string())),
    };
    let wide = layout.key_widths() == KeyWidths::Wide;
    macro_rules! sizes {
        ($($words:literal)*) => {
            match (wide, layout.state_words()) {
                $(
                    (false, $words) => check_flows::<2, $words>(&layout, definition, flows, choices),
                    (true, $words) => check_flows::<16, $words>(&layout, definition, flows, choices),
                )*
                other => panic!("{other:?} is not a format of records"),
            }
        };
    }
    sizes!(0 8 24 56 120 504)
}

/// Checks that records in the two-way form, merged in any grouping, have the columns of plain ones.
fn check_two_way<const K: usize, const N: usize>(
    plain: &Layout,
    flows: &[Flow],
    choices: &[u16],
) -> TestCaseResult {
    let layout = plain.clone().in_two_way_form();
    prop_assert_eq!(layout.state_words(), TWO_WAY_WORDS);
    let (mut expected, mut actual) = (
        FlowBatch::new(plain.schema()),
        FlowBatch::new(plain.schema()),
    );
    for flow in flows {
        let open = |seen: &SeenPacket| plain.open::<K, N>(&seen.packet, &seen.inputs);
        let packets: Vec<_> = flow.iter().map(open).collect();
        let mut record = packets[0];
        for packet in &packets[1..] {
            record.merge(packet, plain.plan());
        }
        plain.append(&[record], &mut expected);
        let open = |seen: &SeenPacket| layout.open::<K, TWO_WAY_WORDS>(&seen.packet, &seen.inputs);
        let packets: Vec<_> = flow.iter().map(open).collect();
        for (seen, record) in flow.iter().zip(&packets) {
            let plain = layout.open_plain_v4::<TWO_WAY_WORDS>(&seen.packet);
            prop_assert_eq!((&plain.key[..], plain.base), (&record.key[..], record.base));
        }
        let mut one_pass = packets[0];
        for packet in &packets[1..] {
            one_pass.merge(packet, layout.plan());
        }
        layout.append(&[one_pass], &mut actual);
        for start in 0..3 {
            let mut choices = choices.iter().copied().cycle().skip(start);
            let grouped = merge_in_groups(&packets, layout.plan(), &mut choices);
            prop_assert_eq!(&one_pass, &grouped);
        }
    }
    for row in 0..flows.len() {
        for (index, column) in plain.schema().iter().enumerate() {
            let (left, right) = (expected.value(row, index), actual.value(row, index));
            prop_assert!(
                left == right,
                "{}: {left:?}, two-way {right:?}",
                column.name
            );
        }
    }
    Ok(())
}

fn definition(features: Vec<Feature>, wide: bool) -> Definition {
    let mut key = KeyField::FIVE_TUPLE.to_vec();
    if wide {
        key.remove(4);
    }
    Definition { key, features }
}

fn choices() -> impl Strategy<Value = Vec<u16>> {
    proptest::collection::vec(any::<u16>(), 1..24)
}

/// Features that are all fields of [`Base`], each for one direction or for both together.
fn features_of_base() -> impl Strategy<Value = Vec<Feature>> {
    let all = Definition::default().features;
    let more = [
        (Op::Mean, Some(Input::IpLength)),
        (Op::Duration, None),
        (Op::Rate, None),
    ];
    let more = more.map(|(op, of)| Feature::new(op.name(), op.clone(), of));
    let all: Vec<_> = all.into_iter().chain(more).collect();
    let count = all.len();
    let joined = proptest::collection::vec(any::<bool>(), count);
    (proptest::sample::subsequence(all, 1..=count), joined).prop_map(|(mut features, joined)| {
        for (feature, joined) in features.iter_mut().zip(joined) {
            feature.per_biflow = joined;
        }
        features
    })
}

proptest! {
    #[test]
    fn two_way_records_have_the_columns_of_plain_ones(
        features in features_of_base(),
        flows in proptest::collection::vec(flow(true), 1..6),
        choices in choices(),
    ) {
        let layout = Layout::compile(&definition(features, false), true).expect("it fits");
        match layout.state_words() {
            8 => check_two_way::<2, 8>(&layout, &flows, &choices)?,
            24 => check_two_way::<2, 24>(&layout, &flows, &choices)?,
            other => prop_assert!(false, "{other} state words"),
        }
    }

    #[test]
    fn merging_equals_plain_arithmetic(
        features in features(false),
        flows in proptest::collection::vec(flow(false), 1..4),
        choices in choices(),
        wide in any::<bool>(),
    ) {
        check(&definition(features, wide), false, &flows, &choices)?;
    }

    #[test]
    fn merging_biflows_equals_plain_arithmetic(
        features in features(true),
        flows in proptest::collection::vec(flow(true), 1..4),
        choices in choices(),
        wide in any::<bool>(),
    ) {
        check(&definition(features, wide), true, &flows, &choices)?;
    }
}

#[test]
fn a_gap_may_end_at_the_largest_time() {
    let features = [Op::GapMin, Op::GapMax].map(|op| Feature {
        name: op.name().to_owned(),
        op,
        of: None,
        per_biflow: false,
    });
    let layout = compile(features.to_vec()).unwrap();
    let seen = |timestamp_ns| {
        let mut packet = packet(0, false);
        packet.timestamp_ns = timestamp_ns;
        SeenPacket {
            packet,
            inputs: InputValues::default(),
            reversed: false,
        }
    };
    let flow = vec![seen(5), seen(LAST_TIME_NS), seen(LAST_TIME_NS)];
    check_by_turns::<WORDS_V4, 8>(&layout, std::slice::from_ref(&flow)).unwrap();
    let record = record::<WORDS_V4, 8>(&layout, &flow, &[0]).unwrap();
    let mut batch = FlowBatch::new(layout.schema());
    layout.append(&[record], &mut batch);
    let gaps: Vec<_> = (0..layout.schema().len())
        .filter(|index| layout.schema()[*index].name.starts_with("gap_"))
        .map(|index| batch.value(0, index))
        .collect();
    assert_eq!(
        gaps,
        [Value::Unsigned(0), Value::Unsigned(LAST_TIME_NS - 5)]
    );
}
