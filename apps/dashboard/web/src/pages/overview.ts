// SPDX-License-Identifier: Apache-2.0
// Overview: how much traffic, which hosts and services, since when, and whether the numbers are
// complete.

import type { Answer, Panel, Sample, Series } from "../api";
import { report } from "../api";
import type { Context } from "../context";
import { ask, has, isBiflow, isPart, measureName, refine } from "../context";
import { h } from "../dom";
import { chosenMs, duration, exact, label, short, toMs } from "../format";
import { liveVerdict, verdictOn } from "../ledger";
import { chips, commandBox, panel, tile } from "../panel";
import NAMED from "../panels.json";
import { seriesPlot, spark } from "../plot";
import { at, topTable } from "../table";

interface Named {
  id: string;
  needs: string[];
  panel: Panel;
}

const TITLES: Record<string, string> = {
  hosts: "Hosts",
  ports: "Services",
  applications: "Applications",
  conversations: "Conversations",
  sites: "Sites",
  countries: "Countries",
  systems: "Autonomous systems",
  ends: "Why records ended",
  exporters: "Exporters",
};

const NOTES: Record<string, string> = {
  hosts: "sent and received",
  ports: "by protocol and destination port",
  conversations: "one direction each",
  sites: "from one to another",
  countries: "from one to another",
  systems: "from one to another",
};

export async function overview(context: Context): Promise<HTMLElement> {
  const { state } = context;
  const wanted = (NAMED as Named[]).filter(({ id, needs }) => id !== "flows" && needs.every((name) => has(context, name) || has(context, `total_${name}`)));
  const key = stackKey(context);
  const panels = wanted.map(({ id, panel }): Panel => {
    const by = id === "ends" ? "records" : state.unit;
    return { ...panel, by, group_by: id === "time" ? key : panel.group_by, compare: state.compare === "1" && Boolean(state.from || state.to) };
  });
  const asksPart = isPart(context) && has(context, "first_ns");
  // All records of the chosen time in a single group, which counts only the part of each within
  // that time.
  const amounts = ["packets", "bytes"].filter((name) => has(context, name)).map((name) => measureName(context, name));
  if (asksPart && amounts.length) panels.push({ kind: "groups", group_by: "first_ns:36500d", by: "records", select: amounts.join(","), top: 1000 });
  const answers = (report ? wanted.map(({ id }) => report!.answers[id]) : await ask(context, panels)) as (Answer | Series)[];
  const of = (id: string) => {
    const place = wanted.findIndex((panel) => panel.id === id);
    return place < 0 ? undefined : answers[place];
  };
  const time = of("time") as Series | undefined;
  const hosts = of("hosts") as Answer | undefined;
  const exporters = of("exporters") as Answer | undefined;
  const several = exporters && !exporters.error && exporters.totals.rows > 1 ? exporters.totals.rows : 0;
  const whole = answers.slice(0, wanted.length).filter((answer) => answer && !answer.error);
  // A series covers whole buckets; an answer by groups covers exactly the chosen time.
  const first = whole.find((answer) => answer && "totals" in answer) ?? whole[0];
  const within = asksPart && amounts.length ? (answers.at(-1) as Answer) : undefined;
  return h(
    "div",
    { class: "page" },
    first ? tiles(context, first, time, hosts, within) : null,
    within && !within.error ? commandBox([within.command]) : null,
    several ? h("p", { class: "muted" }, `${exact(several)} exporters: what two of them saw counts twice in all sums; choose one below. Network tells them apart.`) : null,
    context.files.live ? livePanel(context) : null,
    time ? stack(context, time, key) : null,
    h(
      "div",
      { class: "grid" },
      ["hosts", "ports", "applications", "conversations", "sites", "countries", "systems", "exporters", "ends"].map((id) => {
        const answer = of(id) as Answer | undefined;
        if (!answer) return null;
        return panel({ title: TITLES[id], note: id === "conversations" && isBiflow(context) ? "both directions" : NOTES[id], answer, id: `panel-${id}` }, answer.error ? null : topTable(context, answer, { caption: TITLES[id] }));
      }),
    ),
  );
}

/** The sum within the chosen time, which counts only the part of each record; NaN if unknown. */
function sumWithin(answer: Answer | undefined, unit: string): number {
  if (!answer || answer.error) return NaN;
  const column = Math.max(at(answer, `total_${unit}`), at(answer, unit));
  return column < 0 ? NaN : answer.rows.reduce((sum, row) => sum + Number(row[column] ?? 0), 0);
}

