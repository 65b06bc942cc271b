#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws the screen of a terminal program as SVG. docs/top.svg is made by

    scripts/screen_svg.py --after 7 docs/top.svg \
        turboflow top -r samples/office.pcap --speed 2

The program runs in tmux, which provides the content of its screen."""

import argparse
import re
import subprocess
import time
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape

FONT_SIZE = 13
CHARACTER_WIDTH = 7.8
LINE_HEIGHT = 18
MARGIN = 14
INK, PAPER = "#d8dee4", "#161b22"
# The terminal colours that the program uses.
PALETTE = {6: "#39c5cf", 8: "#848d97"}


class Style(NamedTuple):
    ink: str = INK
    bold: bool = False
    reverse: bool = False

    def changed(self, codes: list[int]) -> "Style":
        """The style after a sequence "ESC [ ... m"."""
        style, codes = self, list(codes)
        while codes:
            code = codes.pop(0)
            if code == 0:
                style = Style()
            elif code == 1:
                style = style._replace(bold=True)
            elif code == 7:
                style = style._replace(reverse=True)
            elif code == 39:
                style = style._replace(ink=INK)
            elif code == 38 and codes[:1] == [5]:
                style = style._replace(ink=PALETTE[codes[1]])
                del codes[:2]
            elif code != 49:
                raise SystemExit(f"the screen has an attribute that is not drawn: {code}")
        return style


def capture(command: list[str], columns: int, rows: int, after_s: float) -> str:
    """The screen of a program after `after_s` seconds, with its attributes."""
    tmux = ["tmux", "-L", "screen_svg", "-f", "/dev/null"]
    size = ["-x", str(columns), "-y", str(rows)]
    subprocess.run([*tmux, "new-session", "-d", *size, "--", *command], check=True)
    try:
        time.sleep(after_s)
        shown = subprocess.run([*tmux, "capture-pane", "-e", "-p"], check=True, capture_output=True)
        return shown.stdout.decode()
    finally:
        subprocess.run([*tmux, "kill-server"], check=False)


def draw(screen: str, columns: int) -> str:
    """Draws runs of equal style as texts of fixed width, which does not depend on the viewer's font."""
    lines = screen.rstrip("\n").split("\n")
    width = round(columns * CHARACTER_WIDTH + 2 * MARGIN)
    height = len(lines) * LINE_HEIGHT + 2 * MARGIN
    body, style = [], Style()
    for number, line in enumerate(lines):
        column = 0
        for part in re.split("(\x1b\\[[0-9;]*m)", line):
            if part.startswith("\x1b"):
                style = style.changed([int(code or 0) for code in part[2:-1].split(";")])
                continue
            body += run(part, style, column, MARGIN + number * LINE_HEIGHT)
            column += len(part)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="monospace" font-size="{FONT_SIZE}" '
        f'xml:space="preserve">\n<rect width="100%" height="100%" rx="6" fill="{PAPER}"/>\n'
        + "\n".join(body)
        + "\n</svg>\n"
    )


def run(text: str, style: Style, column: int, top: int) -> list[str]:
    left, width = MARGIN + column * CHARACTER_WIDTH, len(text) * CHARACTER_WIDTH
    ink, drawn = style.ink, []
    if style.reverse and text:
        drawn.append(
            f'<rect x="{left:.1f}" y="{top}" width="{width:.1f}" height="{LINE_HEIGHT}" '
            f'fill="{ink}"/>'
        )
        ink = PAPER
    # Words are placed one by one, because fonts differ in the width of spaces.
    for word in re.finditer(r"\S+(?: \S+)*", text):
        at = left + word.start() * CHARACTER_WIDTH
        length = len(word.group()) * CHARACTER_WIDTH
        weight = ' font-weight="bold"' if style.bold else ""
        drawn.append(
            f'<text x="{at:.1f}" y="{top + FONT_SIZE}" textLength="{length:.1f}" '
            f'lengthAdjust="spacingAndGlyphs" fill="{ink}"{weight}>{escape(word.group())}</text>'
        )
    return drawn


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--columns", type=int, default=96)
    parser.add_argument("--rows", type=int, default=20)
    parser.add_argument("--after", type=float, default=6.0, help="seconds until the screen is drawn")
    parser.add_argument("out", type=Path)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    args = parser.parse_args()
    screen = capture(args.command, args.columns, args.rows, args.after)
    args.out.write_text(draw(screen, args.columns))


if __name__ == "__main__":
    main()
