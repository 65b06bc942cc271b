// SPDX-License-Identifier: Apache-2.0
// The frame of a panel: a title, the command that reproduces its numbers, and its content.

import type { Answer, Links, Plan, Series } from "./api";
import { report } from "./api";
import { h, type Child } from "./dom";

/** The commands in an answer. */
export function commandsOf(answer: Answer | Series | Links | Plan): string[] {
  if ("commands" in answer) return answer.commands;
  return answer.command_before ? [answer.command, answer.command_before] : [answer.command];
}

export interface PanelOptions {
  title: string;
  note?: string;
  answer?: Answer | Series | Links | Plan;
  class?: string;
  tools?: Child;
  id?: string;
}

export function panel(options: PanelOptions, ...content: Child[]): HTMLElement {
  const { answer } = options;
  const problem = answer && "error" in answer ? answer.error : undefined;
  const commands = answer && !problem ? commandsOf(answer) : [];
  const notes = answer && "notes" in answer && answer.notes ? answer.notes : [];
  return h(
    "section",
    { class: `panel ${options.class ?? ""}`, id: options.id },
    h("header", {}, h("h2", {}, options.title), options.note ? h("p", { class: "muted" }, options.note) : null, h("div", { class: "tools" }, options.tools)),
    problem ? h("p", { class: "problem", role: "alert" }, problem.reason) : content,
    notes.map((note) => h("p", { class: "muted" }, note)),
    commandBox(commands),
  );
}

/** A box with the commands that reproduce the numbers above it. */
export function commandBox(commands: string[]): HTMLElement | null {
  if (!commands.length) return null;
  return h(
    "details",
    { class: "command" },
    h("summary", {}, "The command that gives these numbers"),
    commands.map((command) => h("div", { class: "command-line" }, h("pre", { tabindex: "0" }, command), report ? null : copy(command))),
  );
}

function copy(text: string): HTMLElement {
  const button = h("button", { type: "button", class: "small" }, "Copy");
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Select it";
    }
  });
  return button;
}

/** A choice of one among a few values. */
export function chips(caption: string, values: [string, string][], chosen: string, onChoose: (value: string) => void): HTMLElement {
  return h(
    "div",
    { class: "chips", role: "group", "aria-label": caption },
    values.map(([value, text]) => h("button", { type: "button", class: "chip", "aria-pressed": String(value === chosen), onclick: () => onChoose(value) }, text)),
  );
}

export function tile(name: string, value: string, unit = "", more?: Child, id?: string): HTMLElement {
  return h("div", { class: "tile", id }, h("span", { class: "tile-name" }, name), h("span", { class: "tile-value" }, value, unit ? h("span", { class: "tile-unit" }, unit) : null), more ? h("span", { class: "tile-more" }, more) : null);
}
