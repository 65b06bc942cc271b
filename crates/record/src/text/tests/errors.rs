// SPDX-License-Identifier: Apache-2.0
//! The complete text of every error message.

use crate::{Definition, Feature, Input, InputSet, KeyField, Op};

const FIELDS: &str = "source_address, destination_address, source_port, destination_port, \
    protocol, outer_source_address, outer_destination_address, tos, flow_label, icmp_type, \
    icmp_code, vlan, inner_vlan, vlan_priority, mpls_label, source_mac, destination_mac, \
    ether_type, vni, teid, gre_key, ingress_interface, egress_interface, ttl, tcp_flags, \
    receive_queue, path";
const OPS: &str = "count, sum, min, max, first, last, nth, bit_or, mean, variance, gap_min, \
    gap_max, gap_mean, gap_variance, histogram, list, duration, rate, community_id";
const INPUTS: &str = "ip_length, frame_length, timestamp, tcp_flags, tcp_window, tcp_sequence, \
    tcp_acknowledgement, tcp_options, ttl, tos, flow_label, identification, fragment_offset, \
    ip_options, payload_length, icmp_type, icmp_code, vlan, inner_vlan, vlan_priority, \
    mpls_label, source_mac, destination_mac, ether_type, vni, teid, gre_key, \
    ingress_interface, egress_interface, queue_depth, hop_latency, direction, gap, \
    receive_queue, hardware_timestamp, application, application_category, \
    application_confidence, risk, server_name, ja3, ja4, dns_query_name, http_host, \
    verdict, rule, packet_dropped, bytes_dropped, sampling_interval, path, hop_count";

/// Parses each text and compares the complete error message.
#[track_caller]
fn refuses(cases: &[(&str, &str)]) {
    for (text, expected) in cases {
        let expected = expected.replace("FIELDS", FIELDS).replace("OPS", OPS);
        let expected = expected.replace("INPUTS", INPUTS);
        match Definition::parse(text) {
            Ok(definition) => panic!("{text}\nhas nothing wrong: {definition:?}"),
            Err(error) => assert_eq!(error.to_string(), expected, "{text}"),
        }
    }
}

#[test]
fn refuses_text_that_is_not_toml() {
    refuses(&[
        (
            "[key]\nfields = [",
            "line 2: this is not TOML: unclosed array, expected `]`",
        ),
        (
            "[[feature]]\nname = \"x\"\nop = \"count\"\nname = \"y\"\n",
            "line 4: this is not TOML: duplicate key, at `name`",
        ),
    ]);
}

#[test]
fn refuses_unknown_keys() {
    refuses(&[
        (
            "a = 1\n[[feature]]\nname = \"x\"\n",
            "line 1: unknown key `a`; keys: key, feature",
        ),
        (
            "[[features]]\n",
            "line 1: unknown key `features`; did you mean `feature`? keys: key, feature",
        ),
        (
            "[key]\nfeilds = []",
            "line 2: key: unknown key `feilds`; did you mean `fields`? keys: fields",
        ),
        (
            "[[feature]]\nname = \"x\"\nopp = \"sum\"",
            "line 3: feature `x`: unknown key `opp`; did you mean `op`? keys: name, op, of, k, \
             edges, per",
        ),
    ]);
}

#[test]
fn refuses_wrong_keys() {
    refuses(&[
        ("key = 3", "line 1: `key` is the number 3; write [key]"),
        (
            "[key]\n",
            "line 1: key: `fields` is missing; write fields = [\"source_address\", \
             \"destination_address\"]",
        ),
        (
            "[key]\nfields = 3\n",
            "line 2: key: `fields` is the number 3; write fields = [\"source_address\", \
             \"destination_address\"]",
        ),
        (
            "[key]\nfields = [\"protocol\",\n 3]\n",
            "line 3: key: `fields` is the number 3; write fields = [\"source_address\", \
             \"destination_address\"]",
        ),
        (
            "[key]\nfields = [\"protocol\",\n \"dst_port\"]\n",
            "line 3: key: unknown field `dst_port`; did you mean `destination_port`? fields: \
             FIELDS",
        ),
        (
            "[key]\nfields = [\"protocol\",\n \"destination_prt\"]\n",
            "line 3: key: unknown field `destination_prt`; did you mean `destination_port`? \
             fields: FIELDS",
        ),
        (
            "[key]\nfields = [\"colour\"]\n",
            "line 2: key: unknown field `colour`; fields: FIELDS",
        ),
        (
            "[key]\nfields = [\"protocol\",\n \"ip_length\"]\n",
            "line 3: key: `ip_length` cannot be in a key; fields: FIELDS",
        ),
        (
            "[key]\nfields = [\"protocol\",\n \"protocol\"]\n",
            "line 3: key: `protocol` is in the key twice; remove one",
        ),
        (
            "[key]\nfields = []\n",
            "line 2: key: the key has no fields; name at least one, or leave out the [key] table \
             for the 5-tuple",
        ),
    ]);
}

