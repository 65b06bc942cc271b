// SPDX-License-Identifier: Apache-2.0
// Flows between groups (Sankey), nested groups (tree map) and heat maps, drawn by ECharts. Only the
// parts that they need are imported.

import { HeatmapChart, SankeyChart, TreemapChart } from "echarts/charts";
import { GridComponent, TooltipComponent, VisualMapComponent } from "echarts/components";
import * as echarts from "echarts/core";
import { CanvasRenderer } from "echarts/renderers";
import { h, token } from "./dom";
import { colour } from "./plot";

echarts.use([HeatmapChart, SankeyChart, TreemapChart, GridComponent, TooltipComponent, VisualMapComponent, CanvasRenderer]);

export interface Link {
  source: string;
  target: string;
  value: number;
  text: string;
}

function chart(label: string, height: number, option: () => Record<string, unknown>, onLeave: (listener: () => void) => void, onClick?: (event: any) => void): HTMLElement {
  const box = h("div", { class: "chart", role: "img", "aria-label": label });
  box.style.height = `${height}px`;
  let drawn: echarts.ECharts | null = null;
  const watch = new ResizeObserver(() => {
    if (box.clientWidth === 0) return;
    if (!drawn) {
      drawn = echarts.init(box, null, { renderer: "canvas" });
      drawn.setOption(option());
      if (onClick) drawn.on("click", onClick);
    } else drawn.resize();
  });
  watch.observe(box);
  onLeave(() => {
    watch.disconnect();
    drawn?.dispose();
  });
  return box;
}

/** Options of tooltips. They are drawn on the canvas, so data never becomes markup. */
function tip(): Record<string, unknown> {
  return {
    renderMode: "richText",
    backgroundColor: token("--surface"),
    borderColor: token("--line"),
    textStyle: { color: token("--ink"), fontFamily: token("--font"), fontSize: 12 },
    confine: true,
  };
}

/** The name of a node without the side, which is added to keep equal names apart. */
export function plainName(name: string): string {
  return name.replace(/^\d+\|/, "");
}

export function sankey(label: string, nodes: string[], links: Link[], onLeave: (listener: () => void) => void, onClick?: (link: Link | null, node: string | null) => void, colours: Record<string, string> = {}): HTMLElement {
  const isNarrow = window.innerWidth < 640;
  const height = Math.max(260, Math.min(640, nodes.length * 22 + 40));
  const option = () => ({
    animation: false,
    tooltip: {
      ...tip(),
      formatter: (event: any) => (event.dataType === "edge" ? `${plainName(event.data.source)} → ${plainName(event.data.target)}\n${event.data.text}` : plainName(event.name)),
    },
    series: [
      {
        type: "sankey",
        left: 8,
        right: isNarrow ? 90 : 170,
        top: 8,
        bottom: 8,
        nodeWidth: 12,
        nodeGap: 10,
        draggable: false,
        emphasis: { focus: "adjacency" },
        layoutIterations: 24,
        label: { color: token("--ink"), fontFamily: token("--font"), fontSize: 12, formatter: (event: any) => plainName(event.name), width: isNarrow ? 84 : 160, overflow: "truncate" },
        lineStyle: { color: "source", opacity: 0.35, curveness: 0.5 },
        data: nodes.map((name, index) => ({ name, itemStyle: { color: colours[name] ?? colour(index), borderWidth: 0 } })),
        links,
      },
    ],
  });
  const click = (event: any) => {
    if (event.dataType === "edge") onClick?.(event.data as Link, null);
    else onClick?.(null, event.name);
  };
  return chart(label, height, option, onLeave, onClick ? click : undefined);
}

/** A group, and the groups within it. */
export interface Branch {
  name: string;
  value: number;
  text: string;
  condition: string | null;
  children?: Branch[];
  /** Whether this is the rest beyond the largest groups. */
  isRest?: boolean;
}

/** Areas in proportion to values; the areas of nested groups lie within that of their parent. */
export function tree(label: string, branches: Branch[], onLeave: (listener: () => void) => void, onClick: (condition: string | null) => void): HTMLElement {
  const coloured = branches.map((branch, index) => ({ ...branch, itemStyle: { color: branch.isRest ? token("--series-other") : colour(index) } }));
  const font = { fontFamily: token("--font"), fontSize: 12, overflow: "truncate" };
  const option = () => ({
    animation: false,
    tooltip: { ...tip(), formatter: (event: any) => `${event.treePathInfo.slice(1).map((part: any) => part.name).join("\n")}\n${event.data.text}` },
    series: [
      {
        type: "treemap",
        left: 0,
        right: 0,
        top: 0,
        bottom: 0,
        roam: false,
        nodeClick: false,
        breadcrumb: { show: false },
        label: { ...font, color: "#fff", textBorderColor: "rgb(0 0 0 / 45%)", textBorderWidth: 2 },
        upperLabel: { ...font, show: true, height: 22, color: token("--ink") },
        itemStyle: { borderColor: token("--surface"), borderWidth: 1, gapWidth: 1 },
        levels: [{ itemStyle: { gapWidth: 3 }, upperLabel: { show: false } }],
        data: coloured,
      },
    ],
  });
  return chart(label, 460, option, onLeave, (event) => onClick(event.data?.condition ?? null));
}

export function heatmap(label: string, columns: string[], rows: string[], cells: [number, number, number][], text: (value: number) => string, onLeave: (listener: () => void) => void, onClick?: (row: number) => void): HTMLElement {
  const most = Math.max(1, ...cells.map((cell) => cell[2]));
  const isNarrow = window.innerWidth < 640;
  const ink = token("--ink-2");
  const font = { color: ink, fontFamily: token("--font"), fontSize: 12 };
  const option = () => ({
    animation: false,
    // Leaves space after the last column for half of its label.
    grid: { left: isNarrow ? 96 : 170, right: 36, top: 8, bottom: 58 },
    tooltip: { ...tip(), formatter: (event: any) => `${rows[event.data[1]]}\n${columns[event.data[0]]}\n${text(event.data[2])}` },
    xAxis: { type: "category", data: columns, axisLabel: { ...font, hideOverlap: true }, axisLine: { lineStyle: { color: token("--line") } }, axisTick: { show: false } },
    yAxis: { type: "category", data: rows, inverse: true, axisLabel: { ...font, width: isNarrow ? 86 : 156, lineHeight: 13, overflow: "break" }, axisLine: { show: false }, axisTick: { show: false } },
    visualMap: { min: 0, max: most, orient: "horizontal", left: "center", bottom: 0, itemHeight: 120, itemWidth: 12, text: [text(most), "0"], textStyle: font, inRange: { color: [token("--heat-0"), token("--heat-1"), token("--heat-2"), token("--heat-3")] }, calculable: false },
    series: [{ type: "heatmap", data: cells, itemStyle: { borderWidth: 0 } }],
  });
  return chart(label, Math.max(220, rows.length * 28 + 90), option, onLeave, onClick ? (event) => onClick(event.data[1]) : undefined);
}
