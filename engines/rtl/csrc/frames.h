// SPDX-License-Identifier: Apache-2.0
// Frames as beats of a 512-bit AXI-Stream, as inputs of a verilated block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

constexpr std::size_t kBeat = 64;

// A frame. As `Given` in src/frames.rs.
struct Given {
    uint64_t user;
    uint32_t length;
    uint32_t damage;   // 1: the MAC marks it; 2: its first beat has a gap
};

// Pseudorandom numbers (xorshift).
struct Draw {
    uint32_t state;
    explicit Draw(uint32_t seed) : state(seed | 1) {}
    uint32_t next() {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        return state;
    }
};

// Fields of a packed structure, from its low bits up.
struct Bits {
    const uint32_t* words;
    std::size_t at = 0;
    explicit Bits(const uint32_t* from) : words(from) {}
    uint32_t next(std::size_t count) {
        uint64_t value = words[at / 32] >> (at % 32);
        if (at % 32 + count > 32) {
            value |= static_cast<uint64_t>(words[at / 32 + 1]) << (32 - at % 32);
        }
        at += count;
        return static_cast<uint32_t>(value & ((uint64_t{1} << count) - 1));
    }
};

struct Beat {
    uint8_t data[kBeat];
    uint64_t keep;
    uint64_t user;
    uint32_t length;   // of the whole frame
    bool first, last, bad;
};

// The beats of some frames, whose bytes are stored one after another.
struct Beats {
    const uint8_t* bytes;
    const Given* frames;
    std::size_t left;
    std::size_t at = 0;    // position in the frame

    Beats(const uint8_t* of, const Given* given, std::size_t count)
        : bytes(of), frames(given), left(count) {}
    bool is_over() const { return left == 0; }

    // The bytes after the end of the frame are random.
    Beat beat(Draw& draw) const {
        Beat beat;
        const std::size_t rest = frames->length - at;
        const std::size_t count = rest < kBeat ? rest : kBeat;
        for (std::size_t i = 0; i < kBeat; i++) beat.data[i] = static_cast<uint8_t>(draw.next());
        std::memcpy(beat.data, bytes + at, count);
        beat.keep = count == kBeat ? ~uint64_t{0} : (uint64_t{1} << count) - 1;
        beat.first = at == 0;
        beat.last = rest <= kBeat;
        beat.bad = frames->damage & 1;
        beat.user = frames->user;
        beat.length = frames->length;
        if ((frames->damage & 2) && beat.first && count > 2) beat.keep &= ~uint64_t{2};
        return beat;
    }
    void next() {
        at += kBeat;
        if (at >= frames->length) {
            bytes += frames->length;
            frames++;
            left--;
            at = 0;
        }
    }
};
