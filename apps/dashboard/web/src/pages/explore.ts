// SPDX-License-Identifier: Apache-2.0
// Explore: any fields, shown as areas, lines, flows between groups, nested groups, a heat map or a
// table.

import type { Answer, Panel, Series } from "../api";
import { heatmap, plainName, sankey, tree, type Branch, type Link } from "../charts";
import type { Context } from "../context";
import { ask, has, refine } from "../context";
import { h, token } from "../dom";
import { exact, label, rateOf, short, timeText, toMs } from "../format";
import { chips, panel } from "../panel";
import { lineName, seriesPlot } from "../plot";
import { at, topTable } from "../table";
import { chooseTime } from "./overview";

const VIEWS: [string, string][] = [
  ["area", "Area"],
  ["lines", "Lines"],
  ["sankey", "Sankey"],
  ["tree", "Tree"],
  ["heatmap", "Heat map"],
  ["table", "Table"],
];

/** Fields that are offered in the list; all others can be typed. */
function offered(context: Context): [string, string][] {
  const names = ["src_addr", "dst_addr", "host", "protocol", "dst_port", "src_port", "application", "server_name", "src_name", "dst_name", "dst_service", "src_site", "dst_site", "src_owner", "dst_owner", "src_country", "dst_country", "src_as_name", "dst_as_name", "exporter", "end_reason", "tcp_flags", "tos"];
  const isKnown = (name: string) => has(context, name) || (name === "host" && has(context, "src_addr", "dst_addr"));
  return [...names.filter(isKnown), ...(has(context, "src_addr") ? ["src_addr/24", "dst_addr/24"] : [])].map((name) => [name, label(name)]);
}

export async function explore(context: Context): Promise<HTMLElement> {
  const { state } = context;
  const keys = (state.by || (has(context, "src_addr") ? "src_addr" : (context.fields.find((field) => field.is_key)?.name ?? ""))).split(",").filter(Boolean);
  const hasTimes = Boolean(context.files.first_ns);
  const view = hasTimes || ["sankey", "tree"].includes(state.view) ? state.view : "table";
  const group_by = keys.join(",");
  const top = Math.max(1, Math.min(50, Number(state.top) || 8));
  // There is no period before all of the time.
  const compare = state.compare === "1" && Boolean(state.from || state.to);
  const groups: Panel = { group_by, by: state.unit, top: Math.max(top, 20), compare };
  const panels: Panel[] = [groups];
  if (["area", "lines", "heatmap"].includes(view)) panels.unshift({ kind: "series", group_by, by: state.unit, top, points: view === "heatmap" ? 48 : 120, compare });
  const answers = await ask(context, panels);
  const table = answers.at(-1) as Answer;
  const series = panels.length > 1 ? (answers[0] as Series) : null;
  const title = `${state.unit === "records" ? "Flows" : label(state.unit)} by ${keys.map(label).join(" and ")}`;
  return h(
    "div",
    { class: "page" },
    controls(context, keys, view),
    series ? panel({ title: title[0].toUpperCase() + title.slice(1), answer: series, class: "wide" }, series.error ? null : drawn(context, series, view)) : null,
    view === "sankey" && !table.error ? panel({ title: title[0].toUpperCase() + title.slice(1), answer: table, class: "wide", note: keys.length > 1 ? noteOf(table, top) : "" }, drawSankey(context, table, top)) : null,
    view === "tree" && !table.error ? panel({ title: title[0].toUpperCase() + title.slice(1), answer: table, class: "wide", note: [noteOf(table, top), keys.length > 1 ? "each field within the one before" : ""].filter(Boolean).join(", ") }, drawTree(context, table, top)) : null,
    panel({ title: "As a table", answer: table, class: "wide", id: "panel-table" }, table.error ? null : topTable(context, table, { columns: ["bytes", "packets", "records"], caption: title })),
  );
}

