// SPDX-License-Identifier: Apache-2.0
// The verilated tops (tf_opennic, tf_corundum) behind C functions. Frames arrive at the port.
// Passing frames, and what the host gets, are collected as packets.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <vector>

#include "Vtf_corundum.h"
#include "Vtf_opennic.h"
#include "frames.h"
#include "verilated.h"

namespace {

// Packets, each preceded by its length (32 bits, little-endian).
struct Packets {
    std::vector<uint8_t> done;
    std::vector<uint8_t> current;

    // Returns the bytes of the packet that ends in this beat; 0 if none does.
    std::size_t beat(const uint32_t* data, uint64_t keep, bool last) {
        for (std::size_t b = 0; b < kBeat; b++) {
            if (keep >> b & 1) current.push_back(static_cast<uint8_t>(data[b / 4] >> (8 * (b % 4))));
        }
        if (!last) return 0;
        const std::size_t size = current.size();
        for (int i = 0; i < 4; i++) done.push_back(static_cast<uint8_t>(size >> (8 * i)));
        done.insert(done.end(), current.begin(), current.end());
        current.clear();
        return size;
    }
};

// The bench's view of a top, whatever the names of its pins.
struct Outputs {
    Packets passed;   // frames that passed the card, where they leave for the host
    Packets tapped;   // the same frames, where the card watches them
    Packets host;     // what the card sends
    uint32_t wrong = 0;  // packets whose size differs from that in the user part
};

struct OpenNic {
    using Model = Vtf_opennic;
    Model model;
    explicit OpenNic(VerilatedContext* context) : model(context) {}

    void clock(int level) { model.axis_aclk = level; }
    void reset(bool on) { model.mod_rstn = !on; }
    void offer(const Beat* beat, Draw& draw) {
        model.s_axis_adap_rx_250mhz_tvalid = beat != nullptr;
        if (beat == nullptr) return;
        std::memcpy(&model.s_axis_adap_rx_250mhz_tdata[0], beat->data, sizeof beat->data);
        model.s_axis_adap_rx_250mhz_tkeep = beat->keep;
        model.s_axis_adap_rx_250mhz_tlast = beat->last;
        model.s_axis_adap_rx_250mhz_tuser_size = beat->length;
        model.s_axis_adap_rx_250mhz_tuser_src = 0x40;
        model.now_ns = beat->first ? beat->user : draw.next();
    }
    bool is_taken() const { return model.s_axis_adap_rx_250mhz_tready; }
    void receive(bool host, bool, Draw&) { model.m_axis_qdma_c2h_tready = host; }
    void collect(Outputs& outputs) {
        if (!model.m_axis_qdma_c2h_tvalid || !model.m_axis_qdma_c2h_tready) return;
        Packets& to = model.m_axis_qdma_c2h_tuser_dst == 1 ? outputs.passed : outputs.host;
        const std::size_t size = to.beat(&model.m_axis_qdma_c2h_tdata[0],
                                         model.m_axis_qdma_c2h_tkeep, model.m_axis_qdma_c2h_tlast);
        outputs.wrong += size != 0 && size != model.m_axis_qdma_c2h_tuser_size;
    }
};

struct Corundum {
    using Model = Vtf_corundum;
    struct Waiting {
        uint32_t data[kBeat / 4];
        uint64_t keep;
        bool last;
    };
    Model model;
    std::deque<Waiting> interface;   // in the shell, between both taps
    explicit Corundum(VerilatedContext* context) : model(context) {}

