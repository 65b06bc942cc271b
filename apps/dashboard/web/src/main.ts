// SPDX-License-Identifier: Apache-2.0
// The page: its frame, its address, and which of its views is shown.

import "./style.css";
import * as api from "./api";
import type { Context } from "./context";
import { isGone, words } from "./context";
import { fill, h } from "./dom";
import { exact } from "./format";
import { filterBox } from "./filter";
import { verdictOn, type Verdict } from "./ledger";
import { chips, panel } from "./panel";
import { address, readState, type State } from "./state";
import { times } from "./times";
import { explore } from "./pages/explore";
import { flows } from "./pages/flows";
import { health } from "./pages/health";
import { host } from "./pages/host";
import { network } from "./pages/network";
import { overview } from "./pages/overview";
import { performance as performancePage } from "./pages/performance";
import { plan } from "./pages/plan";

type Page = (context: Context) => Promise<HTMLElement>;

const PAGES: [string, string, Page][] = [
  ["overview", "Overview", overview],
  ["explore", "Explore", explore],
  ["flows", "Flows", flows],
  ["host", "Host", host],
  ["network", "Network", network],
  ["performance", "Performance", performancePage],
  ["health", "Health", health],
  ["plan", "Plan", plan],
];
/** The views that a report can answer by itself. */
const IN_REPORT = ["overview", "flows", "health"];

const app = document.getElementById("app")!;
const content = h("main", { id: "main", tabindex: "-1" });
const bar = h("header", { class: "bar-top" });
const samples: api.Sample[] = [];
let state = readState();
let files: api.Files;
let fields: api.Field[] = [];
let ledgers: api.Ledgers = { found: [], without: { files: 0, names: [] } };
let leaving: (() => void)[] = [];
let listeners: ((sample: api.Sample) => void)[] = [];
let asking = new AbortController();

function go(change: Partial<State>, replace = false): void {
  const next = { ...state, ...change };
  // State that belongs to one view is dropped when another one is opened.
  if (change.page && change.page !== state.page) Object.assign(next, { flow: "", sort: "", order: "" }, change);
  if (change.page && change.page !== "host" && state.page === "host") next.host = "";
  if (next.flow !== state.flow) next.record = change.record ?? "";
  const isElsewhere = next.page !== state.page || next.host !== state.host || next.flow !== state.flow;
  state = next;
  history[replace ? "replaceState" : "pushState"](null, "", address(state));
  void show(true, isElsewhere);
}

function theme(next?: string): string {
  const root = document.documentElement;
  try {
    if (next) localStorage.setItem("theme", next);
    const chosen = next ?? localStorage.getItem("theme");
    if (chosen) root.dataset.theme = chosen;
  } catch {
    // Without storage, a chosen theme lasts only until the page is closed.
    if (next) root.dataset.theme = next;
  }
  return root.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
}

function switchTheme(): void {
  theme(theme() === "dark" ? "light" : "dark");
  void show(false);
}

function mark(): Verdict {
  return verdictOn(ledgers, files, samples.at(-1));
}

function badge(): HTMLElement {
  const { kind, text, more } = mark();
  return h("button", { type: "button", id: "badge", class: `badge is-${kind}`, title: more, onclick: () => go({ page: "health" }) }, h("span", { class: "sr" }, "Ledger: "), text);
}

function frame(): void {
  const pages = PAGES.filter(([name]) => !api.report || IN_REPORT.includes(name));
  const nav = h(
    "nav",
    { "aria-label": "Pages" },
    pages.map(([name, title], index) => h("a", { href: address({ ...state, page: name, flow: "" }), "aria-current": name === state.page ? "page" : null, title: `Key ${index + 1}`, onclick: (event: MouseEvent) => { if (event.ctrlKey || event.metaKey) return; event.preventDefault(); go({ page: name, flow: "" }); } }, title)),
  );
  fill(
    bar,
    h("a", { class: "skip", href: "#main", onclick: (event: Event) => { event.preventDefault(); content.focus(); } }, "To the content"),
    h("div", { class: "brand" }, h("span", { class: "brand-mark", "aria-hidden": "true" }), h("span", {}, "TurboFlow")),
    nav,
    h("div", { class: "bar-end" }, badge(), h("button", { type: "button", class: "icon", title: "Dark or light (t)", "aria-label": "Dark or light", onclick: switchTheme }, theme() === "dark" ? "☀" : "☾")),
  );
}

function context(): Context {
  return {
    state, files, fields, ledgers, samples, go,
    signal: asking.signal,
    onSample: (listener) => listeners.push(listener),
    onLeave: (listener) => leaving.push(listener),
  };
}

/**
 * Shows the view for the state. With `isStep`, what is typed or opened is not kept; with
 * `isElsewhere`, the page starts at its top, because it is about something else.
 */
