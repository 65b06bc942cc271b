// SPDX-License-Identifier: Apache-2.0
// Host: one address, its peers, its ports, over time, in both directions.

import type { Answer, Panel, Series } from "../api";
import type { Context } from "../context";
import { ask, has, refine } from "../context";
import { h } from "../dom";
import { exact } from "../format";
import { panel, tile } from "../panel";
import { seriesPlot } from "../plot";
import { topTable } from "../table";
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

async function about(context: Context, name: string): Promise<HTMLElement> {
  const unit = context.state.unit;
  const [sent, received] = [`src_addr == ${name}`, `dst_addr == ${name}`];
  const hasTimes = Boolean(context.files.first_ns);
  const panels: Panel[] = [
    { where: sent, group_by: "dst_addr", by: unit, top: 10 },
    { where: received, group_by: "src_addr", by: unit, top: 10 },
    { where: sent, group_by: "protocol,dst_port", by: unit, top: 10 },
    { where: received, group_by: "protocol,dst_port", by: unit, top: 10 },
  ];
  if (has(context, "application")) panels.push({ where: `host ${name}`, group_by: "application", by: unit, top: 10 });
  if (hasTimes) panels.push({ kind: "series", where: sent, group_by: "protocol", by: unit, top: 5 }, { kind: "series", where: received, group_by: "protocol", by: unit, top: 5 });
  const answers = await ask(context, panels);
  const [to, from, asks, offers] = answers as Answer[];
  if (to.error) return panel({ title: name, answer: to, class: "wide" });
  const times = hasTimes ? (answers.slice(-2) as Series[]) : [];
  const applications = has(context, "application") ? (answers[4] as Answer) : null;
  const table = (title: string, answer: Answer, note: string) => panel({ title, note, answer }, answer.error ? null : topTable(context, answer, { caption: title }));
  const plot = (title: string, series: Series) =>
    panel({ title, answer: series }, series.error ? null : seriesPlot(series, { kind: "area", height: 180, label: `${title} over time`, onRange: (first, last) => chooseTime(context, first, last), onLine: (condition) => refine(context, condition), onLeave: context.onLeave }));
  return h(
    "div",
    { class: "stack" },
    h(
      "section",
      { class: "tiles", "aria-label": `In all, ${name}` },
      tile("Bytes sent", exact(to.totals.matched.bytes), "", `${exact(to.totals.matched.packets)} packets`, "host-sent"),
      tile("Bytes received", exact(from.totals.matched.bytes), "", `${exact(from.totals.matched.packets)} packets`, "host-received"),
      tile("Peers sent to", exact(to.totals.rows)),
      tile("Peers heard from", exact(from.totals.rows)),
      tile("Flows", exact(to.totals.matched.records + from.totals.matched.records), "", `${exact(to.totals.matched.records)} out, ${exact(from.totals.matched.records)} in`),
      h("div", { class: "tile" }, h("span", { class: "tile-name" }, "All its flows"), h("button", { type: "button", class: "small", onclick: () => context.go({ page: "flows", where: `host ${name}` }) }, "Show flows")),
    ),
    h("div", { class: "grid" }, times.length ? [plot("Sent", times[0]), plot("Received", times[1])] : null, table("Sent to", to, "by destination"), table("Received from", from, "by source"), table("Ports it sent to", asks, "services that it uses, and answers"), table("Its ports", offers, "what others sent to"), applications ? table("Applications", applications, "both directions") : null),
  );
}
