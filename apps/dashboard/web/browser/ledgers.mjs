// SPDX-License-Identifier: Apache-2.0
// Two runs that both lost packets: the badge has the sum, and Health names each with its own.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

export async function ledgers(browser, address, ...files) {
  const lost = files.map((file) => JSON.parse(readFileSync(file, "utf8")).source_dropped);
  assert(lost.length === 2 && lost.every((packets) => packets > 0), String(lost));
  const text = (packets) => `${packets.toLocaleString("en-US")} packets lost`;
  await browser.visit(`${address}?page=health`);
  assert.equal(await browser.text("#badge"), `Ledger: ${text(lost[0] + lost[1])}`);
  const panels = await browser.evaluate(`[...document.querySelectorAll("main .panel")].filter((panel) => panel.querySelector("header .badge")).map((panel) => [panel.querySelector("header p").textContent, panel.querySelector("header .badge").textContent])`);
  for (const [at, file] of files.entries()) {
    const name = file.split("/").at(-1);
    const its = panels.filter(([note]) => note.split("/").at(-1) === name);
    assert.deepEqual(its.map(([, said]) => said), [text(lost[at])], JSON.stringify(panels));
  }
  await browser.visit(address);
  assert.equal(await browser.text("#tile-ledger .tile-value"), text(lost[0] + lost[1]));
  return "two ledgers with losses";
}
