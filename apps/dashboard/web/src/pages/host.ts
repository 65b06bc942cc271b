// SPDX-License-Identifier: Apache-2.0
// Host: an address with its peers and ports, over time, in both directions.

import type { Answer, Panel, Series } from "../api";
import type { Context } from "../context";
import { ask, has, isBiflow, refine } from "../context";
import { h } from "../dom";
import { exact } from "../format";
import { panel, tile } from "../panel";
import { seriesPlot } from "../plot";
import { with_ } from "../state";
import { at, topTable } from "../table";
import { chooseTime } from "./overview";

export async function host(context: Context): Promise<HTMLElement> {
  if (!has(context, "src_addr", "dst_addr")) return h("div", { class: "page" }, panel({ title: "Host", class: "wide" }, h("p", { class: "empty" }, "These records have no addresses.")));
  const name = context.state.host.trim();
  return h("div", { class: "page" }, chooser(context, name), name ? await about(context, name) : await largest(context));
}

function chooser(context: Context, name: string): HTMLElement {
  const input = h("input", { type: "text", id: "host", value: name, placeholder: "192.0.2.10 or 2001:db8::1", spellcheck: "false", autocomplete: "off" });
  return h(
    "section",
    { class: "panel wide controls" },
    h("form", { class: "control", onsubmit: (event: Event) => { event.preventDefault(); context.go({ host: input.value.trim() }); } }, h("label", { class: "control-name", for: "host" }, "Address"), input, h("button", { type: "submit", class: "small" }, "Show")),
  );
}

async function largest(context: Context): Promise<HTMLElement> {
  const [answer] = (await ask(context, [{ group_by: "host", by: context.state.unit, top: 20 }])) as Answer[];
  return panel({ title: "The largest hosts", note: "↗ shows all about one", answer, class: "wide" }, answer.error ? null : topTable(context, answer, { caption: "The largest hosts", columns: ["bytes", "packets", "records"] }));
}

/** Titles of the tables and plots of a host. A biflow contains both directions. */
const TITLES = {
  flows: { out: "Sent", in: "Received", to: "Sent to", from: "Received from", asks: "Ports it sent to", offers: "Its ports" },
  biflows: { out: "Connections that it opened", in: "Connections that others opened", to: "Peers that it asked", from: "Peers that asked it", asks: "Services that it used", offers: "Services that others asked it for" },
};
const NOTES = {
  flows: { to: "by destination", from: "by source", asks: "services that it uses, and answers", offers: "what others sent to" },
  biflows: { to: "both directions", from: "both directions", asks: "both directions", offers: "both directions" },
};

async function about(context: Context, name: string): Promise<HTMLElement> {
  const unit = context.state.unit;
  const [out, into] = [`src_addr == ${name}`, `dst_addr == ${name}`];
  const hasTimes = Boolean(context.files.first_ns);
  const kind = isBiflow(context) ? "biflows" : "flows";
  const [title, note] = [TITLES[kind], NOTES[kind]];
  const sums = ["packets", "bytes", "reverse_packets", "reverse_bytes"].filter((name) => has(context, name)).join(",");
  const panels: Panel[] = [
    { where: out, group_by: "dst_addr", by: unit, top: 10 },
    { where: into, group_by: "src_addr", by: unit, top: 10 },
    { where: out, group_by: "protocol,dst_port", by: unit, top: 10 },
    { where: into, group_by: "protocol,dst_port", by: unit, top: 10 },
    // Sums in a single row, for each direction separately.
    { where: out, group_by: "src_addr", by: "records", select: sums, top: 1 },
    { where: into, group_by: "dst_addr", by: "records", select: sums, top: 1 },
  ];
  if (has(context, "application")) panels.push({ where: `host ${name}`, group_by: "application", by: unit, top: 10 });
  if (hasTimes) panels.push({ kind: "series", where: out, group_by: "protocol", by: unit, top: 5 }, { kind: "series", where: into, group_by: "protocol", by: unit, top: 5 });
  const answers = await ask(context, panels);
  const [to, from, asks, offers, asSource, asDestination] = answers as Answer[];
  const wrong = [to, from, asSource, asDestination].find((answer) => answer.error);
  if (wrong) return panel({ title: name, answer: wrong, class: "wide" });
  const times = hasTimes ? (answers.slice(-2) as Series[]) : [];
  const applications = has(context, "application") ? (answers[6] as Answer) : null;
  const sum = (what: string): { sent: string; received: string } => ({
    sent: exact(added(asSource, what, asDestination, `reverse_${what}`)),
    received: exact(added(asDestination, what, asSource, `reverse_${what}`)),
  });
  const [bytes, packets] = [sum("bytes"), sum("packets")];
  const table = (title: string, answer: Answer, note: string) => panel({ title, note, answer }, answer.error ? null : topTable(context, answer, { caption: title }));
  const plot = (title: string, series: Series) =>
    panel({ title, answer: series }, series.error ? null : seriesPlot(series, { kind: "area", height: 180, label: `${title} over time`, onRange: (first, last) => chooseTime(context, first, last), onLine: (condition) => refine(context, condition), onLeave: context.onLeave }));
  return h(
    "div",
    { class: "stack" },
    h(
      "section",
      { class: "tiles", "aria-label": `In all, ${name}` },
      tile("Bytes sent", bytes.sent, "", `${packets.sent} packets`, "host-sent"),
      tile("Bytes received", bytes.received, "", `${packets.received} packets`, "host-received"),
      tile(title.to, exact(to.totals.rows), "", "peers"),
      tile(title.from, exact(from.totals.rows), "", "peers"),
      tile("Flows from it", exact(to.totals.matched.records), "", "records", "host-out"),
      tile("Flows to it", exact(from.totals.matched.records), "", "records", "host-in"),
      h("div", { class: "tile" }, h("span", { class: "tile-name" }, "All its flows"), h("button", { type: "button", class: "small", onclick: () => context.go({ page: "flows", where: with_(context.state.where, `host ${name}`) }) }, "Show flows")),
    ),
    h("div", { class: "grid" }, times.length ? [plot(title.out, times[0]), plot(title.in, times[1])] : null, table(title.to, to, note.to), table(title.from, from, note.from), table(title.asks, asks, note.asks), table(title.offers, offers, note.offers), applications ? table("Applications", applications, "both directions") : null),
  );
}

/** The sum of a column of one answer and a column of another, each with at most one row. */
function added(one: Answer, column: string, other: Answer, its: string): string {
  const of = (answer: Answer, name: string): bigint => {
    const [row, place] = [answer.rows[0], at(answer, name)];
    return row && place >= 0 && row[place] !== null ? BigInt(row[place] as number | string) : 0n;
  };
  return String(of(one, column) + of(other, its));
}
