// SPDX-License-Identifier: Apache-2.0
// Network: flows that several exporters saw: their path, by TTL, and what got lost between two.

import type { Answer } from "../api";
import { sankey, type Link } from "../charts";
import type { Context } from "../context";
import { ask, has, measureName } from "../context";
import { h } from "../dom";
import { exact, short } from "../format";
import { panel } from "../panel";
import { at, topTable } from "../table";

const KEY = ["src_addr", "dst_addr", "src_port", "dst_port", "protocol"];
const MOST = 4000;

interface Place {
  exporter: string;
  packets: number;
  bytes: number;
  ttl: number | null;
}

export async function network(context: Context): Promise<HTMLElement> {
  if (!has(context, "exporter", ...KEY)) {
    const why = "These records do not say which exporter saw them. Record at each place with --identity --exporter NAME, and give this page the files of all places.";
    return h("div", { class: "page" }, panel({ title: "Network", class: "wide" }, h("p", { class: "empty" }, why)));
  }
  const ttl = ["max_ttl", "ttl", "min_ttl", "first_ttl"].find((name) => has(context, name));
  const keys = KEY.join(",");
  const [exporters, pairs] = (await ask(context, [
    { group_by: "exporter", by: context.state.unit, top: 50 },
    { group_by: `${keys},exporter`, by: "packets", top: MOST, select: [...["packets", "bytes"].map((unit) => measureName(context, unit)), ttl ? `max(${ttl})` : ""].filter(Boolean).join(",") },
  ])) as Answer[];
  const { paths, links, seen } = pairs.error ? { paths: [], links: new Map<string, LinkLoss>(), seen: 0 } : pathsOf(pairs, Boolean(ttl));
  return h(
    "div",
    { class: "page" },
    panel({ title: "Exporters", answer: exporters, class: "wide", note: "a packet that several saw counts at each" }, exporters.error ? null : topTable(context, exporters, { caption: "Exporters", columns: ["bytes", "packets", "records"] })),
    panel(
      { title: "Paths", class: "wide", note: ttl ? "in the order of falling TTL" : "these records have no TTL: exporters in the order of their names", answer: pairs },
      paths.length ? sankey("Packets from exporter to exporter", [...new Set(paths.flatMap((link) => [link.source, link.target]))], paths, context.onLeave) : h("p", { class: "empty" }, "No flow was seen by more than one exporter."),
    ),
    links.size
      ? panel(
          { title: "Between two exporters", class: "wide", note: `${exact(seen)} flows that both saw${pairs.totals.rows > pairs.rows.length ? `, among the ${exact(pairs.rows.length)} largest of ${exact(pairs.totals.rows)}` : ""}` },
          lossTable(links),
        )
      : null,
  );
}

interface LinkLoss {
  from: string;
  to: string;
  flows: number;
  before: number;
  behind: number;
}

function pathsOf(answer: Answer, hasTtl: boolean): { paths: Link[]; links: Map<string, LinkLoss>; seen: number } {
  const exporter = KEY.length;
  const [packets, bytes] = [at(answer, "packets") >= 0 ? at(answer, "packets") : at(answer, "total_packets"), at(answer, "bytes") >= 0 ? at(answer, "bytes") : at(answer, "total_bytes")];
  const ttl = hasTtl ? answer.columns.length - 1 : -1;
  const flows = new Map<string, Place[]>();
  answer.rows.forEach((row, index) => {
    const key = row.slice(0, KEY.length).join(" ");
    const place = { exporter: answer.texts[index][exporter], packets: Number(row[packets] ?? 0), bytes: Number(row[bytes] ?? 0), ttl: ttl >= 0 && row[ttl] !== null ? Number(row[ttl]) : null };
    flows.set(key, [...(flows.get(key) ?? []), place]);
  });
  const links = new Map<string, LinkLoss>();
  let seen = 0;
  for (const places of flows.values()) {
    if (places.length < 2) continue;
    seen += 1;
    places.sort((a, b) => (b.ttl ?? 0) - (a.ttl ?? 0) || a.exporter.localeCompare(b.exporter));
    for (let hop = 1; hop < places.length; hop += 1) {
      const [from, to] = [places[hop - 1], places[hop]];
      const name = `${from.exporter} ${to.exporter}`;
      const link = links.get(name) ?? { from: from.exporter, to: to.exporter, flows: 0, before: 0, behind: 0 };
      link.flows += 1;
      link.before += from.packets;
      link.behind += to.packets;
      links.set(name, link);
    }
  }
  const paths = [...links.values()].map((link) => ({ source: link.from, target: link.to, value: link.behind, text: `${short(link.behind, "packets")}, ${exact(Math.max(0, link.before - link.behind))} lost` }));
  // What goes round has no order: a Sankey cannot draw it.
  const isForward = (link: Link) => !links.has(`${link.target} ${link.source}`) || link.source < link.target;
  return { paths: paths.filter((link) => link.source !== link.target && isForward(link)), links, seen };
}

function lossTable(links: Map<string, LinkLoss>): HTMLElement {
  const rows = [...links.values()].sort((a, b) => b.before - b.behind - (a.before - a.behind));
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
