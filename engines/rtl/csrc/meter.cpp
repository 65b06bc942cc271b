// SPDX-License-Identifier: Apache-2.0
// The verilated meter (tf_meter) behind C functions: registers; descriptors go in, message bytes
// come out.
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "Vtf_meter_v4.h"
#include "Vtf_meter_v6.h"
#include "verilated.h"

namespace {

constexpr int kBeatBytes = 64;

template <class Model>
struct Meter {
    VerilatedContext context;
    Model model{named(&context)};
    uint32_t random;

    // Sources may ask for command-line arguments, of which there are none.
    static VerilatedContext* named(VerilatedContext* context) {
        static const char* arguments[] = {"meter"};
        context->commandArgs(1, arguments);
        return context;
    }

    explicit Meter(uint32_t seed) : random(seed | 1) {
        model.rst_ni = 0;
        model.s_axis_tvalid_i = 0;
        model.m_axis_tready_i = 0;
        model.s_axil_awvalid_i = 0;
        model.s_axil_wvalid_i = 0;
        model.s_axil_bready_i = 1;
        model.s_axil_arvalid_i = 0;
        model.s_axil_rready_i = 1;
        for (int i = 0; i < 16; i++) edge();
        model.rst_ni = 1;
    }
    ~Meter() { model.final(); }

    // Runs up to the clock edge, when the outputs show what is taken.
    void settle() {
        model.clk_i = 0;
        model.eval();
    }
    void rise() {
        model.clk_i = 1;
        model.eval();
    }
    void edge() {
        settle();
        rise();
    }

    void write(uint32_t address, uint32_t value) {
        model.s_axil_awaddr_i = address;
        model.s_axil_wdata_i = value;
        model.s_axil_awvalid_i = model.s_axil_wvalid_i = 1;
        for (bool done = false; !done;) {
            settle();
            done = model.s_axil_awready_o && model.s_axil_wready_o;
            rise();
        }
        model.s_axil_awvalid_i = model.s_axil_wvalid_i = 0;
        edge();
    }

    uint32_t read(uint32_t address) {
        model.s_axil_araddr_i = address;
        model.s_axil_arvalid_i = 1;
        for (bool done = false; !done;) {
            settle();
            done = model.s_axil_arready_o;
            rise();
        }
        model.s_axil_arvalid_i = 0;
        settle();
        const uint32_t value = model.s_axil_rdata_o;
        rise();
        return value;
    }

    uint32_t next() {
        random ^= random << 13;
        random ^= random >> 17;
        random ^= random << 5;
        return random;
    }

    // Gives descriptors of 64 bytes until the clocks are over or there is no room for another beat,
    // and collects the bytes that leave. The receiver is ready in `ready_of_256` of 256 clocks.
    std::size_t run(const uint32_t* descriptors, std::size_t count, std::size_t* taken, uint8_t* bytes,
                    std::size_t room, uint32_t ready_of_256, uint64_t clocks) {
        std::size_t given = 0, got = 0;
        for (uint64_t i = 0; i < clocks && got + kBeatBytes <= room; i++) {
            model.s_axis_tvalid_i = given < count;
            if (given < count) {
                for (int w = 0; w < 16; w++) model.s_axis_tdata_i[w] = descriptors[16 * given + w];
            }
            model.m_axis_tready_i = (next() & 255) < ready_of_256;
            settle();
            const bool accepted = model.s_axis_tvalid_i && model.s_axis_tready_o;
            if (model.m_axis_tvalid_o && model.m_axis_tready_i) {
                for (int b = 0; b < kBeatBytes; b++) {
                    if ((model.m_axis_tkeep_o >> b & 1) == 0) continue;
                    bytes[got++] = static_cast<uint8_t>(model.m_axis_tdata_o[b / 4] >> (8 * (b % 4)));
                }
            }
            rise();
            given += accepted;
        }
        *taken = given;
        return got;
    }
};

}  // namespace

#define METER_FUNCTIONS(name)                                                                          \
    extern "C" void* tf_##name##_new(uint32_t seed) { return new Meter<Vtf_##name>(seed); }            \
    extern "C" void tf_##name##_free(void* meter) { delete static_cast<Meter<Vtf_##name>*>(meter); }   \
    extern "C" void tf_##name##_write(void* meter, uint32_t address, uint32_t value) {                 \
        static_cast<Meter<Vtf_##name>*>(meter)->write(address, value);                                 \
    }                                                                                                  \
    extern "C" uint32_t tf_##name##_read(void* meter, uint32_t address) {                              \
        return static_cast<Meter<Vtf_##name>*>(meter)->read(address);                                  \
    }                                                                                                  \
    extern "C" std::size_t tf_##name##_run(void* meter, const uint32_t* descriptors, std::size_t count, \
                                           std::size_t* taken, uint8_t* bytes, std::size_t room,       \
                                           uint32_t ready_of_256, uint64_t clocks) {                   \
        return static_cast<Meter<Vtf_##name>*>(meter)->run(descriptors, count, taken, bytes, room,     \
                                                           ready_of_256, clocks);                      \
    }

METER_FUNCTIONS(meter_v4)
METER_FUNCTIONS(meter_v6)