#[test]
fn refuses_missing_and_malformed_features() {
    refuses(&[
        (
            "",
            "line 1: the definition has no features; add a [[feature]], such as name = \
             \"packets\", op = \"count\"",
        ),
        (
            "[key]\nfields = [\"protocol\"]\n",
            "line 1: the definition has no features; add a [[feature]], such as name = \
             \"packets\", op = \"count\"",
        ),
        (
            "[feature]\nname = \"x\"\n",
            "line 1: `feature` is a table; write [[feature]]",
        ),
        (
            "feature = [1]\n",
            "line 1: `feature` is the number 1; write [[feature]]",
        ),
        (
            "\n[[feature]]\n[[feature]]\nop = \"sum\"",
            "line 2: feature 1: `name` is missing; write name = \"bytes\"",
        ),
        (
            "[[feature]]\nname = 3",
            "line 2: feature 1: `name` is the number 3; write name = \"bytes\"",
        ),
        (
            "[[feature]]\nname = \"x\"\n",
            "line 1: feature `x`: `op` is missing; write op = \"sum\"",
        ),
        (
            "[[feature]]\nname = \"x\"\nop = 1979-05-27\n",
            "line 3: feature `x`: `op` is a date or time; write op = \"sum\"",
        ),
    ]);
}

#[test]
fn refuses_unknown_ops_and_inputs() {
    refuses(&[
        (
            "[[feature]]\nname = \"x\"\nop = \"summ\"",
            "line 3: feature `x`: unknown op `summ`; did you mean `sum`? ops: OPS",
        ),
        (
            "[[feature]]\nname = \"x\"\nop = \"frobnicate\"",
            "line 3: feature `x`: unknown op `frobnicate`; ops: OPS",
        ),
        (
            "[[feature]]\nname = \"x\"\nop = \"sum\"",
            "line 3: feature `x`: `of` is missing: op `sum` needs an input, such as of = \
             \"ip_length\"",
        ),
        (
            "[[feature]]\nname = \"x\"\nop = \"sum\"\nof = \"ip_lenght\"",
            "line 4: feature `x`: unknown input `ip_lenght`; did you mean `ip_length`? inputs: \
             INPUTS",
        ),
        (
            "[[feature]]\nname = \"x\"\nop = \"sum\"\nof = [\"ip_length\"]",
            "line 4: feature `x`: `of` is an array; write of = \"ip_length\"",
        ),
        (
            "[[feature]]\nname = \"x\"\nop = \"count\"\nper = \"flow\"\n",
            "line 4: feature `x`: unknown value `flow` of `per`; write per = \"biflow\", or \
             leave it out",
        ),
    ]);
}

#[test]
fn refuses_ops_that_make_no_sense_of_an_input() {
    refuses(&[
        (
            "[[feature]]\nname = \"x\"\nop = \"sum\"\nof = \"vlan\"",
            "line 3: feature `x`: op `sum` makes no sense of `vlan`; ops that do: count, min, \
             max, first, last, nth, bit_or, histogram, list",
        ),
        (
            "[[feature]]\nname = \"x\"\nop = \"variance\"\nof = \"timestamp\"",
            "line 3: feature `x`: op `variance` makes no sense of `timestamp`; ops that do: \
             count, min, max, first, last, nth, histogram, list",
        ),
        (
            "[[feature]]\nname = \"x\"\nop = \"min\"\nof = \"direction\"",
            "line 3: feature `x`: op `min` makes no sense of `direction`; ops that do: first, \
             last, nth, list",
        ),
    ]);
}

