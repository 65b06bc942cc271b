// SPDX-License-Identifier: Apache-2.0
// A report, opened as a file.
import assert from "node:assert/strict";

export async function report(browser, file, show) {
  await browser.visit(`file://${file}`);
  const rows = show("--group-by", "protocol", "--select", "records,total_packets,total_bytes").map((line) => line.split(",").map(Number));
  for (const [column, id] of ["records", "packets", "bytes"].entries())
    assert.equal(await browser.tile(`tile-${id}`), rows.reduce((sum, row) => sum + row[column + 1], 0), id);
  for (const page of ["Flows", "Health"]) {
    await browser.evaluate(`[...document.querySelectorAll("nav a")].find((link) => link.textContent === ${JSON.stringify(page)}).click()`);
    await browser.until(`document.querySelector("main").dataset.shown === ${JSON.stringify(page.toLowerCase())}`, page);
  }
  await browser.settled();
  return "a report in one file";
}
