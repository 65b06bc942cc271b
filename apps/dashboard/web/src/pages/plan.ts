// SPDX-License-Identifier: Apache-2.0
// Plan: what it takes to meter this traffic, as `turboflow plan` computes from the rates of the
// records.

import type { Need, Plan, Series } from "../api";
import type { Context } from "../context";
import { ask } from "../context";
import { h } from "../dom";
import { amount, duration, exact, needed, short, timeOfNs } from "../format";
import { panel, tile } from "../panel";
import { seriesPlot } from "../plot";
import { chooseTime } from "./overview";

export async function plan(context: Context): Promise<HTMLElement> {
  const answers = await ask(context, [{ kind: "plan" }, { kind: "series", by: "packets" }]);
  const [found, packets] = [answers[0] as Plan, answers[1] as Series];
  if (found.error) return h("div", { class: "page" }, panel({ title: "Plan", answer: found, class: "wide" }));
  const plot = (title: string, note: string, series: Series, options: { answer?: Series; class?: string }) =>
    panel({ title, note, ...options }, series.error ? null : seriesPlot(series, { kind: "area", height: 180, label: `${title} over time`, onRange: (from, to) => chooseTime(context, from, to), onLeave: context.onLeave }));
  return h(
    "div",
    { class: "page" },
    tiles(found),
    plot("Flows open at once", `the most in each step; a flow is open until it had no packet for ${found.idle_timeout_seconds} s`, found.open, { class: "wide" }),
    h(
      "div",
      { class: "grid" },
      panel({ title: "What it takes", note: "one link like this, in the worst case", answer: found, id: "panel-plan" }, needs(found), raised(found)),
      panel({ title: "Size of the microflow table", note: "in the worst case" }, sizes(found)),
      plot("New flows", "records of one flow are one flow", found.begun, {}),
      plot("Packets", "spread evenly over their records", packets, { answer: packets }),
    ),
  );
}

function tiles({ recorded, plan, idle_timeout_seconds }: Plan): HTMLElement {
  const { traffic } = plan;
  return h(
    "section",
    { class: "tiles", "aria-label": "Traffic of one link" },
    tile("Flows open at once", exact(recorded.peak_active_flows), "", recorded.peak_ns ? `most at ${timeOfNs(recorded.peak_ns).slice(11, 19)} UTC` : "", "plan-open"),
    tile("New flows", short(traffic.flows_per_second, "flows/s"), "", `${exact(recorded.flows)} in all`, "plan-begun"),
    tile("Packets", short(recorded.mean_packets_per_second, "packets/s"), "", "on average", "plan-packets"),
    tile("Bytes of a packet", traffic.mean_packet_bytes ? exact(Math.round(traffic.mean_packet_bytes)) : "–", "", "on average, of IP"),
    tile("Load", traffic.mean_packet_bytes ? short(traffic.mean_packet_bytes * 8 * traffic.packets_per_second, "bit/s") : "–", "", "of IP, in the plan"),
    tile("Time", duration(recorded.seconds * 1000), "", `without silences over ${idle_timeout_seconds} s`),
  );
}

/** Explains why the plan uses other rates than those of the records. */
function raised({ recorded, plan, idle_timeout_seconds }: Plan): HTMLElement[] {
  const { traffic } = plan;
  const notes = [];
  if (recorded.is_peak_raised) notes.push(`On a link that goes on like this, ${exact(traffic.active_flows)} flows are open at once: as many begin in ${idle_timeout_seconds} s. The plan is for those.`);
  if (recorded.is_rate_raised) notes.push(`So many open flows have ${short(traffic.packets_per_second, "packets/s")} while they are open. The plan is for those, not for the average.`);
  return notes.map((note) => h("p", { class: "muted" }, note));
}

function needs({ plan }: Plan): HTMLElement {
  const { worst_case: need, export: exported, traffic } = plan;
  const of = (text: (need: Need) => string) => (need ? text(need) : "–");
  const rows = [
    ["Flows in the flow cache (--max-flows)", exact(traffic.active_flows)],
    ["Slots of the microflow table", of((its) => exact(its.slots_per_link))],
    ["Memory of that table", of((its) => needed(its.table_bytes))],
    ["Packets of a microflow record", of((its) => amount(its.packets_per_microflow))],
    ["Microflow records", of((its) => `${amount(its.microflows_per_second)}/s`)],
    ["Cores to aggregate them", of((its) => amount(its.aggregator_cores))],
    ["Load of the bus", of((its) => amount(its.bus_bits_per_second, "bit/s"))],
    ["Flow records exported, at most", `${amount(exported.flow_records_per_second)}/s`],
    ["Bandwidth of the export, at most", amount(exported.bits_per_second, "bit/s")],
    ["Cores to meter packets in software", amount(plan.software_cores)],
  ];
  return table("What it takes", [], rows);
}

function sizes({ plan }: Plan): HTMLElement {
  const rows = plan.tables.map((row) => [exact(row.slots_per_link), needed(row.table_bytes_per_link), amount(row.worst_case_packets_per_microflow)]);
  return table("Packets of a microflow record, by size of the table", ["slots", "memory", "packets a record"], rows);
}

function table(caption: string, head: string[], rows: string[][]): HTMLElement {
  return h(
    "div",
    { class: "table-box", tabindex: "0", role: "region", "aria-label": caption },
    h(
      "table",
      { class: "top" },
      h("caption", { class: "sr" }, caption),
      head.length ? h("thead", {}, h("tr", {}, head.map((name, place) => h("th", { scope: "col", class: place ? "right" : "" }, name)))) : null,
      h("tbody", {}, rows.map((row) => h("tr", {}, row.map((text, place) => (place ? h("td", { class: "right num" }, text) : h("th", { scope: "row" }, text)))))),
    ),
  );
}
