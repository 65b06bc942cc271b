// SPDX-License-Identifier: Apache-2.0
// Requests to the program. A report contains its answers, and sends no requests.

export type Value = string | number | null | number[];

export interface Counts {
  records: number;
  packets: number | string | null;
  bytes: number | string | null;
}

export interface Problem {
  reason: string;
  part?: string;
  start?: number;
  end?: number;
}

export interface Column {
  name: string;
  show: string;
}

/** Rows, which are groups or records. */
export interface Answer {
  error?: Problem;
  columns: Column[];
  rows: Value[][];
  texts: string[][];
  conditions: (string | null)[][];
  totals: { read: Counts; matched: Counts; rows: number };
  shares: { of: string; whole: number | string | null; at_both_ends: boolean } | null;
  notes: string[];
  command: string;
  command_before?: string;
  by: string | null;
  keys?: number;
  before?: Value[] | null;
}

/** The largest groups over time. */
export interface Series {
  error?: Problem;
  measure: string;
  show: string;
  width_ns: string;
  width: string;
  start_ns: string;
  total: (number | null)[];
  other?: (number | null)[];
  before?: (number | null)[];
  groups?: number;
  series: { text: string[]; condition: string | null; sum: Value; values: (number | null)[] }[];
  commands: string[];
  matched: Counts;
}

/** What several exporters saw, from one to the next. */
export interface Links {
  error?: Problem;
  /** The field that orders the exporters. */
  ttl: string | null;
  flows: number;
  flows_seen_twice: number;
  /** Flows that one exporter alone saw, which are in no link. */
  alone: { exporter: string; flows: number; packets: number }[];
  links: { from: string; to: string; flows: number; before: number; behind: number; before_at: number[]; behind_at: number[] }[];
  /** Start of the time buckets; null if records have no times. */
  start_ns: string | null;
  width_ns: string | null;
  width: string | null;
  commands: string[];
}

/** The resources of one table, and of the rest of the machine. */
export interface Need {
  slots_per_link: number;
  table_bytes: number;
  packets_per_microflow: number;
  microflows_per_second: number;
  aggregator_cores: number;
  bus_bits_per_second: number;
}

/** What records tell about a link, and the plan of `turboflow plan` for it. */
export interface Plan {
  error?: Problem;
  recorded: {
    seconds: number;
    flows: number;
    mean_packets_per_second: number;
    peak_active_flows: number;
    peak_ns: string | null;
    is_rate_raised: boolean;
    is_peak_raised: boolean;
  };
  idle_timeout_seconds: number;
  open: Series;
  begun: Series;
  plan: {
    traffic: { packets_per_second: number; flows_per_second: number; active_flows: number; mean_packet_bytes?: number };
    worst_case: Need | null;
    software_cores: number;
    export: { flow_records_per_second: number; bits_per_second: number };
    tables: { slots_per_link: number; table_bytes_per_link: number; worst_case_packets_per_microflow: number }[];
  };
  commands: string[];
}

export interface Panel {
  kind?: "groups" | "records" | "series" | "links" | "plan";
  where?: string;
  group_by?: string;
  by?: string;
  select?: string;
  ascending?: boolean;
  /** Whether groups count only the part of each record within the chosen time. */
  clip?: boolean;
  top?: number;
  points?: number;
  compare?: boolean;
}

export interface Files {
  snapshot: number;
  given: string[];
  files: { name: string; bytes: number }[];
  first_ns: string | null;
  last_ns: string | null;
  notes: string[];
  /** Where damaged files end early. */
  damages: string[];
  error: string | null;
  version: string;
  live: string | null;
}

export interface Field {
  name: string;
  show: string;
  is_column: boolean;
  is_key: boolean;
  is_amount: boolean;
}

export interface LedgerFile {
  name: string;
  error?: string;
  ledger: Record<string, any>;
}

/** The ledgers found, and the files of records that no ledger names. */
export interface Ledgers {
  found: LedgerFile[];
  without: { files: number; names: string[] };
}

export interface Sample {
  number: number;
  error?: string;
  counters?: Record<string, number>;
}

export interface Report {
  files: Files;
  fields: Field[];
  ledgers: Ledgers;
  where: string | null;
  answers: Record<string, Answer | Series>;
}

function ownReport(): Report | null {
  const element = document.getElementById("report");
  return element ? JSON.parse(element.textContent ?? "null") : null;
}

/** The report that this page is, if it is one. */
export const report: Report | null = ownReport();

export class Refused extends Error {
  constructor(readonly problem: Problem) {
    super(problem.reason);
  }
}

async function ask<T>(path: string, body?: unknown, signal?: AbortSignal): Promise<T> {
  const response = await fetch(path, {
    method: body === undefined ? "GET" : "POST",
    headers: body === undefined ? {} : { "Content-Type": "application/json" },
    body: body === undefined ? undefined : JSON.stringify(body),
    signal,
  });
  const json = await response.json();
  if (!response.ok) throw new Refused(json.error);
  return json as T;
}

export const files = async (): Promise<Files> => report?.files ?? ask("/api/files");
export const fields = async (): Promise<Field[]> => report?.fields ?? ask("/api/fields");
export const ledgers = async (): Promise<{ ledgers: Ledgers; live: Sample[] | null }> =>
  report ? { ledgers: report.ledgers, live: null } : ask("/api/ledger");

export interface Question {
  where: string;
  from: string;
  to: string;
  panels: Panel[];
}

/** The answers to the questions of a page, in order. */
export async function query(question: Question, signal?: AbortSignal): Promise<(Answer | Series | Links | Plan)[]> {
  const body = {
    where: question.where || null,
    from: question.from || null,
    to: question.to || null,
    panels: question.panels,
  };
  const answer = await ask<{ panels: (Answer | Series | Links | Plan)[] }>("/api/query", body, signal);
  return answer.panels;
}

/** The start and end of a range of time that is written as for `--within`. */
export async function moments(within: string, signal: AbortSignal): Promise<{ from: string | null; to: string | null }> {
  return ask("/api/query", { within, panels: [] }, signal);
}

/** Follows changes of the files and the samples of a running program. */
export function follow(onFiles: (files: Files) => void, onSample: (sample: Sample) => void): void {
  if (report) return;
  const events = new EventSource("/api/live");
  events.addEventListener("files", (event) => onFiles(JSON.parse(event.data)));
  events.addEventListener("live", (event) => {
    const sample = JSON.parse(event.data);
    if (sample) onSample(sample);
  });
}
