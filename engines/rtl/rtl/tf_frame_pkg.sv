// SPDX-License-Identifier: Apache-2.0
// The parser's description of a frame: a packet for the meter, or why the host gets the frame
// whole.
package tf_frame_pkg;
  parameter int unsigned EthernetBytes  = 14;
  parameter int unsigned TagBytes       = 4;
  // The part of an IP packet that the parser sees: the fixed header of IPv6 and this many bytes
  // after it, or after that of IPv4. They have room for 40 bytes of IPv4 options and a TCP header.
  parameter int unsigned RestBytes      = 64;
  parameter int unsigned PacketBytes    = 40 + RestBytes;
  // The part of a frame that the parser sees, with two tags: at most two beats.
  parameter int unsigned HeadBytes      = EthernetBytes + 2*TagBytes + PacketBytes;
  parameter int unsigned ExtensionSteps = 4;   // IPv6 extension headers that are followed
  // Latency of tf_headers and tf_transport, in clocks.
  parameter int unsigned HeadersLatency   = 4;
  parameter int unsigned TransportLatency = 2 * ExtensionSteps + 3;

  parameter int unsigned KeyBits6 = 296;

  // Why the host gets a frame whole: the first reason that applies, in the order of the headers.
  typedef enum logic [3:0] {
    ReasonNone       = 4'd0,   // the host does not get it: the meter takes the packet
    ReasonDamaged    = 4'd1,   // the MAC says so, a beat has a gap, or it exceeds 65,536 bytes
    ReasonLinkCut    = 4'd2,   // it ends within the Ethernet header or the tags
    ReasonTags       = 4'd3,   // a third VLAN tag
    ReasonEtherType  = 4'd4,   // neither IPv4 nor IPv6
    ReasonVersion    = 4'd5,   // the IP header has another version than announced
    ReasonIpHeader   = 4'd6,   // the IP header is cut, or its lengths contradict each other
    ReasonNoLength   = 4'd7,   // a length of 0: segmentation offload, or a jumbogram
    ReasonExtension  = 4'd8,   // an authentication header of IPv6
    ReasonDeep       = 4'd9    // the headers reach beyond what the parser sees
  } reason_e;

  // A packet as the meter takes it, with the fields that crates/packet reads from it.
  typedef struct packed {
    logic [KeyBits6-1:0] key;         // for IPv4: its low 104 bits
    logic [7:0]          tos;
    logic [7:0]          ttl;
    logic [11:0]         tcp_flags;
    logic [16:0]         length;      // IP length
    logic                is_v6;
    logic                is_longer;   // than the frame has
    logic [15:0]         last_byte;   // index of the frame's last byte: its length less one
    reason_e             reason;      // with a reason, only last_byte is valid
  } parsed_t;

  // A descriptor of tf_meter: a packet, or a cell that begins at `stamp`; with a length of 1, the
  // last cell.
  function automatic logic [511:0] packet_descriptor(parsed_t parsed, logic [63:0] stamp);
    return 512'({parsed.key, parsed.tos, parsed.ttl, 4'd0, parsed.tcp_flags, 32'(parsed.length), stamp,
                 6'd0, tf_pkg::InputPacket});
  endfunction
  function automatic logic [511:0] cell_descriptor(logic [63:0] stamp, logic is_last);
    return 512'({32'(is_last), stamp, 6'd0, tf_pkg::InputCell});
  endfunction

  // Network byte order: the first byte is in the low bits.
  function automatic logic [15:0] be16(logic [15:0] bytes);
    return {bytes[7:0], bytes[15:8]};
  endfunction
  function automatic logic [31:0] be32(logic [31:0] bytes);
    return {be16(bytes[15:0]), be16(bytes[31:16])};
  endfunction
  function automatic logic [63:0] be64(logic [63:0] bytes);
    return {be32(bytes[31:0]), be32(bytes[63:32])};
  endfunction

  // Protocol numbers (IANA).
  parameter logic [7:0] ProtocolHopByHop    = 8'd0;
  parameter logic [7:0] ProtocolTcp         = 8'd6;
  parameter logic [7:0] ProtocolUdp         = 8'd17;
  parameter logic [7:0] ProtocolDccp        = 8'd33;
  parameter logic [7:0] ProtocolRouting     = 8'd43;
  parameter logic [7:0] ProtocolFragment    = 8'd44;
  parameter logic [7:0] ProtocolAuthentication = 8'd51;
  parameter logic [7:0] ProtocolNoNext      = 8'd59;
  parameter logic [7:0] ProtocolDestination = 8'd60;
  parameter logic [7:0] ProtocolSctp        = 8'd132;
  parameter logic [7:0] ProtocolUdpLite     = 8'd136;

  // Whether the transport header begins with two ports.
  function automatic logic has_ports(logic [7:0] protocol);
    return protocol inside {ProtocolTcp, ProtocolUdp, ProtocolDccp, ProtocolSctp, ProtocolUdpLite};
  endfunction
  // Whether it is an extension header that the parser follows.
  function automatic logic is_extension(logic [7:0] protocol);
    return protocol inside {ProtocolHopByHop, ProtocolRouting, ProtocolFragment,
                            ProtocolDestination};
  endfunction
endpackage