#[test]
fn refuses_keys_that_an_op_does_not_take() {
    refuses(&[
        (
            "[[feature]]\nname = \"x\"\nop = \"duration\"\nof = \"timestamp\"",
            "line 4: feature `x`: op `duration` takes no `of`; remove it",
        ),
        (
            "[[feature]]\nname = \"x\"\nop = \"gap_min\"\nof = \"gap\"",
            "line 4: feature `x`: op `gap_min` takes no `of`; remove it",
        ),
        (
            "[[feature]]\nname = \"x\"\nop = \"count\"\nk = 3",
            "line 4: feature `x`: op `count` takes no `k`; remove it",
        ),
        (
            "[[feature]]\nname = \"x\"\nop = \"count\"\nedges = [3]",
            "line 4: feature `x`: op `count` takes no `edges`; remove it",
        ),
    ]);
}

#[test]
fn refuses_a_wrong_k() {
    refuses(&[
        (
            "[[feature]]\nname = \"x\"\nop = \"nth\"\nof = \"ttl\"",
            "line 1: feature `x`: `k` is missing; write k = 10",
        ),
        (
            "[[feature]]\nname = \"x\"\nop = \"nth\"\nof = \"ttl\"\nk = \"3\"",
            "line 5: feature `x`: `k` is the text \"3\"; write k = 10",
        ),
        (
            "[[feature]]\nname = \"x\"\nop = \"nth\"\nof = \"ttl\"\nk = 0",
            "line 5: feature `x`: `k` is 0; op `nth` takes 1 to 256",
        ),
        (
            "[[feature]]\nname = \"x\"\nop = \"list\"\nof = \"ttl\"\nk = 257",
            "line 5: feature `x`: `k` is 257; op `list` takes 1 to 256",
        ),
        (
            "[[feature]]\nname = \"x\"\nop = \"list\"\nof = \"ttl\"\nk = -1",
            "line 5: feature `x`: `k` is -1; op `list` takes 1 to 256",
        ),
        (
            "[[feature]]\nname = \"x\"\nop = \"list\"\nof = \"ttl\"\nk = 99999999999999999999",
            "line 5: feature `x`: `k` is 99999999999999999999; op `list` takes 1 to 256",
        ),
    ]);
}

#[test]
fn refuses_wrong_edges() {
    refuses(&[
        (
            "[[feature]]\nname = \"x\"\nop = \"histogram\"\nof = \"ttl\"\n",
            "line 1: feature `x`: `edges` is missing; write edges = [64, 128, 256]",
        ),
        (
            "[[feature]]\nname = \"x\"\nop = \"histogram\"\nof = \"ttl\"\nedges = 3",
            "line 5: feature `x`: `edges` is the number 3; write edges = [64, 128, 256]",
        ),
        (
            "[[feature]]\nname = \"x\"\nop = \"histogram\"\nof = \"ttl\"\nedges = [1.5]",
            "line 5: feature `x`: `edges` is the number 1.5; write edges = [64, 128, 256]",
        ),
        (
            "[[feature]]\nname = \"x\"\nop = \"histogram\"\nof = \"ttl\"\nedges = [-1]",
            "line 5: feature `x`: `-1` is not an edge; write whole numbers from 0 to \
             18446744073709551615",
        ),
        (
            "[[feature]]\nname = \"x\"\nop = \"histogram\"\nof = \"ttl\"\nedges = []",
            "line 5: feature `x`: `edges` has 0 numbers; give 1 to 255",
        ),
        (
            "[[feature]]\nname = \"x\"\nop = \"histogram\"\nof = \"ttl\"\nedges = [1, 2, 2]",
            "line 5: feature `x`: `edges` must rise, but 2 follows 2",
        ),
    ]);
}

#[test]
fn refuses_wrong_names() {
    refuses(&[
        (
            "[[feature]]\nname = \"Max-Depth\"\nop = \"count\"",
            "line 2: feature 1: bad name `Max-Depth`; write a lower-case letter, then lower-case \
             letters, digits and `_`, at most 64 in all",
        ),
        (
            "[[feature]]\nname = \"a\\nb\"\nop = \"count\"",
            "line 2: feature 1: bad name `a\\nb`; write a lower-case letter, then lower-case \
             letters, digits and `_`, at most 64 in all",
        ),
        (
            "[[feature]]\nname = \"end_reason\"\nop = \"count\"",
            "line 2: feature `end_reason`: the name `end_reason` is taken by the column that \
             says why the record ended; choose another",
        ),
        (
            "[[feature]]\nname = \"reverse_x\"\nop = \"count\"",
            "line 2: feature `reverse_x`: the name `reverse_x` is taken by biflow, whose columns \
             of the other direction begin with `reverse_`; choose another",
        ),
        (
            "[[feature]]\nname = \"protocol\"\nop = \"count\"",
            "line 2: feature `protocol`: the name `protocol` is taken by a column of the key; \
             choose another",
        ),
        (
            "[[feature]]\nname = \"x\"\nop = \"count\"\n\n[[feature]]\nname = \"x\"\nop = \
             \"count\"\n",
            "line 6: feature `x`: the name `x` is taken by another feature; choose another",
        ),
    ]);
}

