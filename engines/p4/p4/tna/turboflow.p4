// SPDX-License-Identifier: Apache-2.0
// TurboFlow's microflow generator for the Tofino Native Architecture: Tofino 1 and Tofino 2. It
// meters every frame of every port beside the switch's own work, for which `forwarding` stands.
// Each pipe has a table, a seed and a sequence of its own.
//
//   -DSLOT_BITS=N      see sizes.p4
//   -DWITH_V6          IPv6, too: with SLOT_BITS of at most 15
//   -DQUEUE_FEATURES   the record has queue_depth or hop_latency: the table is in egress
//   -DCPU_PORT=N, -DGENERATOR_PORT=N, -DRECORD_4_SESSION=N...   see headers.p4, cpu.p4

#if __TARGET_TOFINO__ == 1
#include <tna.p4>
#else
#include <t2na.p4>
#endif

#include "headers.p4"
#include "parser.p4"
#include "classify.p4"
#include "microflows.p4"
#include "status.p4"
#ifdef QUEUE_FEATURES
#include "egress.p4"
#else
#include "ingress.p4"
#include "cpu.p4"
#endif

Pipeline(IngressParser(), Ingress(), IngressDeparser(), EgressParser(), Egress(),
         EgressDeparser()) pipeline;
Switch(pipeline) main;
