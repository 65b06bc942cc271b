// SPDX-License-Identifier: Apache-2.0
// Health: the ledger as a flow diagram from packets seen to records written, and every counter that
// indicates a loss.

import type { LedgerFile } from "../api";
import { sankey, type Link } from "../charts";
import type { Context } from "../context";
import { h, token } from "../dom";
import { exact } from "../format";
import { asLedger, liveVerdict, losses, verdictOf, type Verdict } from "../ledger";
import { panel } from "../panel";
import { livePanel } from "./overview";

type Ledger = Record<string, any>;

const count = (ledger: Ledger, name: string): number => Number(ledger[name] ?? 0);

export async function health(context: Context): Promise<HTMLElement> {
  const { found, without } = context.ledgers;
  const known = found.filter((file) => !file.error);
  const page = h(
    "div",
    { class: "page" },
    context.files.live ? livePanel(context) : null,
    context.files.live ? liveLedger(context, context.files.live) : null,
    context.files.damages.length ? panel({ title: "Cut files", class: "wide", id: "panel-cut", note: "their whole records are shown" }, context.files.damages.map((text) => h("p", { class: "problem" }, text))) : null,
    known.map((file) => ledgerPanel(context, file, verdictOf(file), "Ledger")),
    found.filter((file) => file.error).map((file) => panel({ title: file.name, class: "wide" }, h("p", { class: "problem" }, file.error))),
    !known.length && !context.files.live
      ? panel({ title: "No ledger", class: "wide", id: "panel-no-ledger" }, h("p", { class: "empty" }, "A ledger says where every packet went. `turboflow record -r FILE -w FLOWS --ledger FLOWS.json` writes one beside the records, and this page finds it there."))
      : null,
    known.length && without.files
      ? panel({ title: "Records without a ledger", class: "wide", id: "panel-without" }, h("p", { class: "problem" }, `No ledger names ${exact(without.files)} of ${exact(context.files.files.length)} files, so whether their records are complete is not known.`), h("ul", { class: "files" }, without.names.map((name) => h("li", {}, h("code", {}, name)))))
      : null,
    filesPanel(context),
  );
  return page;
}

/** The ledger of a running program, redrawn with every sample. */
function liveLedger(context: Context, name: string): HTMLElement {
  const box = h("div", { class: "stack", id: "live-now" });
  let leaving: (() => void)[] = [];
  const leave = () => leaving.splice(0).forEach((each) => each());
  const draw = () => {
    const last = context.samples.at(-1);
    if (!last) return;
    leave();
    if (!last.counters) {
      box.replaceChildren(panel({ title: "The running program", note: name, class: "wide" }, h("p", { class: "problem" }, `It is not reached: ${last.error ?? "no answer"}.`)));
      return;
    }
    const its = { ...context, onLeave: (listener: () => void) => leaving.push(listener) };
    box.replaceChildren(ledgerPanel(its, { name, ledger: asLedger(last.counters) }, liveVerdict(last), "The running program"));
  };
  draw();
  context.onSample(draw);
  context.onLeave(leave);
  return box;
}

function ledgerPanel(context: Context, file: LedgerFile, mark: Verdict, title: string): HTMLElement {
  const { ledger } = file;
  return panel(
    { title, note: file.name, class: "wide", tools: h("span", { class: `badge is-${mark.kind}` }, mark.text) },
    h("p", { class: `verdict is-${mark.kind}` }, mark.more),
    drawing(context, ledger),
    h("div", { class: "columns" }, packetsTable(ledger), flowsTable(ledger), outputsTable(ledger), runTable(ledger)),
  );
}

/** Where packets went, by name; reasons are listed below their classes. */
function places(ledger: Ledger): [string, number, string][] {
  return [
    ["in flow records", count(ledger, "packets_recorded"), "--good"],
    ["in open flows", count(ledger, "packets_resident"), "--series-1"],
    ["not IP", count(ledger, "packets_non_ip"), "--series-other"],
    ["malformed", count(ledger, "packets_malformed"), "--warn"],
    ["cut before their headers end", count(ledger, "packets_truncated"), "--warn"],
    ["left out by the filter", count(ledger, "packets_filtered"), "--series-other"],
    ["unknown link type", count(ledger, "packets_unknown_link_type"), "--warn"],
  ];
}

