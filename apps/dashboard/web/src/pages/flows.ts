// SPDX-License-Identifier: Apache-2.0
// Flows: all records in a table that draws only the visible rows, and one flow with all its
// features.

import type { Answer, Series } from "../api";
import { report } from "../api";
import type { Context } from "../context";
import { ask, has } from "../context";
import { h } from "../dom";
import { exact, label, timeOfNs } from "../format";
import { panel } from "../panel";
import { seriesPlot } from "../plot";
import { at, cellText, virtualTable } from "../table";
import { chooseTime } from "./overview";

const KEY = ["src_addr", "src_port", "dst_addr", "dst_port", "protocol"];
const FIRST = ["first_ns", "last_ns", "src_addr", "src_port", "dst_addr", "dst_port", "protocol", "application", "packets", "bytes", "reverse_packets", "reverse_bytes", "tcp_flags", "end_reason", "exporter"];
const MOST = 5000;

/** The condition that selects the flow of a record: its key. */
function conditionOfRecord(answer: Answer, row: number): string {
  const parts = KEY.filter((name) => at(answer, name) >= 0).map((name) => {
    const value = answer.rows[row][at(answer, name)];
    return `${name} == ${value ?? "none"}`;
  });
  const exporter = at(answer, "exporter");
  if (exporter >= 0 && typeof answer.rows[row][exporter] === "string") parts.push(`exporter == "${answer.rows[row][exporter]}"`);
  return parts.join(" and ");
}

/** The time of a record's first packet, in ns; empty if records have none. */
function firstOf(answer: Answer, row: number): string {
  const first = at(answer, "first_ns");
  return first < 0 ? "" : String(answer.rows[row][first] ?? "");
}

export async function flows(context: Context): Promise<HTMLElement> {
  if (context.state.flow) return oneFlow(context, context.state.flow);
  const { state } = context;
  const sort = state.sort || (state.unit === "records" ? "bytes" : state.unit);
  const ascending = state.order === "up";
  const isField = context.fields.some((field) => field.name === sort);
  const answer = (report ? report.answers.flows : (await ask(context, [{ kind: "records", top: MOST, by: isField ? sort : undefined, ascending }]))[0]) as Answer;
  const shown = answer.error ? [] : columnsOf(answer);
  const matched = answer.error ? 0 : answer.totals.matched.records;
  const note = matched > MOST ? `the first ${exact(answer.rows.length)} of ${exact(matched)} by ${label(sort)}; a filter shows others` : `${exact(matched)} records`;
  const onSort = (column: string) => context.go({ sort: column, order: column === sort && !ascending ? "up" : "" });
  return h(
    "div",
    { class: "page" },
    panel(
      { title: "Flow records", note, answer, class: "wide", id: "panel-flows" },
      answer.error
        ? null
        : virtualTable(answer, { caption: "Flow records", sort, ascending, columns: shown, onSort: report ? undefined : onSort, onRow: report ? undefined : (row) => context.go({ flow: conditionOfRecord(answer, row), record: firstOf(answer, row) }) }),
    ),
  );
}

/** The columns of the table: the most important ones, then those that the definition added. */
function columnsOf(answer: Answer): number[] {
  const first = FIRST.map((name) => at(answer, name)).filter((column) => column >= 0);
  const rest = answer.columns.map((_, column) => column).filter((column) => !first.includes(column) && answer.columns[column].show !== "list");
  return [...first, ...rest].slice(0, 16);
}

async function oneFlow(context: Context, flow: string): Promise<HTMLElement> {
  const other = flow
    .replace(/\bsrc_/g, "\0")
    .replace(/\bdst_/g, "src_")
    .replaceAll("\0", "dst_");
  const isPair = has(context, ...KEY) && !has(context, "reverse_packets");
  const panels = [
    { kind: "records" as const, where: flow, top: 500, by: has(context, "first_ns") ? "first_ns" : undefined, ascending: true },
    ...(has(context, "first_ns", "last_ns") ? [{ kind: "series" as const, where: flow, by: context.state.unit, points: 120 }] : []),
    ...(isPair ? [{ kind: "records" as const, where: other, top: 20 }] : []),
  ];
  const answers = await ask(context, panels);
  const answer = answers[0] as Answer;
  const series = panels[1]?.kind === "series" ? (answers[1] as Series) : null;
  const back = isPair ? (answers.at(-1) as Answer) : null;
  const leave = h("button", { type: "button", class: "small", onclick: () => context.go({ flow: "" }) }, "← All flows");
  if (answer.error || !answer.rows.length) return h("div", { class: "page" }, panel({ title: "One flow", answer, class: "wide", tools: leave }, h("p", { class: "empty" }, "No record of this flow matches.")));
  const text = (name: string) => (at(answer, name) < 0 ? "" : cellText(answer, 0, at(answer, name)).text);
  const chosen = Math.max(0, answer.rows.findIndex((_, row) => firstOf(answer, row) === context.state.record));
  const title = has(context, "src_addr") ? `${text("src_addr")} : ${text("src_port")} → ${text("dst_addr")} : ${text("dst_port")}` : "One flow";
  return h(
    "div",
    { class: "page" },
    panel(
      { title, note: `${text("protocol")} · ${exact(answer.totals.matched.records)} record${answer.totals.matched.records === 1 ? "" : "s"} · ${exact(answer.totals.matched.packets)} packets · ${exact(answer.totals.matched.bytes)} bytes`, answer, class: "wide", tools: leave, id: "panel-flow" },
      answer.rows.length > 1 ? recordsOf(answer, { chosen, onRow: (row) => context.go({ record: firstOf(answer, row) }, true) }) : null,
      answer.rows.length > 1 ? h("h3", { class: "record" }, `Record ${exact(chosen + 1)} of ${exact(answer.rows.length)}`) : null,
      features(answer, chosen),
    ),
    series && !series.error ? panel({ title: "Over time", answer: series, class: "wide" }, seriesPlot(series, { kind: "area", height: 180, label: "This flow over time", onRange: (from, to) => chooseTime(context, from, to), onLeave: context.onLeave })) : null,
    back && !back.error && back.rows.length ? panel({ title: "The other direction", note: `${exact(back.totals.matched.packets)} packets · ${exact(back.totals.matched.bytes)} bytes`, answer: back, class: "wide" }, recordsOf(back)) : null,
  );
}

function recordsOf(answer: Answer, options: { chosen?: number; onRow?: (row: number) => void } = {}): HTMLElement {
  const columns = columnsOf(answer).filter((column) => !KEY.includes(answer.columns[column].name));
  return virtualTable(answer, { caption: "Records of this flow", sort: "", ascending: true, columns, ...options });
}

/** All features of a record, with their exact values. */
function features(answer: Answer, row: number): HTMLElement {
  const entries = answer.columns.map((column, index) => {
    const value = answer.rows[row][index];
    const { text } = cellText(answer, row, index);
    const all = column.show === "time" && value !== null ? `${timeOfNs(String(value))} UTC` : Array.isArray(value) ? value.join(", ") || "–" : text;
    const more = (column.show === "count" || column.show === "bytes") && value !== null && exact(value as number) !== text ? exact(value as number) : "";
    return h("div", { class: "feature" }, h("dt", {}, label(column.name)), h("dd", {}, value === null ? "–" : all, more ? h("span", { class: "muted" }, ` (${more})`) : null));
  });
  return h("dl", { class: "features" }, entries);
}
