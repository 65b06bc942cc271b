// SPDX-License-Identifier: Apache-2.0
// Formats numbers for people. Sums in tables arrive as text, formatted by the program as in
// `turboflow show`; these functions are for axes, rates and tooltips.

const grouping = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

/** All digits: `12,345`. */
export function exact(value: number | string | null | undefined): string {
  if (value === null || value === undefined) return "–";
  return typeof value === "string" ? value.replace(/\B(?=(\d{3})+$)/g, ",") : grouping.format(value);
}

const PREFIXES = ["", "k", "M", "G", "T", "P"];

/** Three digits and a decimal prefix: `1.23 M`. */
export function short(value: number, unit = ""): string {
  let scaled = Math.abs(value);
  let prefix = 0;
  while (scaled >= 999.5 && prefix < PREFIXES.length - 1) {
    scaled /= 1000;
    prefix += 1;
  }
  const digits = prefix === 0 && Number.isInteger(scaled) ? 0 : scaled >= 100 ? 0 : scaled >= 10 ? 1 : scaled >= 0.1 || scaled === 0 ? 2 : Math.min(6, 2 - Math.floor(Math.log10(scaled)));
  let text = scaled.toFixed(digits);
  if (digits > 0) text = text.replace(/\.?0+$/, "");
  const suffix = `${PREFIXES[prefix]}${unit}`;
  return `${value < 0 ? "−" : ""}${text}${suffix ? ` ${suffix}` : ""}`;
}

/** The unit of the rate of a measure, and the factor that converts a sum. */
export function rateOf(measure: string): { unit: string; factor: number } {
  if (measure.endsWith("bytes")) return { unit: "bit/s", factor: 8 };
  if (measure.endsWith("packets")) return { unit: "packets/s", factor: 1 };
  if (measure === "records") return { unit: "flows/s", factor: 1 };
  return { unit: measure, factor: 1 };
}

/** Three digits, as `turboflow plan` formats needs: small amounts do not become zero. */
export function amount(value: number, unit = ""): string {
  const suffix = unit ? ` ${unit}` : "";
  if (value > 0 && value < 0.001) return `< 0.001${suffix}`;
  if (value > 0 && value < 100) return `${value.toFixed(value < 1 ? 3 : value < 10 ? 2 : 1)}${suffix}`;
  return short(value, unit);
}

/** Bytes, rounded up so that they suffice. */
export function needed(bytes: number): string {
  const step = 10 ** Math.max(0, Math.floor(Math.log10(Math.max(1, bytes))) - 2);
  return short(Math.ceil(bytes / step) * step, "B");
}

/** Nanoseconds since 1970 as milliseconds, which plots use. */
export function toMs(ns: string): number {
  return Number(BigInt(ns) / 1000n) / 1000;
}

/** Parses a chosen time as the program does: UTC, or nanoseconds since 1970. Null if none is chosen. */
export function chosenMs(text: string): number | null {
  if (!text) return null;
  if (/^\d+$/.test(text)) return toMs(text);
  const ms = Date.parse(/Z$/i.test(text) ? text : text.includes("T") ? `${text}Z` : `${text}T00:00Z`);
  return Number.isNaN(ms) ? null : ms;
}

/** `2024-03-01 12:30:00.25`, UTC. */
export function timeText(ms: number, digits = 0): string {
  const text = new Date(ms).toISOString().replace("T", " ").replace("Z", "");
  return digits ? text.slice(0, 20 + digits) : text.slice(0, 19);
}

/**
 * A label of a time axis whose ticks are `step` seconds apart: only the part that changes, and the
 * date where a day begins.
 */
export function tickText(ms: number, step: number): string {
  const text = timeText(ms, step < 1 ? (step < 0.01 ? 3 : 2) : 0);
  const [day, time] = [text.slice(5, 10), text.slice(11)];
  if (step >= 86400 || (step >= 60 && time === "00:00:00")) return day;
  return step >= 60 ? time.slice(0, 5) : time;
}

export function timeOfNs(ns: string): string {
  const ms = toMs(ns);
  const fraction = ns.slice(-9).replace(/0+$/, "");
  return `${timeText(Math.floor(ms / 1000) * 1000)}${fraction ? `.${fraction}` : ""}`;
}

export function duration(ms: number): string {
  if (ms < 1) return `${Math.round(ms * 1000)} µs`;
  if (ms < 1000) return `${+ms.toFixed(1)} ms`;
  const s = ms / 1000;
  if (s < 59.95) return `${+s.toFixed(1)} s`;
  const whole = Math.round(s);
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  const minutes = Math.round(s / 60);
  if (minutes < 2880) return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
  return `${(s / 86400).toFixed(1)} days`;
}

/** The change from an earlier value: `+12 %`. */
export function change(now: number, before: number): string {
  if (before === 0) return now === 0 ? "0 %" : "new";
  const share = ((now - before) / before) * 100;
  const text = Math.abs(share) >= 1000 ? `${short(share / 100 + 1)}×` : `${Math.abs(share).toFixed(0)} %`;
  return `${share < 0 ? "−" : "+"}${text}`;
}

const NAMES: Record<string, string> = {
  src_addr: "source",
  dst_addr: "destination",
  src_port: "source port",
  dst_port: "destination port",
  src_name: "source name",
  dst_name: "destination name",
  src_service: "source service",
  dst_service: "destination service",
  src_site: "source site",
  dst_site: "destination site",
  src_owner: "source owner",
  dst_owner: "destination owner",
  src_country: "source country",
  dst_country: "destination country",
  src_as: "source AS",
  dst_as: "destination AS",
  src_as_name: "source AS name",
  dst_as_name: "destination AS name",
  end_reason: "end",
  tcp_flags: "TCP flags",
  first_ns: "first packet",
  last_ns: "last packet",
  total_bytes: "bytes",
  total_packets: "packets",
  records: "flows",
  server_name: "server name",
};

const FOLDS: Record<string, string> = { max: "greatest", min: "least", sum: "sum of" };

/** The name of a field for people. */
export function label(name: string): string {
  const folded = /^(max|min|sum)\((.*)\)$/.exec(name);
  if (folded) return `${FOLDS[folded[1]]} ${label(folded[2].replace(/^(max|min)_/, ""))}`;
  return NAMES[name] ?? name.replace(/_ns$/, "").replaceAll("_", " ");
}
