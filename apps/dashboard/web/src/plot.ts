// SPDX-License-Identifier: Apache-2.0
// Plots over time, drawn by uPlot: stacked areas or lines, in steps, because a bucket has one
// value.

import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import type { Series } from "./api";
import { fill, h, swatch, token } from "./dom";
import { exact, rateOf, short, tickText, timeText, toMs } from "./format";

/** Measures the width of texts. */
const ruler = document.createElement("canvas").getContext("2d")!;

/** The colours of lines, in order. */
export function colour(index: number): string {
  return token(`--series-${(index % 10) + 1}`);
}

interface Line {
  name: string;
  colour: string;
  values: (number | null)[];
  isDashed?: boolean;
}

export interface PlotOptions {
  kind: "area" | "lines";
  height: number;
  /** Called when a range is selected with the pointer. */
  onRange?: (fromMs: number, toMs: number) => void;
  /** Called when a line is selected in the legend. */
  onLine?: (condition: string) => void;
  label: string;
  onLeave(listener: () => void): void;
}

/** Converts the values of buckets to rates. */
function rates(values: (number | null)[], factor: number, seconds: number): (number | null)[] {
  return values.map((value) => (value === null ? null : (value * factor) / seconds));
}

export function lineName(text: string[]): string {
  return text.join("  ");
}

