// SPDX-License-Identifier: Apache-2.0
// What all pages share: the state, the files, the fields, and how to move on.

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
  /** Shows another state; `replace` without a step in the history. */
  go(change: Partial<State>, replace?: boolean): void;
  /** Ends what this page still waits for, when another one comes. */
  signal: AbortSignal;
  /** Called with every sample of a running program while this page is shown. */
  onSample(listener: (sample: Sample) => void): void;
  /** Called when this page goes. */
  onLeave(listener: () => void): void;
}

export function has(context: Context, ...names: string[]): boolean {
  return names.every((name) => context.fields.some((field) => field.name === name));
}

/** The measure of bytes or packets: of biflows, that of both directions. */
export function measureName(context: Context, unit: string): string {
  if (unit === "records") return unit;
  return has(context, `total_${unit}`) ? `total_${unit}` : unit;
}

/** Whether records are of both directions. */
export function isBiflow(context: Context): boolean {
  return has(context, "reverse_packets") || has(context, "reverse_bytes");
}

/** Whether a part of time is chosen. */
export function isPart(context: Context): boolean {
  return !report && Boolean(context.state.from || context.state.to);
}

/** Asks within the filter and the range of time of the state. Groups count what is in that time. */
export async function ask(context: Context, panels: Panel[]): Promise<(Answer | Series | Links | Plan)[]> {
  const { where, from, to } = context.state;
  const clip = isPart(context) && Boolean(context.files.first_ns);
  const asked = panels.map((panel) => ((panel.kind ?? "groups") === "groups" ? { ...panel, clip } : panel));
  return query({ where, from, to, panels: asked }, context.signal);
}

export function refine(context: Context, condition: string | null | undefined): void {
  if (condition && !report) context.go({ where: with_(context.state.where, condition) });
}

/** The words of an error. */
export function words(error: unknown): string {
  if (error instanceof Refused) return error.problem.reason;
  return error instanceof Error ? error.message : String(error);
}

export function isGone(error: unknown): boolean {
  return error instanceof DOMException && error.name === "AbortError";
}

/** A condition of an address on either side. */
export function hostPage(context: Context, host: string): void {
  context.go({ page: "host", host });
}
