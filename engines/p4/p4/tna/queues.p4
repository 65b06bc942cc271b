// SPDX-License-Identifier: Apache-2.0
// The depth of queues, in cells of the chip's buffer. Tofino 1 tells it to egress alone. Tofino 2
// has a thread of its own for it, the ghost, which writes each queue's depth as it changes; ingress
// reads that of the queue that the packet is about to join. The compiler makes two of the register,
// which take turns.

#if __TARGET_TOFINO__ == 1
#error "queue_depth: in ingress, Tofino 1 does not know it"
#endif

typedef bit<11> queue_t;

Register<bit<32>, queue_t>(2048, 0) depth_reg;

control Ghost(in ghost_intrinsic_metadata_t ghost) {
    RegisterAction<bit<32>, queue_t, bit<32>>(depth_reg) write_depth = {
        void apply(inout bit<32> value) {
            value = (bit<32>) ghost.qlength;
        }
    };

    apply {
        write_depth.execute(ghost.qid);
    }
}

control Queues(inout metadata_t md, in ghost_intrinsic_metadata_t ghost) {
    RegisterAction<bit<32>, queue_t, bit<32>>(depth_reg) read_depth = {
        void apply(inout bit<32> value, out bit<32> depth) {
            depth = value;
        }
    };

    apply {
        md.queue_depth = read_depth.execute(md.queue);
    }
}