/** A plot of a series with its legend. */
export function seriesPlot(series: Series, options: PlotOptions): HTMLElement {
  const { unit, factor } = rateOf(series.measure);
  const isRate = unit.endsWith("/s");
  const seconds = isRate ? Number(BigInt(series.width_ns)) / 1e9 : 1;
  const widthMs = Number(BigInt(series.width_ns)) / 1e6;
  const startMs = toMs(series.start_ns);
  const lines: Line[] = series.series.map((line, index) => ({
    name: lineName(line.text),
    colour: colour(index),
    values: rates(line.values, factor, seconds),
  }));
  if (series.other && series.other.some((value) => value)) {
    lines.push({ name: "Other", colour: token("--series-other"), values: rates(series.other, factor, seconds) });
  }
  if (!series.series.length) {
    lines.push({ name: "all", colour: colour(0), values: rates(series.total, factor, seconds) });
  }
  if (series.before) {
    lines.push({ name: "period before", colour: token("--ink-2"), values: rates(series.before, factor, seconds), isDashed: true });
  }
  const count = series.total.length;
  // An additional point gives the last bucket its width.
  const times = Array.from({ length: count + 1 }, (_, at) => (startMs + at * widthMs) / 1000);
  const box = h("div", { class: "plot", role: "img", "aria-label": options.label });
  const legend = h("ul", { class: "legend" });
  const readout = h("p", { class: "readout" });
  const root = h("figure", { class: "plot-figure" }, box, readout, legend);
  const isShown = lines.map(() => true);
  const select = (index: number) => {
    const alone = isShown[index] && isShown.filter(Boolean).length === 1;
    isShown.forEach((_, at) => (isShown[at] = alone ? true : at === index));
    draw();
  };
  let plot: uPlot | null = null;
  const idle = `${series.width} per step · values in ${unit}${options.onRange ? " · drag to choose a time" : ""}`;
  readout.textContent = idle;

  function say(at: number | null | undefined): void {
    if (at === null || at === undefined || at >= count) {
      readout.textContent = idle;
      return;
    }
    const total = lines.filter((line, index) => isShown[index] && !line.isDashed).reduce((sum, line) => sum + (line.values[at] ?? 0), 0);
    const isSum = Boolean(series.other) || !series.series.length;
    readout.textContent = `${timeText(startMs + at * widthMs, widthMs < 1000 ? 3 : 0)} UTC${isSum ? `  ·  ${short(total, unit)}` : ""}`;
    legend.querySelectorAll("[data-line]").forEach((element) => {
      const line = lines[Number(element.getAttribute("data-line"))];
      const value = line.values[at];
      element.textContent = value === null ? "–" : short(value, unit);
    });
  }

  function data(): { data: uPlot.AlignedData; order: number[] } {
    const order = lines.map((_, index) => index).filter((index) => isShown[index]);
    const isStacked = options.kind === "area";
    const columns: (number | null)[][] = [];
    const sums = new Array<number>(count).fill(0);
    for (const index of order) {
      const line = lines[index];
      const values = line.values.map((value, at) => {
        if (!isStacked || line.isDashed) return value;
        sums[at] += value ?? 0;
        return sums[at];
      });
      columns.push([...values, values[count - 1]]);
    }
    // The whole stack is drawn first, and then the lower areas over it.
    if (isStacked) {
      const solid = order.filter((index) => !lines[index].isDashed).reverse();
      const dashed = order.filter((index) => lines[index].isDashed);
      const sorted = [...solid, ...dashed];
      return { data: [times, ...sorted.map((index) => columns[order.indexOf(index)])] as uPlot.AlignedData, order: sorted };
    }
    return { data: [times, ...columns] as uPlot.AlignedData, order };
  }

  /** The width of a label on the time axis; labels of short ranges are longer. */
  function labelWidth(font: string): number {
    const [first, last] = [times[0] * 1000, times[count] * 1000];
    // Labels are at least 50 px apart, so no step is shorter than this.
    const step = (last - first) / 1000 / Math.max(1, box.clientWidth / 50);
    ruler.font = font;
    return Math.ceil(ruler.measureText(tickText(last, step)).width);
  }

  function draw(): void {
    plot?.destroy();
    const { data: columns, order } = data();
    const ink = token("--ink-2");
    const grid = { stroke: token("--line"), width: 1 };
    const font = `12px ${token("--font")}`;
    const wide = labelWidth(font);
    const stepped = uPlot.paths.stepped!({ align: 1 });
    plot = new uPlot(
      {
        width: Math.max(200, box.clientWidth || 600),
        height: options.height,
        // The last label may be at the very end of the axis.
        padding: [10, Math.ceil(wide / 2) + 6, 0, 0],
        legend: { show: false },
        tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "UTC"),
        cursor: { drag: { x: Boolean(options.onRange), y: false, setScale: false }, points: { show: false }, y: false },
        select: { show: true, left: 0, top: 0, width: 0, height: 0 },
        scales: { x: { time: true }, y: { range: (_self, _low, high) => [0, high > 0 ? high * 1.05 : 1] } },
        axes: [
          { stroke: ink, font, grid: { show: false }, ticks: grid, size: 32, space: Math.max(50, wide + 14), values: (_self, ticks, _axis, _space, step) => ticks.map((tick) => tickText(tick * 1000, step)) },
          {
            stroke: ink,
            font,
            grid,
            ticks: { show: false },
            // As wide as the longest label: "0.035 flows/s".
            size: (_self, labels) => Math.max(76, 16 + 7 * Math.max(0, ...(labels ?? []).map((label) => label.length))),
            values: (_self, ticks) => ticks.map((tick) => (tick === 0 ? "0" : short(tick, isRate ? unit.replace("packets/s", "pkt/s") : unit.startsWith("%") ? "%" : ""))),
          },
        ],
        series: [
          {},
          ...order.map((index) => {
            const line = lines[index];
            const isArea = options.kind === "area" && !line.isDashed;
            return {
              label: line.name,
              stroke: line.colour,
              width: isArea ? 0.5 : 1.8,
              fill: isArea ? line.colour : undefined,
              dash: line.isDashed ? [4, 4] : undefined,
              paths: stepped,
              points: { show: false },
            } satisfies uPlot.Series;
          }),
        ],
        hooks: {
          setCursor: [(self) => say(self.cursor.idx)],
          setSelect: [
            (self) => {
              if (!options.onRange || self.select.width < 4) return;
              const from = self.posToVal(self.select.left, "x") * 1000;
              const to = self.posToVal(self.select.left + self.select.width, "x") * 1000;
              options.onRange(from, to);
            },
          ],
        },
      },
      columns,
      box,
    );
    drawLegend();
  }

  function drawLegend(): void {
    fill(
      legend,
      lines.map((line, index) => {
        const of = series.series[index];
        const last = of ? exact(of.sum as number | string) : "";
        return h(
          "li",
          { class: isShown[index] ? "" : "is-off" },
          h("button", { type: "button", class: "legend-line", title: "Show this line alone", "aria-pressed": String(isShown[index]), onclick: () => select(index) }, swatch(line.colour), h("span", { class: "legend-name" }, line.name)),
          h("span", { class: "legend-value", "data-line": index, title: last ? `${last} ${series.measure}` : "" }, ""),
          of?.condition && options.onLine
            ? h("button", { type: "button", class: "legend-filter", "aria-label": `Filter by ${line.name}`, title: `Filter: ${of.condition}`, onclick: () => options.onLine!(of.condition!) }, "+")
            : null,
        );
      }),
    );
  }

  // The width is known only after the figure has been added to the page.
  let width = 0;
  const watch = new ResizeObserver(() => {
    if (box.clientWidth === width || box.clientWidth === 0) return;
    width = box.clientWidth;
    draw();
  });
  watch.observe(box);
  options.onLeave(() => {
    watch.disconnect();
    plot?.destroy();
  });
  return root;
}

/** A small line plot of the last values of a counter. */
export function spark(values: number[], width = 120, height = 28): HTMLCanvasElement {
  const ratio = window.devicePixelRatio || 1;
  const canvas = h("canvas", { class: "spark", width: width * ratio, height: height * ratio, "aria-hidden": "true" });
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const draw = canvas.getContext("2d")!;
  draw.scale(ratio, ratio);
  const most = Math.max(...values, 1e-9);
  draw.strokeStyle = token("--series-1");
  draw.lineWidth = 1.5;
  draw.beginPath();
  values.forEach((value, at) => {
    const x = (at / Math.max(1, values.length - 1)) * (width - 2) + 1;
    const y = height - 2 - (value / most) * (height - 4);
    if (at) draw.lineTo(x, y);
    else draw.moveTo(x, y);
  });
  draw.stroke();
  return canvas;
}
