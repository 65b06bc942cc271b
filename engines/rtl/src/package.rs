// SPDX-License-Identifier: Apache-2.0
//! `tf_record_pkg.sv`, derived from a record definition: the fields of a packet and of a record,
//! and how they merge. `engines/rtl/rtl/tf_record_pkg.sv` is for the default definition.

use std::fmt::Write;

use turboflow_engine::wire::layout_id;
use turboflow_merge::{KeySteps, Layout};
use turboflow_record::{Definition, InvalidDefinition};

use crate::fields::{ALONE, Class, LENGTH_BITS, RECORD, TIME_BITS};

/// A part of a definition for which a slot of the line has no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unsupported {
    /// Merging both directions of a flow.
    #[error("a slot of the line has room for only one direction of a flow")]
    Biflow,
    /// A key other than the 5-tuple.
    #[error("the line supports only the 5-tuple as flow key")]
    Key,
    /// Features in addition to the fields that every record has.
    #[error(
        "a slot of the line has the fields of the default definition, and no word for other features"
    )]
    State,
}

/// Checks whether the line has room for records of this layout.
///
/// # Errors
/// The part for which it has no room.
pub fn check_layout(layout: &Layout) -> Result<(), Unsupported> {
    let steps = layout.steps();
    match () {
        () if layout.is_biflow() => Err(Unsupported::Biflow),
        () if steps.key != KeySteps::FiveTuple => Err(Unsupported::Key),
        () if steps.words > 0 => Err(Unsupported::State),
        () => Ok(()),
    }
}

/// Why there is no package for a definition.
#[derive(Debug, thiserror::Error)]
pub enum PackageError {
    /// The definition is invalid.
    #[error(transparent)]
    Invalid(#[from] InvalidDefinition),
    /// The line has no room for its records.
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
}

/// The package of a definition, in SystemVerilog.
///
/// # Errors
/// If the definition is invalid, or the line has no room for its records.
pub fn record_package(definition: &Definition) -> Result<String, PackageError> {
    let layout = Layout::compile(definition, false)?;
    check_layout(&layout)?;
    let mut text = String::from(HEAD);
    for feature in &definition.features {
        let of = feature.of.map_or("packets", |input| input.name());
        line(
            &mut text,
            format_args!("//   {}: {:?} of {of}", feature.name, feature.op),
        );
    }
    text.push_str("package tf_record_pkg;\n  import tf_pkg::*;\n\n");
    line(
        &mut text,
        format_args!("  // Of the wire form, which a sender writes into every message."),
    );
    line(
        &mut text,
        format_args!(
            "  parameter logic [63:0] LayoutId   = 64'h{:016x};",
            layout_id(&layout)
        ),
    );
    line(
        &mut text,
        format_args!("  parameter int unsigned TimeBits   = {TIME_BITS};  // ns in a cell"),
    );
    line(
        &mut text,
        format_args!("  parameter int unsigned LengthBits = {LENGTH_BITS};\n"),
    );
    text.push_str(ARRIVALS);
    text.push_str("  // A packet that no record has room for.\n");
    structure(&mut text, "alone_t", ALONE.into_iter());
    text.push_str("  // A record.\n");
    structure(
        &mut text,
        "state_t",
        RECORD.iter().map(|field| (field.name, field.bits)),
    );
    text.push_str(BODIES);
    merging(&mut text);
    text.push_str(JOINS);
    text.push_str(WIRE);
    Ok(text)
}

/// The functions for the record of one packet, and for a record merged with one more packet.
fn merging(text: &mut String) {
    text.push_str("  // The record of one packet.\n");
    text.push_str("  function automatic state_t state_of_packet(packet_body_t p);\n");
    for field in &RECORD {
        line(
            text,
            format_args!(
                "    state_of_packet.{:<15} = {};",
                field.name,
                value(field.of_packet, field.bits)
            ),
        );
    }
    text.push_str("  endfunction\n\n  // The record with one packet more.\n");
    text.push_str("  function automatic state_t merged(state_t a, packet_body_t p);\n");
    for field in &RECORD {
        let (name, of_packet) = (field.name, value(field.of_packet, field.bits));
        let expression = match field.class {
            Class::Add => format!("a.{name} + {of_packet}"),
            Class::First => format!("a.{name}"),
            Class::Max => format!("({of_packet} > a.{name}) ? {of_packet} : a.{name}"),
            Class::Min => format!("({of_packet} < a.{name}) ? {of_packet} : a.{name}"),
            Class::Or => format!("a.{name} | {of_packet}"),
        };
        line(text, format_args!("    merged.{name:<15} = {expression};"));
    }
    text.push_str("  endfunction\n\n");
}

/// A value with this many bits.
fn value(expression: &str, bits: u32) -> String {
    match expression {
        "1" => format!("{bits}'d1"),
        // It is narrower than the sum to which it is added.
        "p.length" if bits > LENGTH_BITS => format!("{bits}'(p.length)"),
        expression => expression.to_owned(),
    }
}

fn structure<'a>(text: &mut String, name: &str, fields: impl Iterator<Item = (&'a str, u32)>) {
    text.push_str("  typedef struct packed {\n");
    for (name, bits) in fields {
        let range = match bits {
            1 => String::new(),
            bits => format!("[{}:0]", bits - 1),
        };
        line(text, format_args!("    logic {range:<7} {name};"));
    }
    line(text, format_args!("  }} {name};\n"));
}

