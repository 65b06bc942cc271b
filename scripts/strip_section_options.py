#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Copies a little-endian pcapng file without the options of its section header (hardware, system, program).

  strip_section_options.py IN.pcapng OUT.pcapng
"""

import struct
import sys

SECTION_HEADER = 0x0A0D0D0A
FIXED_BYTES = 24  # type, length, byte-order magic, version, section length


def main(source: str, target: str) -> None:
    with open(source, "rb") as file:
        capture = file.read()
    kind, length, magic = struct.unpack_from("<III", capture)
    if (kind, magic) != (SECTION_HEADER, 0x1A2B3C4D):
        sys.exit(f"{source}: not a little-endian pcapng file")
    whole = struct.pack("<II", SECTION_HEADER, FIXED_BYTES + 4) + capture[8:FIXED_BYTES]
    with open(target, "wb") as file:
        file.write(whole + struct.pack("<I", FIXED_BYTES + 4) + capture[length:])


if __name__ == "__main__":
    main(*sys.argv[1:])