function tiles(context: Context, any: Answer | Series, time: Series | undefined, hosts: Answer | undefined, within: Answer | undefined): HTMLElement {
  const matched = "totals" in any ? any.totals.matched : any.matched;
  const { first_ns: first, last_ns: last } = context.files;
  const from = chosenMs(context.state.from) ?? (first ? toMs(first) : NaN);
  const to = chosenMs(context.state.to) ?? (last ? toMs(last) : NaN);
  const seconds = (to - from) / 1000;
  // For a chosen time, packets and bytes are those within it, not those of whole flows.
  const isOfPart = isPart(context);
  const amount = (name: string, unit: "packets" | "bytes", of: string) => {
    const sum = isOfPart ? sumWithin(within, unit) : Number(matched[unit] ?? 0);
    if (!Number.isFinite(sum)) return tile(name, "–", "", within?.error?.reason ?? "not known of a part of time", `tile-${unit}`);
    const rate = (sum * (unit === "bytes" ? 8 : 1)) / seconds;
    const average = Number.isFinite(rate) && seconds > 0 ? `${short(rate, of)} on average` : "";
    return tile(name, exact(sum), "", average, `tile-${unit}`);
  };
  const mark = verdictOn(context.ledgers, context.files, context.samples.at(-1));
  return h(
    "section",
    { class: "tiles", "aria-label": "In all" },
    tile("Flows", exact(matched.records), "", isOfPart ? "with packets in this time" : "records", "tile-records"),
    amount("Packets", "packets", "packets/s"),
    amount("Bytes", "bytes", "bit/s"),
    hosts && !hosts.error ? tile("Hosts", exact(hosts.totals.rows), "", "sent or received", "tile-hosts") : null,
    time && !time.error && Number.isFinite(seconds) ? tile("Time", duration(seconds * 1000), "", `${time.width} per step`, "tile-time") : null,
    tile("Ledger", mark.text, "", h("span", { class: `dot is-${mark.kind}` }, mark.kind === "complete" ? "every packet seen is accounted for" : mark.kind === "lost" || context.ledgers.found.length ? "see Health" : "record with --ledger"), "tile-ledger"),
  );
}

/** The field by which the stacked plot is divided. */
function stackKey(context: Context): string {
  const wanted = context.state.by;
  const known = stackKeys(context).some(([name]) => name === wanted);
  return known ? wanted : (stackKeys(context)[0]?.[0] ?? "protocol");
}

function stackKeys(context: Context): [string, string][] {
  const names = ["application", "protocol", "dst_port", "src_addr", "dst_addr", "src_site", "dst_site", "src_country", "dst_country", "dst_as_name", "exporter", "end_reason"];
  const found = names.filter((name) => has(context, name)).map((name): [string, string] => [name, label(name)]);
  return found.sort(([a], [b]) => (a === "protocol" ? -1 : b === "protocol" ? 1 : 0));
}

function stack(context: Context, series: Series, key: string): HTMLElement {
  const tools = report ? null : chips("Stacked by", stackKeys(context), key, (by) => context.go({ by }));
  const title = `${context.state.unit === "records" ? "Flows begun" : "Traffic"} over time`;
  return panel(
    { title, answer: series, tools, class: "wide", id: "panel-time" },
    series.error ? null : seriesPlot(series, { kind: "area", height: 260, label: `${title} by ${label(key)}, the largest and the rest`, onRange: report ? undefined : (from, to) => chooseTime(context, from, to), onLine: (condition) => refine(context, condition), onLeave: context.onLeave }),
  );
}

/** Selects the range of time that was marked in a plot, in whole milliseconds. */
export function chooseTime(context: Context, from: number, to: number): void {
  const text = (ms: number) => new Date(ms).toISOString();
  context.go({ from: text(Math.floor(from)), to: text(Math.max(Math.ceil(to), Math.floor(from) + 1)) });
}

/** The rates of a running program, updated every second. */
export function livePanel(context: Context): HTMLElement {
  const body = h("div", { class: "tiles live", "aria-live": "off" });
  const draw = () => {
    const samples = context.samples;
    const last = samples.at(-1);
    body.replaceChildren();
    if (!last) {
      body.append(h("p", { class: "empty" }, `Waiting for ${context.files.live}.`));
      return;
    }
    const mark = liveVerdict(last);
    const rates = (name: string, factor = 1) => ratesOf(samples, name).map((value) => value * factor);
    // Without an answer there is no current rate.
    const of = (title: string, values: number[], unit: string) => tile(title, last.counters && values.length ? short(values.at(-1)!, unit) : "–", "", spark(values.slice(-60)));
    body.append(
      of("Packets now", rates("packets_received_total"), "packets/s"),
      of("Bits now", rates("bytes_received_total", 8), "bit/s"),
      of("Flows open", samples.flatMap((sample) => (sample.counters ? [sample.counters.flows_resident ?? 0] : [])), ""),
      of("Dropped now", rates("source_dropped_total"), "packets/s"),
      tile("Live ledger", mark.text, "", h("span", { class: `dot is-${mark.kind}` }, mark.kind === "complete" ? "every packet seen is accounted for" : mark.more), "live-ledger"),
    );
  };
  draw();
  context.onSample(draw);
  return panel({ title: "Live", note: context.files.live ?? "", class: "wide", id: "panel-live" }, body);
}

/** The increase of a counter from each sample to the next. */
export function ratesOf(samples: Sample[], name: string): number[] {
  const rates: number[] = [];
  for (let at = 1; at < samples.length; at += 1) {
    const [before, now] = [samples[at - 1], samples[at]];
    const gained = (now.counters?.[name] ?? NaN) - (before.counters?.[name] ?? NaN);
    const seconds = Math.max(1, now.number - before.number);
    if (Number.isFinite(gained) && gained >= 0) rates.push(gained / seconds);
  }
  return rates;
}
