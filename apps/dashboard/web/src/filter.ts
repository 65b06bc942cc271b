// SPDX-License-Identifier: Apache-2.0
// The filter box: the language of `turboflow show`, completed from the existing fields and values.
// Errors are worded by the query engine, and their position is marked.

import type { Answer, Problem } from "./api";
import { query, Refused } from "./api";
import type { Context } from "./context";
import { words } from "./context";
import { fill, h } from "./dom";
import { label } from "./format";

const WORDS = ["and", "or", "not", "host", "net", "port", "portrange", "src", "dst", "tcp", "udp", "icmp", "ip", "ip6", "proto"];
const OPERATORS = ["==", "!=", ">", ">=", "<", "<=", "in", "has"];
/** The field whose values complete a primitive. */
const OF_WORD: Record<string, string> = { host: "host", port: "dst_port", proto: "protocol" };

const OCTET = "(25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)";
const IPV4 = new RegExp(`^${OCTET}(\\.${OCTET}){3}$`);

function isAddress(text: string): boolean {
  if (IPV4.test(text)) return true;
  if (!text.includes(":") || !/^[\da-f:.]+$/i.test(text)) return false;
  try {
    return Boolean(new URL(`http://[${text}]/`));
  } catch {
    return false;
  }
}

/** The filter that is meant: a bare address or network stands for either end of a flow. */
function meant(text: string): string {
  const [address, length, ...more] = text.split("/");
  if (more.length || !isAddress(address)) return text;
  if (length === undefined) return `host ${address}`;
  return /^\d{1,3}$/.test(length) ? `net ${text}` : text;
}

interface Choice {
  text: string;
  note: string;
}

/** The word before the cursor, and the words before it. */
function before(text: string, at: number): { word: string; start: number; last: string[] } {
  const head = text.slice(0, at);
  const word = /[^\s(),]*$/.exec(head)![0];
  const last = head
    .slice(0, head.length - word.length)
    .split(/[\s(),]+/)
    .filter(Boolean);
  return { word, start: at - word.length, last };
}

/** Values of fields, for one snapshot. */
const values = new Map<string, Promise<Choice[]>>();
let valuesOfSnapshot = 0;

/** The most frequent values of a field. */
function valuesOf(context: Context, field: string): Promise<Choice[]> {
  if (valuesOfSnapshot !== context.files.snapshot) values.clear();
  valuesOfSnapshot = context.files.snapshot;
  let known = values.get(field);
  if (!known) {
    known = query({ where: "", from: "", to: "", panels: [{ group_by: field, by: "records", top: 40 }] })
      .then(([answer]) => {
        const found = answer as Answer;
        if (found.error) return [];
        const sum = found.columns.findIndex((column) => column.name === "records");
        return found.rows.map((row, at) => {
          const shown = found.texts[at][0];
          const isText = found.columns[0].show === "text";
          const plain = found.columns[0].show === "protocol" ? shown : String(row[0] ?? "none");
          return { text: isText && /[^\w.:/-]/.test(plain) ? `"${plain}"` : plain, note: `${found.texts[at][sum]} flows` };
        });
      })
      .catch(() => []);
    values.set(field, known);
  }
  return known;
}

async function choices(context: Context, text: string, at: number): Promise<{ list: Choice[]; start: number }> {
  const { word, start, last } = before(text, at);
  const previous = last.at(-1) ?? "";
  const field = context.fields.find((known) => known.name === previous);
  const isFit = (choice: Choice) => choice.text.toLowerCase().startsWith(word.toLowerCase()) && choice.text !== word;
  if (field) return { list: OPERATORS.map((text) => ({ text, note: "" })).filter(isFit), start };
  const operand = OPERATORS.includes(previous) || previous === "=" ? last.at(-2) : undefined;
  const isKnown = (name: string | undefined) => context.fields.some((known) => known.name === name && known.is_key);
  const asked = operand && isKnown(operand) ? operand : OF_WORD[previous];
  if (asked) return { list: (await valuesOf(context, asked)).filter(isFit).slice(0, 12), start };
  if (operand) return { list: [], start };
  const names = context.fields.map(({ name, show }) => ({ text: name, note: label(name) === name ? show : label(name) }));
  const words = WORDS.map((text) => ({ text, note: "" }));
  const isStart = !previous || ["and", "or", "not"].includes(previous);
  const joins = words.slice(0, 2);
  const list = isStart ? [...names, ...words.slice(2)] : word ? [...joins, ...names, ...words.slice(2)] : joins;
  return { list: list.filter(isFit).slice(0, 12), start };
}

