// SPDX-License-Identifier: Apache-2.0
// Sizes that an owner of a switch may change, with -D on the compiler's command line.

#ifndef SIZES_P4
#define SIZES_P4

// Slots of the table for IPv4, and as many for IPv6: 2 to this power. The receiver may use fewer.
#ifndef SLOT_BITS
#define SLOT_BITS 16
#endif

// Without lane, cells of the clock last 2 to this power in ns, 0.54 s: a shift, because pipelines
// cannot divide.
#ifndef CELL_SHIFT
#define CELL_SHIFT 29
#endif

#define SLOTS (1 << SLOT_BITS)

#endif
