// SPDX-License-Identifier: Apache-2.0
// What all pages share: the state, the files, the fields, and navigation.

import type { Answer, Field, Files, Ledgers, Links, Panel, Plan, Sample, Series } from "./api";
import { query, Refused, report } from "./api";
import type { State } from "./state";
import { with_ } from "./state";

export interface Context {
  state: State;
  files: Files;
  fields: Field[];
  ledgers: Ledgers;
  samples: Sample[];
  /** Shows another state. With `replace`, no entry is added to the browser history. */
  go(change: Partial<State>, replace?: boolean): void;
  /** Aborts the requests of this page when another page is shown. */
  signal: AbortSignal;
  /** Calls the listener with every sample of a running program while this page is shown. */
  onSample(listener: (sample: Sample) => void): void;
  /** Calls the listener when this page is left. */
  onLeave(listener: () => void): void;
}

export function has(context: Context, ...names: string[]): boolean {
  return names.every((name) => context.fields.some((field) => field.name === name));
}

/** The measure for bytes or packets; for biflows, the one over both directions. */
export function measureName(context: Context, unit: string): string {
  if (unit === "records") return unit;
  return has(context, `total_${unit}`) ? `total_${unit}` : unit;
}

/** Whether records contain both directions. */
export function isBiflow(context: Context): boolean {
  return has(context, "reverse_packets") || has(context, "reverse_bytes");
}

/** Whether only a part of the time is chosen. */
export function isPart(context: Context): boolean {
  return !report && Boolean(context.state.from || context.state.to);
}

/** Asks within the filter and the chosen time of the state. Groups count only what is in that time. */
export async function ask(context: Context, panels: Panel[]): Promise<(Answer | Series | Links | Plan)[]> {
  const { where, from, to } = context.state;
  const clip = isPart(context) && Boolean(context.files.first_ns);
  const asked = panels.map((panel) => ((panel.kind ?? "groups") === "groups" ? { ...panel, clip } : panel));
  return query({ where, from, to, panels: asked }, context.signal);
}

export function refine(context: Context, condition: string | null | undefined): void {
  if (condition && !report) context.go({ where: with_(context.state.where, condition) });
}

/** The text of an error. */
export function words(error: unknown): string {
  if (error instanceof Refused) return error.problem.reason;
  return error instanceof Error ? error.message : String(error);
}

export function isGone(error: unknown): boolean {
  return error instanceof DOMException && error.name === "AbortError";
}

/** Opens the page of a host. */
export function hostPage(context: Context, host: string): void {
  context.go({ page: "host", host });
}
