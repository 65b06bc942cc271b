// SPDX-License-Identifier: Apache-2.0
// The state of the page. All of it is in the address, so a copied link shows the same view.

export interface State {
  page: string;
  /** The filter. */
  where: string;
  /** Start of the range of time, ISO 8601. */
  from: string;
  to: string;
  unit: string;
  /** Fields to group by, comma-separated. */
  by: string;
  view: string;
  top: string;
  compare: string;
  host: string;
  /** The condition that selects one flow. */
  flow: string;
  /** The first packet of the record of this flow whose features are shown, in ns. */
  record: string;
  sort: string;
  order: string;
}

const INITIAL: State = {
  page: "overview",
  where: "",
  from: "",
  to: "",
  unit: "bytes",
  by: "",
  view: "area",
  top: "8",
  compare: "",
  host: "",
  flow: "",
  record: "",
  sort: "",
  order: "",
};

export function readState(): State {
  const query = new URLSearchParams(location.search || location.hash.slice(1));
  const state = { ...INITIAL };
  for (const name of Object.keys(INITIAL) as (keyof State)[]) {
    const value = query.get(name);
    if (value !== null) state[name] = value;
  }
  return state;
}

/** The address of a state; values that equal the defaults are omitted. */
export function address(state: State): string {
  const query = new URLSearchParams();
  for (const name of Object.keys(INITIAL) as (keyof State)[]) {
    if (state[name] !== INITIAL[name]) query.set(name, state[name]);
  }
  const text = query.toString();
  // A report is a file, whose address cannot have a query.
  if (location.protocol === "file:") return `#${text}`;
  return text ? `?${text}` : "/";
}

/** Whether the first parenthesis of a text is closed by its last character and not earlier. */
function isWrapped(text: string): boolean {
  let depth = 0;
  for (let at = 0; at < text.length; at += 1) {
    if (text[at] === "(") depth += 1;
    if (text[at] === ")") depth -= 1;
    if (depth <= 0 && at < text.length - 1) return false;
  }
  return depth === 0 && text.endsWith(")");
}

/** The filter with an additional condition. */
export function with_(where: string, condition: string): string {
  const old = where.trim();
  if (!old) return condition;
  const side = (text: string) => (/^[\w.]+ (==|in|>=|<=|>|<|!=) \S+$/.test(text) || /^\w+( [\w.:/]+)?$/.test(text) || isWrapped(text) ? text : `(${text})`);
  const joined = old.split(" and ").map((part) => part.trim());
  const isChain = joined.every((part) => side(part) === part && (isWrapped(part) || !/\bor\b/.test(part)));
  if (isChain && (joined.includes(condition) || joined.includes(`(${condition})`))) return where;
  return isChain ? `${old} and ${side(condition)}` : `${side(old)} and ${side(condition)}`;
}
