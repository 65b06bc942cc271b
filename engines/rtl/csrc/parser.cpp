// SPDX-License-Identifier: Apache-2.0
// The verilated parser (tf_parser) behind C functions: frames go in, beat by beat; descriptions
// come out.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "Vtf_parser.h"
#include "frames.h"
#include "verilated.h"

namespace {

// As `Said` in src/parser.rs.
struct Said {
    uint32_t key[10];
    uint64_t user;
    uint32_t length;
    uint16_t tcp_flags;
    uint16_t last_byte;
    uint8_t ttl;
    uint8_t tos;
    uint8_t is_v6;
    uint8_t is_longer;
    uint8_t reason;
    uint8_t padding[3];
};

struct Parser {
    VerilatedContext context;
    Vtf_parser* model = nullptr;
    Draw draw;
    uint64_t clocks = 0;

    Parser(uint32_t seed, uint32_t fault) : draw(seed) {
        const std::string chosen = "+fault=" + std::to_string(fault);
        const char* arguments[] = {"parser", chosen.c_str()};
        context.commandArgs(2, arguments);
        model = new Vtf_parser(&context);
        model->rst_ni = 0;
        model->s_axis_tvalid_i = 0;
        model->ready_i = 0;
        for (int i = 0; i < 16; i++) edge();
        model->rst_ni = 1;
    }
    ~Parser() {
        model->final();
        delete model;
    }

    void settle() {
        model->clk_i = 0;
        model->eval();
    }
    void edge() {
        settle();
        model->clk_i = 1;
        model->eval();
        clocks++;
    }

    void take(Said& said) const {
        // parsed_t of rtl/tf_frame_pkg.sv, from its low bits up.
        Bits bits(&model->parsed_o[0]);
        said.reason = bits.next(4);
        said.last_byte = bits.next(16);
        said.is_longer = bits.next(1);
        said.is_v6 = bits.next(1);
        said.length = bits.next(17);
        said.tcp_flags = bits.next(12);
        said.ttl = bits.next(8);
        said.tos = bits.next(8);
        for (int w = 0; w < 9; w++) said.key[w] = bits.next(32);
        said.key[9] = bits.next(8);
        said.user = model->time_o;
    }

    // Gives frames until each has been described, or the clocks are over.
    std::size_t run(const uint8_t* bytes, const Given* frames, std::size_t count, Said* said,
                    uint32_t given_of_256, uint32_t ready_of_256, uint64_t limit) {
        Beats beats(bytes, frames, count);
        std::size_t got = 0;
        bool offered = false;
        for (uint64_t i = 0; i < limit && got < count; i++) {
            // A beat that is offered stays until it is taken.
            offered = !beats.is_over() && (offered || (draw.next() & 255) < given_of_256);
            model->s_axis_tvalid_i = offered;
            if (offered) {
                const Beat beat = beats.beat(draw);
                std::memcpy(&model->s_axis_tdata_i[0], beat.data, sizeof beat.data);
                model->s_axis_tkeep_i = beat.keep;
                model->s_axis_tlast_i = beat.last;
                model->s_axis_tbad_i = beat.last ? beat.bad : draw.next() & 1;
                // The user part of a frame is only valid with its first beat.
                model->s_axis_tuser_i = beat.first ? beat.user : draw.next();
            }
            model->ready_i = (draw.next() & 255) < ready_of_256;
            settle();
            const bool accepted = offered && model->s_axis_tready_o;
            if (model->valid_o && model->ready_i) take(said[got++]);
            edge();
            if (accepted) {
                beats.next();
                offered = false;
            }
        }
        return got;
    }
};

}  // namespace

extern "C" void* tf_parser_new(uint32_t seed, uint32_t fault) { return new Parser(seed, fault); }
extern "C" void tf_parser_free(void* parser) { delete static_cast<Parser*>(parser); }
extern "C" std::size_t tf_parser_run(void* parser, const uint8_t* bytes, const Given* frames,
                                     std::size_t count, Said* said, uint32_t given_of_256,
                                     uint32_t ready_of_256, uint64_t limit) {
    return static_cast<Parser*>(parser)->run(bytes, frames, count, said, given_of_256, ready_of_256,
                                             limit);
}
extern "C" uint64_t tf_parser_clocks(const void* parser) {
    return static_cast<const Parser*>(parser)->clocks;
}