async function show(isStep: boolean, isElsewhere = false): Promise<void> {
  asking.abort();
  asking = new AbortController();
  const mine = asking;
  const [name, title, page] = PAGES.find(([known]) => known === state.page) ?? PAGES[0];
  state.page = name;
  document.title = `${title} · TurboFlow`;
  frame();
  content.setAttribute("aria-busy", "true");
  const left = leaving;
  leaving = [];
  listeners = [];
  const its = context();
  const units = chips("Measured in", [["bytes", "bytes"], ["packets", "packets"], ["records", "flows"]], state.unit, (unit) => go({ unit }));
  const isAsked = !["health"].includes(name);
  const head = isAsked ? h("div", { class: "ask" }, api.report ? h("p", { class: "period" }, api.report.where ? `Filter: ${api.report.where}` : "All records") : filterBox(its), h("div", { class: "ask-more" }, times(its), api.report || name === "plan" ? null : units)) : null;
  let body: HTMLElement;
  try {
    if (files.error) body = panel({ title: "The files cannot be read", class: "wide" }, h("p", { class: "problem" }, files.error));
    else if (isAsked && !files.files.length) body = h("div", { class: "page" }, panel({ title: "No records yet", class: "wide" }, h("p", { class: "empty" }, `Waiting for files of flow records in ${files.given.join(", ") || "no folder"}.`)), files.live ? await health(its) : null);
    else body = await page(its);
  } catch (error) {
    if (isGone(error) || mine !== asking) return;
    body = panel({ title: "This was not answered", class: "wide" }, h("p", { class: "problem", role: "alert" }, words(error)));
  }
  if (mine !== asking) return;
  const focused = document.activeElement?.id;
  // Input for another view or question must not be carried over.
  const isSame = !isStep && content.dataset.address === address(state);
  const again = isSame ? kept(content) : null;
  left.forEach((leave) => leave());
  fill(content, h("h1", { class: "sr" }, title), head, body);
  again?.();
  if (isElsewhere) scrollTo(0, 0);
  content.removeAttribute("aria-busy");
  content.dataset.shown = name;
  content.dataset.address = address(state);
  if (isStep && focused && focused !== "main") document.getElementById(focused)?.focus({ preventScroll: true });
}

/**
 * Remembers what a reader has typed, opened and scrolled to. The returned function restores it
 * after the view is redrawn because there are new records.
 */
function kept(root: HTMLElement): () => void {
  const typed = [...root.querySelectorAll<HTMLInputElement>("input[type=text]")].filter((input) => input.id && input.value !== input.defaultValue).map((input) => [input.id, input.value]);
  const active = document.activeElement as HTMLInputElement | null;
  const focused = active && root.contains(active) ? active.id : "";
  const selection = active instanceof HTMLInputElement && active.type === "text" ? [active.selectionStart, active.selectionEnd] : null;
  const wrong = [...root.querySelectorAll<HTMLElement>(".filter-error:not([hidden])")].map((error) => [error.id, error.textContent ?? ""]);
  const open = [...root.querySelectorAll("details")].map((details) => details.open);
  const scrolled = [...root.querySelectorAll<HTMLElement>(".virtual")].map((box) => box.scrollTop);
  return () => {
    for (const [id, value] of typed) {
      const input = document.getElementById(id) as HTMLInputElement | null;
      if (input) input.value = value;
    }
    for (const [id, text] of wrong) {
      const error = document.getElementById(id);
      if (error) {
        error.textContent = text;
        error.hidden = false;
      }
    }
    const details = [...root.querySelectorAll("details")];
    if (details.length === open.length) details.forEach((one, at) => (one.open = open[at]));
    const boxes = [...root.querySelectorAll<HTMLElement>(".virtual")];
    if (boxes.length === scrolled.length) boxes.forEach((box, at) => (box.scrollTop = scrolled[at]));
    const element = focused ? (document.getElementById(focused) as HTMLInputElement | null) : null;
    element?.focus({ preventScroll: true });
    if (element && selection) element.setSelectionRange(selection[0], selection[1]);
  };
}

function onKey(event: KeyboardEvent): void {
  const target = event.target as HTMLElement;
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (target.matches("input, select, textarea")) {
    if (event.key === "Escape") target.blur();
    return;
  }
  const number = Number(event.key);
  const page = PAGES.filter(([name]) => !api.report || IN_REPORT.includes(name))[number - 1];
  if (number && page) go({ page: page[0], flow: "" });
  else if (event.key === "/") {
    event.preventDefault();
    document.getElementById("filter")?.focus();
  } else if (event.key === "t") switchTheme();
  else if (event.key === "[" || event.key === "]") document.querySelector<HTMLElement>(`.times [aria-label="${event.key === "[" ? "Earlier" : "Later"}"]`)?.click();
  else if (event.key === "Escape" && state.flow) go({ flow: "" });
}

async function load(): Promise<void> {
  const [known, names, found] = await Promise.all([api.files(), api.fields(), api.ledgers()]);
  files = known;
  fields = names;
  ledgers = found.ledgers;
  if (found.live && !samples.length) samples.push(...found.live.filter(Boolean));
}

async function start(): Promise<void> {
  theme();
  fill(app, bar, content);
  await load();
  await show(false);
  addEventListener("popstate", () => {
    state = readState();
    void show(true);
  });
  addEventListener("keydown", onKey);
  api.follow(
    async (next) => {
      if (next.snapshot === files.snapshot) return;
      await load();
      content.dataset.snapshot = exact(files.snapshot);
      await show(false);
    },
    (sample) => {
      samples.push(sample);
      if (samples.length > 600) samples.shift();
      document.getElementById("badge")?.replaceWith(badge());
      listeners.forEach((listener) => listener(sample));
    },
  );
}

start().catch((error) => fill(app, h("p", { class: "problem" }, words(error))));
