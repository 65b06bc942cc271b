// SPDX-License-Identifier: Apache-2.0
// Tables of answers. Their texts are formatted by the program, as in `turboflow show`.

import type { Answer } from "./api";
import { bar, fill, h } from "./dom";
import { change, exact, label, timeOfNs } from "./format";
import type { Context } from "./context";
import { hostPage, refine } from "./context";
import { report } from "./api";

const RIGHT = new Set(["count", "bytes", "number", "rate", "percent", "float", "duration", "port"]);

export function isRight(show: string): boolean {
  return RIGHT.has(show);
}

/** Index of a column; -1 if there is none. */
export function at(answer: Answer, name: string): number {
  return answer.columns.findIndex((column) => column.name === name);
}

/** The text of a cell, and a tooltip with all digits. */
export function cellText(answer: Answer, row: number, column: number): { text: string; title: string } {
  const { show } = answer.columns[column];
  const value = answer.rows[row][column];
  const text = answer.texts[row][column];
  if (value === null) return { text: "–", title: "" };
  if (show === "time") return { text: timeOfNs(String(value)), title: `${value} ns` };
  if (show === "count" || show === "bytes") return { text, title: exact(value as number | string) };
  return { text, title: "" };
}

/** The condition that selects a row's records: all its keys. */
export function conditionOf(answer: Answer, row: number): string | null {
  const conditions = answer.conditions[row] ?? [];
  if (!conditions.length || conditions.some((condition) => condition === null)) return null;
  return conditions.join(" and ");
}

/** A key of a group. A click filters by it; for an address, it opens the page of the host. */
function keyCell(context: Context, answer: Answer, row: number, column: number): HTMLElement {
  const { text } = cellText(answer, row, column);
  const condition = answer.conditions[row]?.[column] ?? null;
  const value = answer.rows[row][column];
  const isAddress = answer.columns[column].show === "address" && typeof value === "string" && !value.includes("/");
  if (report || !condition) return h("span", { class: "key" }, text);
  return h(
    "span",
    { class: "key" },
    h("button", { type: "button", class: "link", title: `Filter: ${condition}`, onclick: () => refine(context, condition) }, text),
    isAddress ? h("button", { type: "button", class: "icon", title: "All about this host", "aria-label": `All about ${text}`, onclick: () => hostPage(context, String(value)) }, "↗") : null,
  );
}

/** The largest groups, each with a bar for its share of all matched records. */
export function topTable(context: Context, answer: Answer, options: { columns?: string[]; caption: string }): HTMLElement {
  const keys = answer.keys ?? 1;
  const by = answer.by ? at(answer, answer.by) : -1;
  const share = at(answer, "share");
  const columns = (options.columns ?? ["packets", "records"]).map((name) => (at(answer, `total_${name}`) < 0 ? at(answer, name) : at(answer, `total_${name}`))).filter((column) => column >= 0 && column !== by);
  if (!answer.rows.length) return h("p", { class: "empty" }, "No records match.");
  const head = [
    ...answer.columns.slice(0, keys).map((column) => h("th", { scope: "col" }, label(column.name))),
    by >= 0 ? h("th", { scope: "col", class: "right" }, label(answer.columns[by].name)) : null,
    share >= 0 ? h("th", { scope: "col", class: "share-head" }, "share") : null,
    answer.before ? h("th", { scope: "col", class: "right" }, "before") : null,
    ...columns.map((column) => h("th", { scope: "col", class: "right wide-only" }, label(answer.columns[column].name))),
  ];
  const body = answer.rows.map((row, index) =>
    h(
      "tr",
      {},
      ...answer.columns.slice(0, keys).map((_, column) => h("td", {}, keyCell(context, answer, index, column))),
      by >= 0 ? numberCell(answer, index, by) : null,
      share >= 0 ? h("td", { class: "share" }, h("span", { class: "share-text" }, answer.texts[index][share]), bar(Number(row[share] ?? 0))) : null,
      answer.before ? h("td", { class: "right num muted" }, by >= 0 ? change(Number(row[by]), Number(answer.before[index] ?? 0)) : "") : null,
      ...columns.map((column) => numberCell(answer, index, column, "wide-only")),
    ),
  );
  const left = answer.totals.rows - answer.rows.length;
  return h(
    "div",
    { class: "table-box" },
    h("table", { class: "top" }, h("caption", { class: "sr" }, options.caption), h("thead", {}, h("tr", {}, head)), h("tbody", {}, body)),
    left > 0 ? h("p", { class: "more" }, `${exact(left)} more`) : null,
  );
}

function numberCell(answer: Answer, row: number, column: number, more = ""): HTMLElement {
  const { text, title } = cellText(answer, row, column);
  return h("td", { class: `${isRight(answer.columns[column].show) ? "right num" : "num"} ${more}`, title }, text);
}

/** A table with all columns and rows, of which only the visible part is drawn. */
export function virtualTable(
  answer: Answer,
  options: { caption: string; sort: string; ascending: boolean; onSort?: (column: string) => void; onRow?: (row: number) => void; chosen?: number; columns: number[] },
): HTMLElement {
  const ROW = 30;
  const count = answer.rows.length;
  const { columns } = options;
  const body = h("tbody", {});
  const head = columns.map((column) => {
    const { name, show } = answer.columns[column];
    const isSorted = options.sort === name;
    const text = `${label(name)}${isSorted ? (options.ascending ? " ▲" : " ▼") : ""}`;
    return h(
      "th",
      { scope: "col", class: isRight(show) ? "right" : "", "aria-sort": isSorted ? (options.ascending ? "ascending" : "descending") : null },
      options.onSort && show !== "list" ? h("button", { type: "button", class: "sort", onclick: () => options.onSort!(name) }, text) : text,
    );
  });
  const table = h("table", { class: "flows", "aria-rowcount": count + 1 }, h("caption", { class: "sr" }, options.caption), h("thead", {}, h("tr", {}, head)), body);
  const box = h("div", { class: "virtual", tabindex: "0", role: "region", "aria-label": options.caption }, table);
  let first = -1;
  const draw = () => {
    const top = Math.max(0, Math.floor(box.scrollTop / ROW) - 8);
    if (top === first) return;
    first = top;
    const shown = Math.min(count, top + Math.ceil((box.clientHeight || 600) / ROW) + 16);
    const space = (height: number) => {
      const cell = h("td", { colspan: columns.length });
      cell.style.height = `${height}px`;
      return height > 0 ? h("tr", { class: "space", "aria-hidden": "true" }, cell) : null;
    };
    const rows = [];
    for (let row = top; row < shown; row += 1) {
      const cells = columns.map((column, place) => {
        const { text, title } = cellText(answer, row, column);
        const name = isRight(answer.columns[column].show) ? "right num" : "";
        const open = place === 0 && options.onRow ? h("button", { type: "button", class: "link", onclick: () => options.onRow!(row) }, text) : text;
        return h("td", { class: name, title: title || null }, open);
      });
      rows.push(h("tr", { "aria-rowindex": row + 2, "aria-current": row === options.chosen ? "true" : null, class: options.onRow ? "opens" : "", onclick: (event: MouseEvent) => (event.target as Element).closest("button") || options.onRow?.(row) }, cells));
    }
    fill(body, space(top * ROW), rows, space((count - shown) * ROW));
  };
  box.addEventListener("scroll", draw, { passive: true });
  draw();
  queueMicrotask(() => {
    first = -1;
    draw();
  });
  return box;
}
