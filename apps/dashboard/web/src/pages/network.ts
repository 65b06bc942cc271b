// SPDX-License-Identifier: Apache-2.0
// Network: flows that several exporters saw, with their path by TTL and the losses between hops.

import type { Answer, Links, Series } from "../api";
import { sankey, type Link } from "../charts";
import type { Context } from "../context";
import { ask, has } from "../context";
import { h } from "../dom";
import { exact, label, short } from "../format";
import { panel } from "../panel";
import { seriesPlot } from "../plot";
import { topTable } from "../table";
import { chooseTime } from "./overview";

const KEY = ["src_addr", "dst_addr", "src_port", "dst_port", "protocol"];

export async function network(context: Context): Promise<HTMLElement> {
  if (!has(context, "exporter", ...KEY)) {
    const why = "These records do not say which exporter saw them. Record at each place with --identity --exporter NAME, and give this page the files of all places.";
    return h("div", { class: "page" }, panel({ title: "Network", class: "wide" }, h("p", { class: "empty" }, why)));
  }
  const answers = await ask(context, [{ group_by: "exporter", by: context.state.unit, top: 50 }, { kind: "links" }]);
  const [exporters, found] = [answers[0] as Answer, answers[1] as Links];
  const paths = found.error ? [] : pathsOf(found);
  const order = found.ttl ? `in the order of falling ${label(found.ttl)}` : "these records have no TTL: exporters in the order of their names";
  return h(
    "div",
    { class: "page" },
    panel({ title: "Exporters", answer: exporters, class: "wide", note: "a packet that several saw counts at each" }, exporters.error ? null : topTable(context, exporters, { caption: "Exporters", columns: ["bytes", "packets", "records"] })),
    panel(
      { title: "Paths", class: "wide", note: order, answer: found },
      paths.length ? sankey("Packets from exporter to exporter", [...new Set(paths.flatMap((link) => [link.source, link.target]))], paths, context.onLeave) : h("p", { class: "empty" }, "No flow was seen at more than one hop."),
    ),
    !found.error && found.start_ns && found.links.length ? lossPlot(context, found) : null,
    !found.error && found.links.length
      ? panel({ title: "Between two exporters", class: "wide", id: "panel-links", note: `${exact(found.flows_seen_twice)} of ${exact(found.flows)} flows of one direction were seen at more than one hop`, answer: found }, lossTable(found), aloneOf(found))
      : null,
  );
}

function pathsOf({ links }: Links): Link[] {
  // A cycle has no order in which a Sankey diagram could draw it. Then each hop is drawn to the
  // next.
  const isRound = goesRound(links);
  return links.map((link) => ({
    source: isRound ? `0|${link.from}` : link.from,
    target: isRound ? `1|${link.to}` : link.to,
    value: link.behind,
    text: `${short(link.behind, "packets")}, ${exact(Math.max(0, link.before - link.behind))} lost`,
  }));
}

/** Whether packets can return to a hop along these links. */
function goesRound(links: { from: string; to: string }[]): boolean {
  let left = links;
  for (;;) {
    // A link to a hop from which no link continues is not part of a cycle.
    const on = left.filter((link) => left.some((next) => next.from === link.to));
    if (on.length === left.length) return left.length > 0;
    left = on;
  }
}

/** The share of packets that were lost, over time. */
function lossPlot(context: Context, found: Links): HTMLElement {
  const share = (before: number, behind: number) => (before ? ((before - behind) / before) * 100 : null);
  const series: Series = {
    measure: "% lost",
    show: "float",
    width_ns: found.width_ns!,
    width: found.width!,
    start_ns: found.start_ns!,
    total: found.links[0].before_at.map(() => null),
    series: found.links.map((link) => ({ text: [`${link.from} → ${link.to}`], condition: null, sum: null, values: link.before_at.map((before, place) => share(before, link.behind_at[place])) })),
    commands: found.commands,
    matched: { records: 0, packets: null, bytes: null },
  };
  return panel(
    { title: "Lost over time", class: "wide", id: "panel-lost", note: "share of the packets of flows that began then", answer: found },
    seriesPlot(series, { kind: "lines", height: 200, label: "Share of packets lost from hop to hop over time", onRange: (from, to) => chooseTime(context, from, to), onLeave: context.onLeave }),
  );
}

/** Flows that no row of the table has: on another path, or lost as a whole. */
function aloneOf({ alone }: Links): HTMLElement | null {
  if (!alone.length) return null;
  const each = alone.map((it) => `${it.exporter} ${exact(it.packets)} packet${it.packets === 1 ? "" : "s"}`);
  return h("p", { class: "more", id: "links-alone" }, `Not in this table, because only one exporter saw the flow (another path, or all of its packets lost): ${each.join(", ")}.`);
}

function lossTable({ links }: Links): HTMLElement {
  const rows = [...links].sort((a, b) => b.before - b.behind - (a.before - a.behind));
  return h(
    "div",
    { class: "table-box" },
    h(
      "table",
      { class: "top" },
      h("thead", {}, h("tr", {}, ["from", "to"].map((name) => h("th", { scope: "col" }, name)), ["flows", "packets before", "packets behind", "lost", "share"].map((name) => h("th", { scope: "col", class: "right" }, name)))),
      h(
        "tbody",
        {},
        rows.map((link) => {
          const lost = link.before - link.behind;
          const share = link.before ? `${((lost / link.before) * 100).toFixed(2)} %` : "–";
          return h("tr", {}, h("td", {}, link.from), h("td", {}, link.to), [exact(link.flows), exact(link.before), exact(link.behind), exact(lost), share].map((text) => h("td", { class: "right num" }, text)));
        }),
      ),
    ),
  );
}