#[test]
fn refuses_inputs_that_an_engine_cannot_see() {
    let depth = Feature::new("max_depth", Op::Max, Some(Input::QueueDepth));
    let definition = Definition {
        features: vec![depth],
        ..Definition::default()
    };
    let seen: InputSet = [Input::IpLength, Input::Timestamp].into_iter().collect();
    let error = definition
        .check_inputs(seen, "engine `software`")
        .unwrap_err()
        .to_string();
    assert_eq!(
        error,
        "feature `max_depth`: engine `software` cannot see `queue_depth`; \
         it sees: ip_length, timestamp"
    );
    let keyed = Definition {
        key: vec![KeyField::Input(Input::Vlan)],
        ..definition
    };
    let error = keyed
        .check_inputs(seen, "engine `p4`")
        .unwrap_err()
        .to_string();
    assert_eq!(
        error,
        "key: engine `p4` cannot see `vlan`; it sees: ip_length, timestamp"
    );
    let gaps = Feature::new("jitter", Op::GapVariance, None);
    let timed = Definition {
        features: vec![gaps],
        ..Definition::default()
    };
    assert_eq!(timed.check_inputs(seen, "p4"), Ok(()));
    let needed = [Input::TcpFlags, Input::Ttl, Input::Tos];
    let seen = seen.union(InputSet::of(&needed));
    assert_eq!(Definition::default().check_inputs(seen, "software"), Ok(()));
}

#[test]
fn refuses_what_inspection_finds_where_there_is_none() {
    let named = Feature::new("site", Op::Last, Some(Input::ServerName));
    let definition = Definition {
        features: vec![named],
        ..Definition::default()
    };
    let error = definition.check_inputs(InputSet::EMPTY, "engine `software`");
    assert_eq!(
        error.unwrap_err().to_string(),
        "feature `site`: `server_name` is found by application inspection, which engine `software` \
         runs without; turn it on, or remove the feature"
    );
    assert_eq!(definition.check_inputs(InputSet::INSPECTED, "x"), Ok(()));
    refuses(&[
        (
            "[[feature]]\nname = \"a\"\nop = \"count\"\nof = \"application\"",
            "line 3: feature `a`: op `count` makes no sense of `application`; \
             ops that do: first, last",
        ),
        (
            "[[feature]]\nname = \"a\"\nop = \"list\"\nof = \"ja4\"\nk = 2",
            "line 3: feature `a`: op `list` makes no sense of `ja4`; ops that do: first, last",
        ),
        (
            "[key]\nfields = [\"ja3\"]",
            "line 2: key: `ja3` cannot be in a key; fields: FIELDS",
        ),
    ]);
}

#[test]
fn refuses_applications_without_the_tuple() {
    refuses(&[(
        "[key]\nfields = [\"source_address\", \"destination_address\", \"protocol\"]\n\
         [[feature]]\nname = \"site\"\nop = \"last\"\nof = \"server_name\"",
        "line 6: feature `site`: `server_name` is found by the 5-tuple, but `source_port` is not in \
         the key; add it, or leave out the [key] table for the 5-tuple",
    )]);
}

#[test]
fn refuses_a_community_id_without_the_tuple() {
    refuses(&[
        (
            "[key]\nfields = [\"source_address\", \"destination_address\", \"protocol\"]\n\
             [[feature]]\nname = \"id\"\nop = \"community_id\"",
            "line 5: feature `id`: op `community_id` is computed from the 5-tuple, but \
             `source_port` is not in the key; add it, or leave out the [key] table for the 5-tuple",
        ),
        (
            "[[feature]]\nname = \"id\"\nop = \"community_id\"\nof = \"ttl\"",
            "line 4: feature `id`: op `community_id` takes no `of`; remove it",
        ),
    ]);
}