fn line(text: &mut String, words: std::fmt::Arguments<'_>) {
    writeln!(text, "{words}").expect("text takes text");
}

const HEAD: &str = r"// SPDX-License-Identifier: Apache-2.0
// Packets and records of one record definition: fields, widths, and how they merge.
//
// Derived from the definition by engines/rtl/src/package.rs; a test compares, and UPDATE=1 writes
// it anew. Widths follow from the rule for cells (docs/decisions/0001-cells.md): a cell has at most
// 1 s. The features are fields of the record:
";

const ARRIVALS: &str = r"  // A packet as it comes in.
  typedef struct packed {
    logic [31:0] length;  // IP length
    logic [11:0] tcp_flags;
    logic [7:0]  ttl;
    logic [7:0]  tos;
  } arrival_t;

  // A packet on its way to its slot.
  typedef struct packed {
    logic [TimeBits-1:0]   stamp;  // ns from the start of its cell
    logic [LengthBits-1:0] length;
    logic [11:0]           tcp_flags;
    logic [7:0]            ttl;
    logic [7:0]            tos;
  } packet_t;
  typedef struct packed {
    logic                  epoch;  // parity of its cell
    logic [TimeBits-1:0]   stamp;
    logic [LengthBits-1:0] length;
    logic [11:0]           tcp_flags;
    logic [7:0]            ttl;
    logic [7:0]            tos;
  } packet_body_t;

";

