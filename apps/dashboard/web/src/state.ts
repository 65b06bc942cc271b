// SPDX-License-Identifier: Apache-2.0
// What is shown, all of it in the address: a copied link shows what was seen.

export interface State {
  page: string;
  /** The filter. */
  where: string;
  /** Range of time, ISO 8601. */
  from: string;
  to: string;
  unit: string;
  /** Fields to group by, with commas between. */
  by: string;
  view: string;
  top: string;
  compare: string;
  host: string;
  /** The condition of one flow. */
  flow: string;
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

/** The address of a state: what is as at first is left out. */
export function address(state: State): string {
  const query = new URLSearchParams();
  for (const name of Object.keys(INITIAL) as (keyof State)[]) {
    if (state[name] !== INITIAL[name]) query.set(name, state[name]);
  }
  const text = query.toString();
  // A report is a file, whose address has no query.
  if (location.protocol === "file:") return `#${text}`;
  return text ? `?${text}` : "/";
}

/** The filter with one more condition. */
export function with_(where: string, condition: string): string {
  const old = where.trim();
  if (!old) return condition;
  if (old === condition || old.includes(`(${condition})`)) return where;
  const side = (text: string) => (/^[\w.]+ (==|in|>=|<=|>|<|!=) \S+$/.test(text) || /^\w+( [\w.:/]+)?$/.test(text) || /^\(.*\)$/.test(text) ? text : `(${text})`);
  const joined = old.split(" and ").map((part) => part.trim());
  if (joined.includes(condition)) return where;
  const isChain = joined.every((part) => side(part) === part && !/^\(.*\)$/.test(part) && !/\bor\b/.test(part));
  return isChain ? `${old} and ${side(condition)}` : `${side(old)} and ${side(condition)}`;
}