function controls(context: Context, keys: string[], view: string): HTMLElement {
  const { state } = context;
  const toggle = (name: string) => {
    const next = keys.includes(name) ? keys.filter((key) => key !== name) : [...keys, name];
    context.go({ by: next.join(",") });
  };
  const field = h("input", { type: "text", id: "dimensions", value: keys.join(","), spellcheck: "false", autocomplete: "off", list: "fields" });
  const names = context.fields.filter((known) => known.is_key).map(({ name }) => h("option", { value: name }));
  const select = h(
    "select",
    { id: "top", onchange: (event: Event) => context.go({ top: (event.target as HTMLSelectElement).value }) },
    ["5", "8", "10", "20", "50"].map((count) => h("option", { value: count, selected: count === state.top }, count)),
  );
  return h(
    "section",
    { class: "panel wide controls", "aria-label": "What is shown" },
    h("div", { class: "control" }, h("span", { class: "control-name" }, "Shown as"), chips("Shown as", VIEWS, view, (next) => context.go({ view: next }))),
    h(
      "div",
      { class: "control" },
      h("span", { class: "control-name" }, "Grouped by"),
      h("div", { class: "chips", role: "group", "aria-label": "Grouped by" }, offered(context).map(([name, text]) => h("button", { type: "button", class: "chip", "aria-pressed": String(keys.includes(name)), onclick: () => toggle(name) }, text))),
    ),
    h(
      "form",
      { class: "control", onsubmit: (event: Event) => { event.preventDefault(); context.go({ by: field.value.replaceAll(" ", "") }); } },
      h("label", { class: "control-name", for: "dimensions" }, "Any fields"),
      field,
      h("datalist", { id: "fields" }, names),
      h("button", { type: "submit", class: "small" }, "Show"),
      h("label", { class: "inline", for: "top" }, "Groups"),
      select,
      h("label", { class: "inline" }, h("input", { type: "checkbox", checked: state.compare === "1", onchange: (event: Event) => context.go({ compare: (event.target as HTMLInputElement).checked ? "1" : "" }) }), "Period before"),
    ),
  );
}

function drawn(context: Context, series: Series, view: string): HTMLElement {
  if (!series.series.length) return h("p", { class: "empty" }, "No records match.");
  if (view === "heatmap") return drawHeat(context, series);
  return seriesPlot(series, { kind: view === "lines" ? "lines" : "area", height: 320, label: "The largest groups over time", onRange: (from, to) => chooseTime(context, from, to), onLine: (condition) => refine(context, condition), onLeave: context.onLeave });
}

function drawHeat(context: Context, series: Series): HTMLElement {
  const { unit, factor } = rateOf(series.measure);
  const seconds = Number(BigInt(series.width_ns)) / 1e9;
  const start = toMs(series.start_ns);
  const columns = series.total.map((_, place) => timeText(start + place * seconds * 1000, seconds < 1 ? 1 : 0).slice(11));
  const rows = series.series.map((line) => lineName(line.text));
  const cells = series.series.flatMap((line, row) => line.values.map((value, place): [number, number, number] => [place, row, ((value ?? 0) * factor) / seconds]));
  return heatmap("The largest groups over time, as a heat map", columns, rows, cells, (value) => short(value, unit), context.onLeave, (row) => refine(context, series.series[row].condition));
}

/** The rest beyond the largest groups; 0 if a record counts in two groups. */
function restOf(answer: Answer, top: number): number {
  const by = at(answer, answer.by ?? "");
  const { shares } = answer;
  if (answer.totals.rows <= top || !shares || shares.of !== answer.by || shares.at_both_ends) return 0;
  const whole = Number(shares.whole ?? 0);
  return Math.max(0, answer.rows.slice(0, top).reduce((left, row) => left - Number(row[by] ?? 0), whole));
}

