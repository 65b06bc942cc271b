// SPDX-License-Identifier: Apache-2.0
// Packets and records of one record definition: fields, widths, and how they merge.
//
// Derived from the definition by engines/rtl/src/package.rs; a test compares, and UPDATE=1 writes
// it anew. Widths follow from the rule for cells (docs/decisions/0001-cells.md): a cell has at most
// 1 s. The features are fields of the record:
//   packets: Count of packets
//   bytes: Sum of ip_length
//   first_ns: Min of timestamp
//   last_ns: Max of timestamp
//   tcp_flags: BitOr of tcp_flags
//   min_length: Min of ip_length
//   max_length: Max of ip_length
//   min_ttl: Min of ttl
//   max_ttl: Max of ttl
//   tos: First of tos
package tf_record_pkg;
  import tf_pkg::*;

  // Of the wire form, which a sender writes into every message.
  parameter logic [63:0] LayoutId   = 64'h9f36ee11f0520ef3;
  parameter int unsigned TimeBits   = 30;  // ns in a cell
  parameter int unsigned LengthBits = 16;

  // A packet as it comes in.
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

  // A packet that no record has room for.
  typedef struct packed {
    logic [63:0]  stamp;
    logic [31:0]  length;
    logic [11:0]  tcp_flags;
    logic [7:0]   ttl;
    logic [7:0]   tos;
  } alone_t;

  // A record.
  typedef struct packed {
    logic         epoch;
    logic [27:0]  packets;
    logic [35:0]  bytes;
    logic [29:0]  first;
    logic [29:0]  last;
    logic [15:0]  min_length;
    logic [15:0]  max_length;
    logic [11:0]  tcp_flags;
    logic [7:0]   min_ttl;
    logic [7:0]   max_ttl;
    logic [7:0]   tos;
    logic         starts_with_syn;
  } state_t;

  // What a token carries beside its key: a record, or one of the shorter ones in its low bits.
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

  // The record of one packet.
  function automatic state_t state_of_packet(packet_body_t p);
    state_of_packet.epoch           = p.epoch;
    state_of_packet.packets         = 28'd1;
    state_of_packet.bytes           = 36'(p.length);
    state_of_packet.first           = p.stamp;
    state_of_packet.last            = p.stamp;
    state_of_packet.min_length      = p.length;
    state_of_packet.max_length      = p.length;
    state_of_packet.tcp_flags       = p.tcp_flags;
    state_of_packet.min_ttl         = p.ttl;
    state_of_packet.max_ttl         = p.ttl;
    state_of_packet.tos             = p.tos;
    state_of_packet.starts_with_syn = is_syn(p);
  endfunction

  // The record with one packet more.
  function automatic state_t merged(state_t a, packet_body_t p);
    merged.epoch           = a.epoch;
    merged.packets         = a.packets + 28'd1;
    merged.bytes           = a.bytes + 36'(p.length);
    merged.first           = a.first;
    merged.last            = (p.stamp > a.last) ? p.stamp : a.last;
    merged.min_length      = (p.length < a.min_length) ? p.length : a.min_length;
    merged.max_length      = (p.length > a.max_length) ? p.length : a.max_length;
    merged.tcp_flags       = a.tcp_flags | p.tcp_flags;
    merged.min_ttl         = (p.ttl < a.min_ttl) ? p.ttl : a.min_ttl;
    merged.max_ttl         = (p.ttl > a.max_ttl) ? p.ttl : a.max_ttl;
    merged.tos             = a.tos;
    merged.starts_with_syn = a.starts_with_syn;
  endfunction

  // Whether a packet may join a record of its flow: same cell, not before its first packet, and no
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

  // What the wire form says of a record (crates/engine/src/wire/mod.rs), without its key.
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
