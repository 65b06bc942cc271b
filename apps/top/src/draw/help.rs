// SPDX-License-Identifier: Apache-2.0
//! The help screen: what the keys do.

use ratatui::layout::Rect;
use ratatui::style::Style;

use super::Pen;

const HELP: [&str; 19] = [
    "1 to 5, Tab    flows, hosts, protocols and ports, health, applications if inspected",
    "s S            sort by the next or previous: bits, packets, average, total, name",
    "r              smallest first",
    "/              show only flows of which this is true, as `turboflow show` does:",
    "                 tcp and port 443     host 192.0.2.1 or net 10.0.0.0/8",
    "                 bps > 1M             pps > 100 and not udp",
    "               fields: src_addr dst_addr src_port dst_port protocol packets",
    "               bytes bps pps first_ns last_ns application",
    "Esc            takes the filter away",
    "p Space        the screen stands still; metering goes on",
    "+ -            longer and shorter interval (1s, 2s, 5s, 10s)",
    "arrows, PgUp, PgDn, Home, End   scroll",
    "q, Ctrl-C      ends",
    "",
    "Rates are of the last interval, `10 s` of the last ten seconds. They are exact,",
    "and some 1.5 s old: a silent flow tells so late. Bytes are those of IP headers.",
    "A port is the smaller of a flow's two. Grey: nothing in the last interval.",
    "",
    "Any key goes back.",
];

pub(super) fn draw(pen: &mut Pen<'_>, area: Rect) {
    for (y, line) in (area.y..area.bottom()).zip(HELP) {
        pen.write(area.x, y, line, Style::new());
    }
}
