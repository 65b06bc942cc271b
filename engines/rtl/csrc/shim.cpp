// SPDX-License-Identifier: Apache-2.0
// The verilated lines behind C functions. Steps and tokens are passed as arrays.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>

#include "Vtf_direct.h"
#include "Vtf_v4.h"
#include "Vtf_v6.h"
#include "verilated.h"

namespace {

constexpr int kKeyWords = 10;
constexpr int kBodyWords = 7;
constexpr int kSeedWords = 16;

// As `Config`, `GivenStep` and `Token` in src/verilated.rs.
struct Config {
    uint32_t seed[kSeedWords];
    uint32_t stage_mask;
    uint32_t bucket_mask;
    uint32_t ends_cut;
    uint32_t sweep_every;
    uint32_t age_period;
    uint32_t fault;
};
struct Step {
    uint64_t time;
    uint32_t kind;
    uint32_t length;
    uint32_t key[kKeyWords];
    uint16_t tcp_flags;
    uint8_t ttl;
    uint8_t tos;
    uint32_t padding;
};
struct Token {
    uint32_t kind;
    uint32_t why;
    uint32_t key[kKeyWords];
    uint32_t body[kBodyWords];
};

// Number of assertions that failed since the process started. A thread steps one line at a time.
thread_local uint32_t failures = 0;

// Kinds of rtl/tf_pkg.sv.
constexpr int kRecord = 2, kEpoch = 4, kAlone = 6;

template <class T, std::size_t N>
void copy_in(VlWide<N>& to, const T* from) {
    for (std::size_t i = 0; i < N; i++) to[i] = from[i];
}

template <std::size_t N>
void copy_out(uint32_t* to, const VlWide<N>& from) {
    for (std::size_t i = 0; i < N; i++) to[i] = from[i];
}

template <class Model>
struct Line {
    VerilatedContext context;
    Model* model = nullptr;
    uint64_t clocks = 0;

    explicit Line(const Config& config) {
        const std::string fault = "+fault=" + std::to_string(config.fault);
        const char* arguments[] = {"line", fault.c_str()};
        context.commandArgs(2, arguments);
        model = new Model(&context);
        copy_in(model->seed_i, config.seed);
        model->stage_mask_i = config.stage_mask;
        model->bucket_mask_i = config.bucket_mask;
        model->ends_cut_i = config.ends_cut;
        model->sweep_every_i = config.sweep_every;
        model->age_period_i = config.age_period;
        model->kind_i = 0;
        model->room_i = 1;
        model->rst_ni = 0;
        // As long as a place takes through the longest line, so that no undefined value remains.
        for (int i = 0; i < 16; i++) clock();
        model->rst_ni = 1;
    }

    ~Line() {
        model->final();
        delete model;
    }

    void clock() {
        model->clk_i = 0;
        model->eval();
        model->clk_i = 1;
        model->eval();
        clocks++;
    }

    void put(const Step& step) {
        model->kind_i = step.kind;
        model->time_i = step.time;
        model->length_i = step.length;
        model->tcp_flags_i = step.tcp_flags;
        model->ttl_i = step.ttl;
        model->tos_i = step.tos;
        copy_in(model->key_i, step.key);
    }

    bool get(Token& token) {
        const int kind = model->kind_o;
        if (kind != kRecord && kind != kEpoch && kind != kAlone) return false;
        token.kind = kind;
        token.why = model->why_o;
        std::memset(token.key, 0, sizeof token.key);
        copy_out(token.key, model->key_o);
        copy_out(token.body, model->body_o);
        return true;
    }

    // Gives steps until all are taken, there is no room for more tokens, an assertion has failed,
    // or `limit` clocks have passed.
    std::size_t give(const Step* steps, std::size_t count, std::size_t* taken, Token* tokens,
                     std::size_t room, uint64_t limit) {
        std::size_t given = 0, got = 0;
        const uint32_t failed = failures;
        for (uint64_t i = 0; given < count && got < room && i < limit && failures == failed; i++) {
            put(steps[given]);
            // Whether the step is taken at the edge is known before the edge.
            model->clk_i = 0;
            model->eval();
            const bool accepted = model->ready_o || steps[given].kind == 0;
            model->clk_i = 1;
            model->eval();
            clocks++;
            given += accepted;
            got += get(tokens[got]);
        }
        *taken = given;
        return got;
    }
};

}  // namespace

// Verilator calls this when an assertion fails. Its own version would end the process.
void vl_stop(const char* file, int line, const char* scope) {
    if (failures == 0) std::fprintf(stderr, "%s:%d: assertion failed in %s\n", file, line, scope);
    failures++;
}

#define LINE_FUNCTIONS(name)                                                                      \
    extern "C" void* tf_##name##_new(const Config* config) {                                      \
        return new Line<Vtf_##name>(*config);                                                     \
    }                                                                                             \
    extern "C" void tf_##name##_free(void* line) { delete static_cast<Line<Vtf_##name>*>(line); } \
    extern "C" std::size_t tf_##name##_give(void* line, const Step* steps, std::size_t count,     \
                                            std::size_t* taken, Token* tokens, std::size_t room,  \
                                            uint64_t limit) {                                     \
        return static_cast<Line<Vtf_##name>*>(line)->give(steps, count, taken, tokens, room,      \
                                                          limit);                                 \
    }                                                                                             \
    extern "C" uint64_t tf_##name##_clocks(const void* line) {                                    \
        return static_cast<const Line<Vtf_##name>*>(line)->clocks;                                \
    }                                                                                             \
    extern "C" uint32_t tf_##name##_clean(const void* line) {                                     \
        return static_cast<const Line<Vtf_##name>*>(line)->model->clean_o;                        \
    }

LINE_FUNCTIONS(v4)
LINE_FUNCTIONS(v6)
LINE_FUNCTIONS(direct)

// Number of assertions that failed in lines stepped by this thread.
extern "C" uint32_t tf_failures() { return failures; }