    void clock(int level) { model.clk = level; }
    void reset(bool on) { model.rst = on; }
    void offer(const Beat* beat, Draw& draw) {
        model.s_axis_sync_rx_tvalid = beat != nullptr;
        if (beat == nullptr) return;
        std::memcpy(&model.s_axis_sync_rx_tdata[0], beat->data, sizeof beat->data);
        model.s_axis_sync_rx_tkeep = beat->keep;
        model.s_axis_sync_rx_tlast = beat->last;
        // A PTP time of day above the mark of a bad frame, which belongs to the last beat.
        const uint64_t user = beat->first ? beat->user : draw.next();
        const unsigned __int128 day = static_cast<unsigned __int128>(user / 1000000000) << 48 |
                                      static_cast<unsigned __int128>(user % 1000000000) << 16 |
                                      (draw.next() & 0xffff);
        const unsigned __int128 tuser = day << 1 | (beat->last ? beat->bad : draw.next() & 1);
        for (int i = 0; i < 4; i++) {
            model.s_axis_sync_rx_tuser[i] = static_cast<uint32_t>(tuser >> (32 * i));
        }
    }
    bool is_taken() const { return model.s_axis_sync_rx_tready; }
    void receive(bool host, bool pass, Draw& draw) {
        model.m_axis_if_rx_tready = host;
        model.m_axis_sync_rx_tready = pass;
        model.s_axis_if_rx_tvalid = !interface.empty();
        if (interface.empty()) return;
        std::memcpy(&model.s_axis_if_rx_tdata[0], interface.front().data, kBeat);
        model.s_axis_if_rx_tkeep = interface.front().keep;
        model.s_axis_if_rx_tlast = interface.front().last;
        model.s_axis_if_rx_tdest = 0;
        (void)draw;
    }
    void collect(Outputs& outputs) {
        if (model.m_axis_if_rx_tvalid && model.m_axis_if_rx_tready) {
            Packets& to = model.m_axis_if_rx_tdest == 0 ? outputs.passed : outputs.host;
            to.beat(&model.m_axis_if_rx_tdata[0], model.m_axis_if_rx_tkeep, model.m_axis_if_rx_tlast);
        }
        if (!interface.empty() && model.s_axis_if_rx_tready) interface.pop_front();
        if (model.m_axis_sync_rx_tvalid && model.m_axis_sync_rx_tready) {
            Waiting beat;
            for (std::size_t i = 0; i < kBeat / 4; i++) beat.data[i] = model.m_axis_sync_rx_tdata[i];
            beat.keep = model.m_axis_sync_rx_tkeep;
            beat.last = model.m_axis_sync_rx_tlast;
            interface.push_back(beat);
            outputs.tapped.beat(beat.data, beat.keep, beat.last);
        }
    }
};

// AXI-Lite of a top, with the names of its pins.
#define REGISTERS(top, prefix)                                                       \
    template <class Edge, class Settle>                                              \
    void write(top& card, uint32_t address, uint32_t value, Edge edge, Settle settle) { \
        auto& model = card.model;                                                    \
        model.prefix##awaddr = address;                                              \
        model.prefix##wdata = value;                                                 \
        model.prefix##bready = 1;                                                    \
        model.prefix##awvalid = model.prefix##wvalid = 1;                            \
        for (bool done = false; !done;) {                                            \
            settle();                                                                \
            done = model.prefix##awready && model.prefix##wready;                    \
            edge();                                                                  \
        }                                                                            \
        model.prefix##awvalid = model.prefix##wvalid = 0;                            \
        edge();                                                                      \
    }                                                                                \
    template <class Edge, class Settle>                                              \
    uint32_t read(top& card, uint32_t address, Edge edge, Settle settle) {           \
        auto& model = card.model;                                                    \
        model.prefix##araddr = address;                                              \
        model.prefix##rready = 1;                                                    \
        model.prefix##arvalid = 1;                                                   \
        for (bool done = false; !done;) {                                            \
            settle();                                                                \
            done = model.prefix##arready;                                            \
            edge();                                                                  \
        }                                                                            \
        model.prefix##arvalid = 0;                                                   \
        settle();                                                                    \
        const uint32_t value = model.prefix##rdata;                                  \
        edge();                                                                      \
        return value;                                                                \
    }
REGISTERS(OpenNic, s_axil_)
REGISTERS(Corundum, s_axil_app_ctrl_)

template <class Top>
struct Card {
    VerilatedContext context;
    Top top{named(&context)};
    Draw draw;
    Outputs outputs;

