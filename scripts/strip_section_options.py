#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Copies a little-endian pcapng file without the options that identify the recording machine.

These are the section header's options (hardware, system, program) and the interfaces' if_os option.

  strip_section_options.py IN.pcapng OUT.pcapng
"""

import struct
import sys

SECTION_HEADER, INTERFACE_DESCRIPTION = 0x0A0D0D0A, 1
FIXED_BYTES = {SECTION_HEADER: 24, INTERFACE_DESCRIPTION: 16}  # up to the first option
OPTION_END, IF_OS = 0, 12


def kept_options(kind: int, options: bytes) -> bytes:
    kept, at = b"", 0
    while kind == INTERFACE_DESCRIPTION and at + 4 <= len(options):
        code, length = struct.unpack_from("<HH", options, at)
        end = at + 4 + (length + 3) // 4 * 4
        if code not in (OPTION_END, IF_OS):
            kept += options[at:end]
        at = end
    return kept + struct.pack("<HH", OPTION_END, 0) if kept else b""


def main(source: str, target: str) -> None:
    with open(source, "rb") as file:
        capture = file.read()
    if struct.unpack_from("<I4xI", capture) != (SECTION_HEADER, 0x1A2B3C4D):
        sys.exit(f"{source}: not a little-endian pcapng file")
    with open(target, "wb") as file:
        at = 0
        while at < len(capture):
            kind, length = struct.unpack_from("<II", capture, at)
            block = capture[at : at + length]
            if kind in FIXED_BYTES:
                fixed = FIXED_BYTES[kind]
                body = block[8:fixed] + kept_options(kind, block[fixed:-4])
                total = struct.pack("<I", len(body) + 12)
                block = block[:4] + total + body + total
            file.write(block)
            at += length


if __name__ == "__main__":
    main(*sys.argv[1:])
