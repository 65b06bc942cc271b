// SPDX-License-Identifier: Apache-2.0
// Every page at 1440 and 360 px, dark and light: numbers of the overview against those of
// `turboflow show`, nothing to say for axe-core, no line wider than the window.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";

const axe = readFileSync(new URL("../node_modules/axe-core/axe.min.js", import.meta.url), "utf8");

/** The page of records with in-band telemetry: nothing refused, and the greatest queue depths. */
export async function performance(browser, address, show) {
  await browser.visit(`${address}?page=performance`);
  assert.deepEqual(await browser.evaluate(`[...document.querySelectorAll("main .problem")].map((it) => it.textContent)`), []);
  const [greatest] = show("--by", "max_queue_depth", "--top", "1", "--select", "max_queue_depth");
  const shown = await browser.evaluate(`[...document.querySelectorAll("main .panel")].find((panel) => panel.textContent.startsWith("Flows with the greatest queue depth"))?.querySelector("tbody tr:not(.space) td:nth-child(4)")?.textContent`);
  assert.equal(shown?.replaceAll(",", ""), greatest);
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
