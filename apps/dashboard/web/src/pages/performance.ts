// SPDX-License-Identifier: Apache-2.0
// Performance: what records tell about queues, latency and gaps, if the definition has such
// features.

import type { Answer, Panel, Series } from "../api";
import type { Context } from "../context";
import { ask, has, isPart } from "../context";
import { h } from "../dom";
import { label } from "../format";
import { panel } from "../panel";
import { seriesPlot } from "../plot";
import { at, topTable, virtualTable } from "../table";
import { chooseTime } from "./overview";

const ABOUT = /queue|latency|gap|jitter|delay|hop|rtt|window/;
const SHOWN = new Set(["number", "count", "duration", "float"]);

/** Why means are not plotted over time: a record does not tell how many packets its mean covers. */
const SINGLE = "each flow has one value; values of several flows are not combined, so there is no plot over time";

export async function performance(context: Context): Promise<HTMLElement> {
  const fields = context.fields.filter((field) => field.is_column && ABOUT.test(field.name) && SHOWN.has(field.show)).slice(0, 4);
  if (!fields.length) {
    const why = "These records have no queue depth, latency or gaps. A record definition adds them: turboflow definition explains which, samples/definitions has examples.";
    return h("div", { class: "page" }, panel({ title: "Performance", class: "wide" }, h("p", { class: "empty" }, why)));
  }
  const isPair = has(context, "src_addr", "dst_addr");
  const hasTimes = Boolean(context.files.first_ns);
  const panels: Panel[] = [];
  const places = fields.map(({ name, is_amount }) => {
    const add = (is: boolean, panel: Panel): number => (is ? panels.push(panel) - 1 : -1);
    return {
      // Ratios have no maximum per group.
      series: add(is_amount && hasTimes, { kind: "series", by: `max(${name})`, points: 120 }),
      pairs: add(is_amount && isPair, { group_by: "src_addr,dst_addr", by: `max(${name})`, top: 8 }),
      worst: add(true, { kind: "records", by: name, top: 50 }),
    };
  });
  // Values that cannot be split are reported for whole flows.
  const whole = isPart(context) ? "of flows with packets in this time, as a whole" : "";
  const answers = await ask(context, panels);
  return h(
    "div",
    { class: "page" },
    hasTimes ? null : h("p", { class: "muted", id: "timeless" }, "These records have no times, so nothing is shown over time. A record definition with first_ns and last_ns adds them."),
    fields.map(({ name, is_amount: isAmount }, index) => {
      const place = places[index];
      const series = answers[place.series] as Series | undefined;
      const pairs = answers[place.pairs] as Answer | undefined;
      const worst = answers[place.worst] as Answer;
      const title = label(name.replace(/^max_/, ""));
      return [
        series ? panel({ title: `Greatest ${title} over time`, note: "in each step, the greatest of all flows open in it; each flow counts with its value as a whole", answer: series, class: "wide" }, series.error ? null : seriesPlot(series, { kind: "lines", height: 200, label: `Greatest ${title} over time`, onRange: (from, to) => chooseTime(context, from, to), onLeave: context.onLeave })) : null,
        pairs ? panel({ title: `Greatest ${title} by conversation`, note: whole, answer: pairs }, pairs.error ? null : topTable(context, pairs, { caption: title, columns: ["packets", "records"] })) : null,
        panel(
          { title: `Flows with the greatest ${title}`, note: [whole, isAmount ? "" : SINGLE].filter(Boolean).join("; "), answer: worst, class: pairs ? "" : "wide" },
          worst.error ? null : virtualTable(worst, { caption: title, sort: name, ascending: false, columns: ["src_addr", "dst_addr", "dst_port", name, "packets"].map((column) => at(worst, column)).filter((column) => column >= 0) }),
        ),
      ];
    }),
  );
}