    // Sources may ask for command-line arguments, of which there are none.
    static VerilatedContext* named(VerilatedContext* context) {
        static const char* arguments[] = {"card"};
        context->commandArgs(1, arguments);
        return context;
    }
    explicit Card(uint32_t seed) : draw(seed) {
        top.reset(true);
        top.offer(nullptr, draw);
        for (int i = 0; i < 16; i++) edge();
        top.reset(false);
    }
    ~Card() { top.model.final(); }

    void settle() {
        top.clock(0);
        top.model.eval();
    }
    // In a clock that only serves the registers, nothing is received.
    void edge() {
        top.receive(false, false, draw);
        rise();
    }
    void rise() {
        settle();
        top.clock(1);
        top.model.eval();
    }

    // Lets frames arrive, and runs some clocks more. Returns the number of clocks.
    uint64_t run(const uint8_t* bytes, const Given* frames, std::size_t count, uint32_t given_of_256,
                 uint32_t host_of_256, uint64_t more) {
        Beats beats(bytes, frames, count);
        bool offered = false;
        Beat beat;
        uint64_t clocks = 0;
        for (; !beats.is_over() || more > 0; clocks++) {
            if (beats.is_over()) more--;
            if (!offered && !beats.is_over() && (draw.next() & 255) < given_of_256) {
                offered = true;
                beat = beats.beat(draw);
            }
            top.offer(offered ? &beat : nullptr, draw);
            top.receive((draw.next() & 255) < host_of_256, (draw.next() & 255) < 250, draw);
            settle();
            const bool accepted = offered && top.is_taken();
            top.collect(outputs);
            rise();
            if (accepted) {
                beats.next();
                offered = false;
            }
        }
        top.offer(nullptr, draw);
        return clocks;
    }
};

template <class Top>
Card<Top>* of(void* card) {
    return static_cast<Card<Top>*>(card);
}

}  // namespace

#define CARD_FUNCTIONS(name, Top)                                                                    \
    extern "C" void* tf_##name##_new(uint32_t seed) { return new Card<Top>(seed); }                  \
    extern "C" void tf_##name##_free(void* card) { delete of<Top>(card); }                           \
    extern "C" void tf_##name##_write(void* card, uint32_t address, uint32_t value) {                \
        auto* it = of<Top>(card);                                                                    \
        write(it->top, address, value, [it] { it->edge(); }, [it] { it->settle(); });                \
    }                                                                                                \
    extern "C" uint32_t tf_##name##_read(void* card, uint32_t address) {                             \
        auto* it = of<Top>(card);                                                                    \
        return read(it->top, address, [it] { it->edge(); }, [it] { it->settle(); });                 \
    }                                                                                                \
    extern "C" uint64_t tf_##name##_run(void* card, const uint8_t* bytes, const Given* frames,       \
                                        std::size_t count, uint32_t given_of_256,                    \
                                        uint32_t host_of_256, uint64_t more) {                       \
        return of<Top>(card)->run(bytes, frames, count, given_of_256, host_of_256, more);            \
    }                                                                                                \
    extern "C" uint32_t tf_##name##_wrong(const void* card) {                                        \
        return static_cast<const Card<Top>*>(card)->outputs.wrong;                                   \
    }                                                                                                \
    /* 0: passed, 1: tapped, 2: for the host. With room for them, they are taken. */                 \
    extern "C" std::size_t tf_##name##_take(void* card, uint32_t which, uint8_t* to,                 \
                                            std::size_t room) {                                      \
        Outputs& outputs = of<Top>(card)->outputs;                                                   \
        Packets& packets = which == 0 ? outputs.passed : which == 1 ? outputs.tapped : outputs.host; \
        const std::size_t size = packets.done.size();                                                \
        if (to == nullptr || room < size) return size;                                               \
        if (size > 0) std::memcpy(to, packets.done.data(), size);                                    \
        packets.done.clear();                                                                        \
        return size;                                                                                 \
    }

CARD_FUNCTIONS(opennic, OpenNic)
CARD_FUNCTIONS(corundum, Corundum)
