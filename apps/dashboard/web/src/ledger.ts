// SPDX-License-Identifier: Apache-2.0
// Whether the numbers are complete: what a ledger or a running program says.

import type { LedgerFile, Sample } from "./api";
import { exact } from "./format";

export interface Verdict {
  kind: "complete" | "lost" | "unknown";
  text: string;
  more: string;
}

const at = (ledger: Record<string, any>, name: string): number => Number(ledger[name] ?? 0);

/** The packets, records and microflows that are missing, by what lost them. */
export function losses(ledger: Record<string, any>): [string, number][] {
  const found: [string, number][] = [
    ["packets dropped by the kernel", at(ledger, "source_dropped")],
    ["microflow records lost on the way", at(ledger, "microflows_dropped")],
    ["flow records that no output took", at(ledger, "records_dropped")],
    ["sums that do not add up", (ledger.imbalances ?? []).length],
    ["captures that were damaged", (ledger.damaged ?? []).length],
  ];
  return found.filter(([, count]) => count > 0);
}

function missing(list: [string, number][]): string {
  return list.map(([what, count]) => `${exact(count)} ${what}`).join("; ");
}

/** The verdict on ledgers of runs that have ended. */
export function verdict(ledgers: LedgerFile[]): Verdict {
  const known = ledgers.filter((file) => !file.error);
  if (!known.length) return { kind: "unknown", text: "no ledger", more: "No ledger is beside these records: record with --ledger FILE.json to see whether they are complete." };
  const lost = known.flatMap((file) => losses(file.ledger));
  if (lost.length) return { kind: "lost", text: short(lost), more: missing(lost) };
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

/** Counters of a running program under the names of a ledger. */
export function asLedger(counters: Record<string, number>): Record<string, any> {
  const ledger: Record<string, any> = { flows_exported: {}, rejected: [], outputs: [] };
  for (const [name, value] of Object.entries(counters)) {
    const labels = Object.fromEntries([...name.matchAll(/(\w+)="([^"]*)"/g)].map((match) => [match[1], match[2]]));
    const plain = name.replace(/\{.*/, "").replace(/_total$/, "");
    if (plain === "flows_exported") ledger.flows_exported[labels.reason] = value;
    else if (plain === "rejected") ledger.rejected.push({ ...labels, packets: value });
    else if (plain === "output_records") ledger.outputs.push({ name: labels.output, records: value });
    else if (!name.includes("{")) ledger[plain] = value;
  }
  ledger.imbalances = new Array(at(ledger, "ledger_imbalances")).fill("");
  ledger.balanced = at(ledger, "ledger_imbalances") === 0;
  return ledger;
}
