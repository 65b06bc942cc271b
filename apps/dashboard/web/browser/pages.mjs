// SPDX-License-Identifier: Apache-2.0
// Every page at 1440 and 360 px, dark and light: numbers of the overview against those of
// `turboflow show`, nothing to say for axe-core, no line wider than the window.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";

const axe = readFileSync(new URL("../node_modules/axe-core/axe.min.js", import.meta.url), "utf8");

/** Plots over time whose axis has ink at its very end, where a label would be cut. */
const CLIPPED = `[...document.querySelectorAll(".plot canvas")].flatMap((canvas) => { const height = Math.ceil(30 * devicePixelRatio); const { data } = canvas.getContext("2d").getImageData(canvas.width - 4, canvas.height - height, 4, height); return data.some((value) => value) ? [canvas.closest("[role=img]").ariaLabel] : []; })`;

/**
 * The page of records with in-band telemetry: nothing refused, the greatest queue depths, and of a
 * chosen time what is of it.
 */
export async function performance(browser, address, show) {
  await browser.visit(`${address}?page=performance`);
  assert.deepEqual(await browser.evaluate(`[...document.querySelectorAll("main .problem")].map((it) => it.textContent)`), []);
  const [greatest] = show("--by", "max_queue_depth", "--top", "1", "--select", "max_queue_depth");
  const shown = await browser.evaluate(`[...document.querySelectorAll("main .panel")].find((panel) => panel.textContent.startsWith("Flows with the greatest queue depth"))?.querySelector("tbody tr:not(.space) td:nth-child(4)")?.textContent`);
  assert.equal(shown?.replaceAll(",", ""), greatest);
  // Where a time is chosen, no panel goes, and what is of whole flows says so.
  const titles = `[...document.querySelectorAll("main .panel h2")].map((it) => it.textContent)`;
  const all = await browser.evaluate(titles);
  assert(all.some((title) => title.includes("mean latency")), String(all));
  const { first_ns, last_ns } = await browser.evaluate(`fetch("/api/files").then((it) => it.json())`);
  assert.equal(await browser.evaluate(`Boolean(document.getElementById("timeless"))`), !first_ns);
  if (!first_ns) return "performance of packets with telemetry, without times";
  assert(all.some((title) => title === "Greatest queue depth over time"), String(all));
  const middle = (BigInt(first_ns) + BigInt(last_ns)) / 2n;
  await browser.visit(`${address}?page=performance&from=${middle}`);
  assert.deepEqual(await browser.evaluate(titles), all);
  const notes = await browser.evaluate(`[...document.querySelectorAll("main .panel")].filter((panel) => !panel.querySelector(".plot")).map((panel) => panel.querySelector("header p")?.textContent)`);
  assert(notes.length && notes.every((note) => note?.startsWith("of flows with packets in this time, as a whole")), String(notes));
  return "performance of packets with telemetry";
}

export async function pages(browser, address, show, folder) {
  await browser.visit(address);
  const names = await browser.evaluate(`[...document.querySelectorAll("nav a")].map((link) => link.textContent.toLowerCase())`);
  for (const [width, height] of [[1440, 900], [360, 760]])
    for (const theme of ["light", "dark"])
      for (const page of names) {
        await browser.command("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: 1, mobile: false });
        await browser.command("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value: theme }] });
        await browser.visit(`${address}?page=${page}`);
        const name = `${page} ${width} ${theme}`;
        assert((await browser.evaluate("document.documentElement.scrollWidth - innerWidth")) <= 0, `${name}: too wide`);
        assert.deepEqual(await browser.evaluate(`${axe}; axe.run().then((all) => all.violations.map((it) => it.id + " " + it.nodes[0].html))`), [], name);
        assert.deepEqual(await browser.evaluate(`[...document.querySelectorAll("main .problem")].map((it) => it.textContent)`), [], name);
        assert.deepEqual(await browser.evaluate(CLIPPED), [], `${name}: a label is cut`);
        if (page === "overview") {
          const records = show("--group-by", "protocol", "--select", "records,packets,bytes").map((line) => line.split(",").map(Number));
          for (const [column, id] of ["records", "packets", "bytes"].entries())
            assert.equal(await browser.tile(`tile-${id}`), records.reduce((sum, row) => sum + row[column + 1], 0), `${name}: ${id}`);
          const hosts = show("--group-by", "host", "--top", "10").map((line) => line.split(",")[0]);
          assert.deepEqual(await browser.evaluate(`[...document.querySelectorAll("#panel-hosts .link")].map((it) => it.textContent)`), hosts, name);
        }
        if (folder) writeFileSync(`${folder}/${page}-${width}-${theme}.png`, Buffer.from((await browser.command("Page.captureScreenshot", { format: "png" })).data, "base64"));
      }
  return `${names.length} pages, each at 1440 and 360 px, dark and light`;
}
