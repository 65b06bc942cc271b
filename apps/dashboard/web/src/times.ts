// SPDX-License-Identifier: Apache-2.0
// The chosen time: shown, shifted, set to a recent range, or typed as for `--within`.

import { moments, Refused, report } from "./api";
import type { Context } from "./context";
import { isGone, words } from "./context";
import { h, type Child } from "./dom";
import { chosenMs, timeText, toMs } from "./format";

const SPANS: [number, string][] = [[10, "10 s"], [60, "1 min"], [300, "5 min"], [3600, "1 h"], [86400, "1 day"]];

/** Views that show sums. */
const SUMMING = ["overview", "explore", "host"];

function period(context: Context): string {
  const { files, state } = context;
  if (!files.first_ns || !files.last_ns) return "no times";
  const from = chosenMs(state.from) ?? toMs(files.first_ns);
  const to = chosenMs(state.to) ?? toMs(files.last_ns);
  const [first, last] = [timeText(from), timeText(to)];
  return `${first} to ${first.slice(0, 10) === last.slice(0, 10) ? last.slice(11) : last} UTC`;
}

/** The line with the time above a view. */
export function times(context: Context): Child {
  const { files, state, go } = context;
  if (!files.first_ns || report) return h("p", { class: "period" }, period(context));
  const isChosen = Boolean(state.from || state.to);
  const text = (ms: number) => new Date(ms).toISOString();
  const shift = (direction: number) => {
    const from = chosenMs(state.from) ?? toMs(files.first_ns!);
    const to = chosenMs(state.to) ?? toMs(files.last_ns!);
    go({ from: text(from + direction * (to - from)), to: text(to + direction * (to - from)) });
  };
  const last = (seconds: number) => go({ from: text(toMs(files.last_ns!) - seconds * 1000), to: "" });
  const whole = toMs(files.last_ns!) - toMs(files.first_ns);
  const spans = SPANS.filter(([seconds]) => seconds * 1000 < whole).slice(0, 4);
  return h(
    "div",
    { class: "times" },
    isChosen ? h("button", { type: "button", class: "icon", title: "Earlier ([)", "aria-label": "Earlier", onclick: () => shift(-1) }, "‹") : null,
    h("p", { class: "period", id: "period" }, period(context)),
    isChosen ? h("button", { type: "button", class: "icon", title: "Later (])", "aria-label": "Later", onclick: () => shift(1) }, "›") : null,
    h("div", { class: "chips", role: "group", "aria-label": "The last" }, spans.map(([seconds, text]) => h("button", { type: "button", class: "chip", title: `The last ${text} of the records`, onclick: () => last(seconds) }, text)), isChosen ? h("button", { type: "button", class: "chip", onclick: () => go({ from: "", to: "" }) }, "all time") : null),
    typed(context),
    isChosen && SUMMING.includes(state.page) ? h("p", { class: "muted" }, "Packets and bytes are those in this time. Panels count a flow where it began; the tile counts every flow with packets in it.") : null,
  );
}

/** A field in which a time is typed. The program parses it and reports errors. */
function typed(context: Context): HTMLElement {
  const { state, go } = context;
  const input = h("input", {
    id: "within",
    type: "text",
    value: state.from || state.to ? `${state.from}..${state.to}` : "",
    placeholder: "FROM..TO, such as  -5m..",
    title: "2024-03-01T12:30..2024-03-01T13:00, or only one of them with the dots; -5m is counted from the last packet. UTC",
    "aria-label": "Time, FROM..TO",
    "aria-describedby": "within-error",
    spellcheck: "false",
    autocomplete: "off",
    autocapitalize: "off",
  });
  const error = h("p", { id: "within-error", class: "filter-error", role: "alert", hidden: true });
  const submit = async () => {
    const within = input.value.trim();
    if (!within) return go({ from: "", to: "" });
    try {
      const { from, to } = await moments(within, context.signal);
      go({ from: from ?? "", to: to ?? "" });
    } catch (problem) {
      // Another view or time has been chosen in the meantime.
      if (isGone(problem)) return;
      error.textContent = problem instanceof Refused ? `This is not a time: ${words(problem)}` : `The time could not be checked: ${words(problem)}. Is the program still running?`;
      error.hidden = false;
      input.setAttribute("aria-invalid", "true");
    }
  };
  input.addEventListener("input", () => {
    error.hidden = true;
    input.removeAttribute("aria-invalid");
  });
  return h("form", { class: "typed-time", onsubmit: (event: Event) => { event.preventDefault(); void submit(); } }, input, h("button", { type: "submit", class: "small" }, "Set"), error);
}