function noteOf(answer: Answer, top: number): string {
  const shown = Math.min(top, answer.rows.length);
  if (!shown) return "";
  if (answer.totals.rows <= top) return shown === 1 ? "the only group" : `all ${exact(shown)} groups`;
  return `the ${exact(shown)} largest of ${exact(answer.totals.rows)} groups${restOf(answer, top) > 0 ? ", the rest as Other" : ""}`;
}

/** Describes in words what is drawn first. */
function named(names: string[], rest: number): string {
  return `${names.slice(0, 6).join(", ")}${rest > 0 ? " and Other" : ""}`;
}

function drawTree(context: Context, answer: Answer, top: number): HTMLElement {
  if (!answer.rows.length) return h("p", { class: "empty" }, "No records match.");
  const keys = answer.keys ?? 1;
  const by = at(answer, answer.by ?? "");
  const unit = answer.by?.endsWith("bytes") ? "B" : (answer.by ?? "");
  const branches: Branch[] = [];
  answer.rows.slice(0, top).forEach((row, index) => {
    const value = Number(row[by] ?? 0);
    const path: string[] = [];
    let level = branches;
    for (let key = 0; key < keys; key += 1) {
      const name = answer.texts[index][key];
      const condition = answer.conditions[index]?.[key];
      if (condition) path.push(condition);
      let branch = level.find((known) => known.name === name);
      if (!branch) {
        branch = { name, value: 0, text: "", condition: path.length === key + 1 ? path.join(" and ") : null };
        level.push(branch);
      }
      branch.value += value;
      branch.text = short(branch.value, unit);
      if (key < keys - 1) level = branch.children ??= [];
    }
  });
  const rest = restOf(answer, top);
  if (rest > 0) branches.push({ name: "Other", value: rest, text: short(rest, unit), condition: null, isRest: true });
  const label = `The largest groups as areas: ${named(branches.filter((branch) => !branch.isRest).map((branch) => branch.name), rest)}`;
  return tree(label, branches, context.onLeave, (condition) => refine(context, condition));
}

function drawSankey(context: Context, answer: Answer, top: number): HTMLElement {
  const keys = answer.keys ?? 1;
  if (keys < 2) return h("p", { class: "empty" }, "Flows between groups need two fields or three: choose another one above.");
  const by = at(answer, answer.by ?? "");
  const links = new Map<string, Link>();
  const nodes = new Set<string>();
  const conditions = new Map<string, string>();
  const unit = answer.by?.endsWith("bytes") ? "B" : (answer.by ?? "");
  answer.rows.slice(0, top).forEach((row, index) => {
    for (let key = 0; key < keys; key += 1) {
      const node = `${key}|${answer.texts[index][key]}`;
      nodes.add(node);
      const condition = answer.conditions[index]?.[key];
      if (condition) conditions.set(node, condition);
      if (!key) continue;
      const source = `${key - 1}|${answer.texts[index][key - 1]}`;
      const name = `${source} ${node}`;
      const old = links.get(name)?.value ?? 0;
      const value = old + Number(row[by] ?? 0);
      links.set(name, { source, target: node, value, text: short(value, unit) });
    }
  });
  const rest = restOf(answer, top);
  const colours: Record<string, string> = {};
  // The key cannot collide with a value named "Other", because it starts with the number of a field
  // that does not exist.
  const other = (key: number) => `${keys + key}|Other`;
  for (let key = 0; rest > 0 && key < keys; key += 1) {
    nodes.add(other(key));
    colours[other(key)] = token("--series-other");
    if (key) links.set(other(key), { source: other(key - 1), target: other(key), value: rest, text: short(rest, unit) });
  }
  const label = `Flows between groups: ${named([...nodes].filter((node) => !(node in colours)).map(plainName), rest)}`;
  return sankey(label, [...nodes], [...links.values()].filter((link) => link.value > 0), context.onLeave, (link, node) => {
    const of = (name: string) => conditions.get(name);
    if (link) refine(context, [of(link.source), of(link.target)].filter(Boolean).join(" and "));
    else if (node) refine(context, of(node));
  }, colours);
}
