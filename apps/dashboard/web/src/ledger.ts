// SPDX-License-Identifier: Apache-2.0
// Whether the numbers are complete, according to ledgers or a running program.

import type { Files, LedgerFile, Ledgers, Sample } from "./api";
import { exact } from "./format";

export interface Verdict {
  kind: "complete" | "lost" | "unknown";
  text: string;
  more: string;
}

const at = (ledger: Record<string, any>, name: string): number => Number(ledger[name] ?? 0);

/** The packets, records and microflow records lost, by cause. */
export function losses(ledger: Record<string, any>): [string, number][] {
  const found: [string, number][] = [
    ["packets dropped by the kernel", at(ledger, "source_dropped")],
    ["microflow records lost on the way", at(ledger, "microflows_dropped")],
    ["flow records that an output did not take", at(ledger, "records_dropped")],
    ["sums that do not add up", (ledger.imbalances ?? []).length],
    ["interfaces whose packets ended early", (ledger.interfaces ?? []).filter((one: Record<string, unknown>) => one.ended_early).length],
    ["runs that ended early", ledger.failure ? 1 : 0],
    ["captures that were damaged", (ledger.damaged ?? []).length],
    ["captures that were skipped", (ledger.passed_over ?? []).length],
    ["outputs that failed", (ledger.outputs ?? []).filter((output: Record<string, unknown>) => output.error).length],
  ];
  return found.filter(([, count]) => count > 0);
}

/** The losses of several runs, added up by cause. */
function together(lists: [string, number][][]): [string, number][] {
  const sums = new Map<string, number>();
  for (const [what, count] of lists.flat()) sums.set(what, (sums.get(what) ?? 0) + count);
  return [...sums];
}

function missing(list: [string, number][]): string {
  return list.map(([what, count]) => `${exact(count)} ${what}`).join("; ");
}

/** The verdict on records of finished runs: "complete" only if that is known of all of them. */
export function verdict(ledgers: Ledgers, files: Files): Verdict {
  const known = ledgers.found.filter((file) => !file.error);
  const lost = together(known.map((file) => losses(file.ledger)));
  if (files.damages.length) lost.push(["files of records that are cut", files.damages.length]);
  if (lost.length) return { kind: "lost", text: short(lost), more: missing(lost) };
  if (!known.length) return { kind: "unknown", text: "no ledger", more: "No ledger is beside these records: record with --ledger FILE.json to see whether they are complete." };
  const { without } = ledgers;
  if (without.files) return { kind: "unknown", text: `${exact(without.files)} of ${exact(files.files.length)} files without ledger`, more: `No ledger names ${without.names.join(", ")}${without.files > without.names.length ? ", ..." : ""}: whether these records are complete is not known.` };
  const unread = ledgers.found.length - known.length;
  if (unread) return { kind: "unknown", text: unread === 1 ? "a ledger is not read" : `${exact(unread)} ledgers are not read`, more: ledgers.found.filter((file) => file.error).map((file) => `${file.name}: ${file.error}`).join("; ") };
  return complete(known);
}

/**
 * What the badge says. While a program runs, its files have no ledger yet; if there is no ledger at
 * all, its counters are used instead.
 */
export function verdictOn(ledgers: Ledgers, files: Files, last: Sample | undefined): Verdict {
  const stored = verdict(ledgers, files);
  const live = files.live && last ? liveVerdict(last) : null;
  if (live?.kind === "lost") return live;
  if (live?.kind === "complete" && stored.kind === "unknown" && !ledgers.found.length) return { ...live, text: "complete so far" };
  return live && !files.files.length ? live : stored;
}

/** The verdict on one finished run. */
export function verdictOf(file: LedgerFile): Verdict {
  const lost = losses(file.ledger);
  return lost.length ? { kind: "lost", text: short(lost), more: missing(lost) } : complete([file]);
}

function complete(known: LedgerFile[]): Verdict {
  const packets = known.reduce((sum, file) => sum + at(file.ledger, "packets_received"), 0);
  return { kind: "complete", text: "complete", more: `Each of ${exact(packets)} packets is in a flow record, or counted by a reason why not.` };
}

function short(lost: [string, number][]): string {
  const [what, count] = lost[0];
  const noun = what.startsWith("packets") ? "packets lost" : what.startsWith("flow records") ? "records lost" : what.startsWith("microflow") ? "microflows lost" : what;
  return `${exact(count)} ${noun}`;
}

/** The verdict on a running program. */
export function liveVerdict(sample: Sample): Verdict {
  if (!sample.counters) return { kind: "unknown", text: "not reached", more: sample.error ?? "" };
  const ledger = asLedger(sample.counters);
  const lost = losses(ledger);
  if (lost.length) return { kind: "lost", text: short(lost), more: missing(lost) };
  return { kind: "complete", text: "complete", more: `Each of ${exact(at(ledger, "packets_received"))} packets is accounted for.` };
}

/** Counters of a running program, under the names that ledgers use. */
export function asLedger(counters: Record<string, number>): Record<string, any> {
  const ledger: Record<string, any> = { flows_exported: {}, rejected: [], outputs: [] };
  const failed = new Map<string, number>();
  for (const [name, value] of Object.entries(counters)) {
    const labels = Object.fromEntries([...name.matchAll(/(\w+)="([^"]*)"/g)].map((match) => [match[1], match[2]]));
    const plain = name.replace(/\{.*/, "").replace(/_total$/, "");
    if (plain === "flows_exported") ledger.flows_exported[labels.reason] = value;
    else if (plain === "rejected") ledger.rejected.push({ ...labels, packets: value });
    else if (plain === "output_failed") failed.set(labels.output, value);
    else if (plain === "output_records") ledger.outputs.push({ name: labels.output, records: value });
    else if (!name.includes("{")) ledger[plain] = value;
  }
  for (const output of ledger.outputs) output.error = failed.get(output.name) ? "failed" : null;
  ledger.imbalances = new Array(at(ledger, "ledger_imbalances")).fill("");
  ledger.balanced = at(ledger, "ledger_imbalances") === 0;
  return ledger;
}