/** The box with its list of completions and its error. */
export function filterBox(context: Context): HTMLElement {
  const input = h("input", {
    id: "filter",
    type: "text",
    role: "combobox",
    spellcheck: "false",
    autocomplete: "off",
    autocapitalize: "off",
    placeholder: "Filter, such as  10.0.0.1  or  tcp and port 443  or  bytes > 1M",
    "aria-label": "Filter of records",
    "aria-expanded": "false",
    "aria-autocomplete": "list",
    "aria-controls": "choices",
    "aria-describedby": "filter-error",
    value: context.state.where,
  });
  const list = h("ul", { id: "choices", role: "listbox", class: "choices", hidden: true, "aria-label": "Completions" });
  const error = h("div", { id: "filter-error", class: "filter-error", role: "alert", hidden: true });
  const clear = h("button", { type: "button", class: "icon clear", "aria-label": "Remove the filter", title: "Remove the filter", onclick: () => { input.value = ""; submit(); } }, "×");
  clear.hidden = !context.state.where;
  let shown: Choice[] = [];
  let start = 0;
  let chosen = -1;
  let round = 0;

  function close(): void {
    round += 1;
    list.hidden = true;
    chosen = -1;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  }

  function draw(): void {
    fill(
      list,
      shown.map((choice, at) =>
        h("li", { id: `choice-${at}`, role: "option", "aria-selected": String(at === chosen), onmousedown: (event: Event) => { event.preventDefault(); take(at); } }, h("span", {}, choice.text), h("span", { class: "muted" }, choice.note)),
      ),
    );
    list.hidden = shown.length === 0;
    input.setAttribute("aria-expanded", String(shown.length > 0));
    if (chosen >= 0) {
      input.setAttribute("aria-activedescendant", `choice-${chosen}`);
      list.children[chosen]?.scrollIntoView({ block: "nearest" });
    } else input.removeAttribute("aria-activedescendant");
  }

  async function complete(): Promise<void> {
    const mine = ++round;
    const found = await choices(context, input.value, input.selectionStart ?? input.value.length);
    if (mine !== round || document.activeElement !== input) return;
    shown = found.list;
    start = found.start;
    chosen = -1;
    draw();
  }

  function take(at: number): void {
    const end = input.selectionStart ?? input.value.length;
    const text = `${shown[at].text} `;
    input.value = input.value.slice(0, start) + text + input.value.slice(end).replace(/^ /, "");
    input.setSelectionRange(start + text.length, start + text.length);
    void complete();
  }

  function say(problem: Problem): void {
    const text = input.value.trim();
    const part = (from: number, to?: number) => text.slice(from, to);
    const from = problem.part === "where" ? problem.start : undefined;
    fill(
      error,
      from === undefined
        ? null
        : h("code", {}, part(0, from), h("mark", {}, part(from, problem.end) || "␣"), part(problem.end ?? from)),
      h("span", {}, problem.reason),
    );
    error.hidden = false;
    input.setAttribute("aria-invalid", "true");
  }

  async function submit(): Promise<void> {
    close();
    const where = meant(input.value.trim());
    // Shows the expanded filter, so that the reader learns the syntax.
    input.value = where;
    try {
      await query({ where, from: "", to: "", panels: [] });
      error.hidden = true;
      input.removeAttribute("aria-invalid");
      context.go({ where });
    } catch (problem) {
      say(problem instanceof Refused ? problem.problem : { reason: `The filter could not be tried: ${words(problem)}. Is the program still running?` });
    }
  }

  input.addEventListener("input", () => {
    error.hidden = true;
    input.removeAttribute("aria-invalid");
    void complete();
  });
  input.addEventListener("focus", () => void complete());
  input.addEventListener("blur", close);
  input.addEventListener("keydown", (event) => {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (step && list.hidden) void complete();
    else if (step && shown.length) {
      event.preventDefault();
      chosen = (chosen + step + shown.length) % shown.length;
      draw();
    } else if (event.key === "Tab" && !list.hidden && shown.length && !event.shiftKey) {
      event.preventDefault();
      take(Math.max(0, chosen));
    } else if (event.key === "Enter") {
      event.preventDefault();
      if (chosen >= 0 && !list.hidden) take(chosen);
      else void submit();
    } else if (event.key === "Escape" && !list.hidden) {
      event.stopPropagation();
      close();
    }
  });
  return h("form", { class: "filter", role: "search", onsubmit: (event: Event) => { event.preventDefault(); void submit(); } }, h("div", { class: "filter-line" }, input, clear, h("button", { type: "submit", class: "primary" }, "Filter")), list, error);
}