function drawing(context: Context, ledger: Ledger): HTMLElement | null {
  const [seen, received, dropped] = ["seen", "metered", "dropped by the kernel"];
  const links: Link[] = [];
  const colours: Record<string, string> = { [seen]: token("--series-1"), [received]: token("--series-1"), [dropped]: token("--bad") };
  const add = (source: string, target: string, value: number, colour?: string) => {
    if (!value) return;
    links.push({ source, target, value, text: `${exact(value)} packets` });
    if (colour) colours[target] = token(colour);
  };
  const drops = count(ledger, "source_dropped");
  if (drops || count(ledger, "source_unread")) {
    add(seen, received, count(ledger, "packets_received"));
    add(seen, dropped, drops, "--bad");
    add(seen, "not read yet", count(ledger, "source_unread"), "--warn");
  }
  for (const [name, value, colour] of places(ledger)) add(received, name, value, colour);
  const classes: Record<string, string> = { non_ip: "not IP", malformed: "malformed", truncated: "cut before their headers end" };
  for (const reason of ledger.rejected ?? []) {
    const source = classes[reason.class];
    if (source) add(source, String(reason.reason).replaceAll("_", " "), Number(reason.packets), "--series-other");
  }
  if (!links.length) return null;
  const nodes = [...new Set(links.flatMap((link) => [link.source, link.target]))];
  return sankey("Where every packet went", nodes, links, context.onLeave, undefined, colours);
}

function table(title: string, rows: [string, string, boolean?][]): HTMLElement | null {
  if (!rows.length) return null;
  return h("div", { class: "counters" }, h("h3", {}, title), h("table", {}, h("tbody", {}, rows.map(([name, value, isBad]) => h("tr", { class: isBad ? "is-bad" : "" }, h("th", { scope: "row" }, name), h("td", { class: "right num" }, value))))));
}

function packetsTable(ledger: Ledger): HTMLElement | null {
  const rows: [string, string, boolean?][] = [["received", exact(count(ledger, "packets_received"))]];
  for (const [name, value] of places(ledger)) if (value || name === "in flow records") rows.push([name, exact(value)]);
  for (const [name, value] of losses(ledger)) rows.push([name, exact(value), true]);
  return table("Packets", rows);
}

function flowsTable(ledger: Ledger): HTMLElement | null {
  const ends = Object.entries(ledger.flows_exported ?? {}).filter(([, value]) => value);
  const rows: [string, string, boolean?][] = [["opened", exact(count(ledger, "flows_opened"))], ["at the peak", exact(count(ledger, "flows_peak"))]];
  for (const [name, value] of ends) rows.push([`ended: ${name.replaceAll("_", " ")}`, exact(value as number), name === "lack_of_resources"]);
  rows.push(["records written", exact(count(ledger, "records_written"))]);
  return table("Flows", rows);
}

function outputsTable(ledger: Ledger): HTMLElement | null {
  const outputs = (ledger.outputs ?? []) as Record<string, any>[];
  return table("Outputs", outputs.flatMap((output): [string, string, boolean?][] => [[String(output.name), `${exact(Number(output.records))} records`, Boolean(output.error)], ...(output.error ? [[String(output.error), "", true] as [string, string, boolean]] : [])]));
}

function runTable(ledger: Ledger): HTMLElement | null {
  const rows: [string, string, boolean?][] = [];
  if (ledger.version) rows.push(["version", String(ledger.version)]);
  if (ledger.files?.length) rows.push(["captures", ledger.files.length > 3 ? exact(ledger.files.length) : ledger.files.join(", ")]);
  for (const one of ledger.interfaces ?? []) rows.push([`interface ${one.name}`, `${exact(one.packets_seen)} seen`], ...(one.packets_dropped ? [[`interface ${one.name}`, `${exact(one.packets_dropped)} dropped`, true] as [string, string, boolean]] : []));
  if (ledger.filter) rows.push(["filter", String(ledger.filter)]);
  if (ledger.clock_steps) rows.push(["clock steps", exact(count(ledger, "clock_steps"))]);
  for (const text of ledger.imbalances ?? []) if (text) rows.push([String(text), "", true]);
  return table("The run", rows);
}

function filesPanel(context: Context): HTMLElement {
  const { files } = context.files;
  return panel(
    { title: "Files", class: "wide", note: `${exact(files.length)} read, ${exact(files.reduce((sum, file) => sum + file.bytes, 0))} bytes · TurboFlow ${context.files.version}` },
    h("ul", { class: "files" }, files.slice(0, 50).map((file) => h("li", {}, h("code", {}, file.name), h("span", { class: "muted" }, ` ${exact(file.bytes)} bytes`)))),
    files.length > 50 ? h("p", { class: "more" }, `${exact(files.length - 50)} more`) : null,
    context.files.notes.map((note) => h("p", { class: "muted" }, note)),
  );
}