const BODIES: &str = r"  // What a token carries beside its key: a record, or one of the shorter ones in its low bits.
  parameter int unsigned StateBits = $bits(state_t);
  parameter int unsigned BodyBits  = StateBits;
  typedef logic [BodyBits-1:0] body_t;

  function automatic body_t body_of_state(state_t state);
    return state;
  endfunction
  function automatic body_t body_of_alone(alone_t alone);
    return BodyBits'(alone);
  endfunction
  function automatic body_t body_of_packet(place_t place, packet_t packet);
    return BodyBits'({place, packet});
  endfunction
  function automatic place_t place_of_body(body_t body);
    return place_t'(body[$bits(packet_t) +: $bits(place_t)]);
  endfunction
  function automatic packet_body_t packet_of_body(body_t body);
    place_t place;
    place = place_of_body(body);
    return packet_body_t'({place.epoch, body[$bits(packet_t)-1:0]});
  endfunction

  // A cell that begins: when, and whether it is the last one, behind which nothing comes.
  typedef struct packed {
    logic        ends;
    logic [63:0] start;
  } cell_t;
  function automatic body_t body_of_cell(place_t place, alone_t alone);
    return BodyBits'({place, {($bits(packet_t) - $bits(cell_t)){1'b0}}, alone.length[0],
                      alone.stamp});
  endfunction
  function automatic cell_t cell_of_body(body_t body);
    return cell_t'(body[$bits(cell_t)-1:0]);
  endfunction

  // Whether a record has room for a packet of that length.
  function automatic logic fits(arrival_t arrival);
    return arrival.length[31:LengthBits] == '0;
  endfunction
  function automatic packet_t packet_of(logic [TimeBits-1:0] stamp, arrival_t arrival);
    return '{stamp: stamp, length: arrival.length[LengthBits-1:0], tcp_flags: arrival.tcp_flags,
             ttl: arrival.ttl, tos: arrival.tos};
  endfunction
  function automatic alone_t alone_of(logic [63:0] stamp, arrival_t arrival);
    return '{stamp: stamp, length: arrival.length, tcp_flags: arrival.tcp_flags,
             ttl: arrival.ttl, tos: arrival.tos};
  endfunction

  // A SYN without ACK may begin a connection.
  function automatic logic is_syn(packet_body_t p);
    return p.tcp_flags[1] & ~p.tcp_flags[4];
  endfunction
  // FIN or RST.
  function automatic logic ends(logic [11:0] tcp_flags);
    return tcp_flags[0] | tcp_flags[2];
  endfunction

";

const JOINS: &str = r"  // Whether a packet may join a record of its flow: same cell, not before its first packet, and no
  // SYN; if ends cut, no FIN and no RST before (docs/decisions/0001-cells.md).
  function automatic logic may_join(packet_body_t p, state_t a, logic ends_cut);
    return a.epoch == p.epoch && p.stamp >= a.first && !is_syn(p)
           && !(ends_cut && ends(a.tcp_flags));
  endfunction
  // The same, if the packet ahead joins the record first.
  function automatic logic may_join_after(packet_body_t p, state_t a, packet_body_t ahead,
                                          logic ends_cut);
    return a.epoch == p.epoch && p.stamp >= a.first && !is_syn(p)
           && !(ends_cut && ends(a.tcp_flags | ahead.tcp_flags));
  endfunction

";

const WIRE: &str = r"  // What the wire form says of a record (crates/engine/src/wire/mod.rs), without its key.
  typedef struct packed {
    logic [27:0] packets;
    logic [35:0] bytes;
    logic [63:0] first;
    logic [63:0] last;
    logic [31:0] min_length;
    logic [31:0] max_length;
    logic [11:0] tcp_flags;
    logic [7:0]  min_ttl;
    logic [7:0]  max_ttl;
    logic [7:0]  tos;
    logic [7:0]  marks;
  } wire_t;
  // Marks of a record: SYN at the start, FIN, RST.
  function automatic logic [7:0] marks_of(logic starts_with_syn, logic [11:0] tcp_flags);
    return {tcp_flags[2], 1'b0, tcp_flags[0], 2'b00, starts_with_syn, 1'b0, starts_with_syn};
  endfunction
  function automatic wire_t wire_of_state(state_t a, logic [63:0] start);
    return '{packets: a.packets, bytes: a.bytes, first: start + 64'(a.first),
             last: start + 64'(a.last), min_length: 32'(a.min_length),
             max_length: 32'(a.max_length), tcp_flags: a.tcp_flags, min_ttl: a.min_ttl,
             max_ttl: a.max_ttl, tos: a.tos, marks: marks_of(a.starts_with_syn, a.tcp_flags)};
  endfunction
  function automatic wire_t wire_of_alone(alone_t a);
    return '{packets: 28'd1, bytes: 36'(a.length), first: a.stamp, last: a.stamp,
             min_length: a.length, max_length: a.length, tcp_flags: a.tcp_flags, min_ttl: a.ttl,
             max_ttl: a.ttl, tos: a.tos,
             marks: marks_of(a.tcp_flags[1] & ~a.tcp_flags[4], a.tcp_flags)};
  endfunction
  function automatic alone_t alone_of_body(body_t body);
    return alone_t'(body[$bits(alone_t)-1:0]);
  endfunction
endpackage
";
