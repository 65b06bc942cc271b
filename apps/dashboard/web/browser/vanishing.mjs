// SPDX-License-Identifier: Apache-2.0
// A running program that goes away and comes back: the page says so, and follows it again without
// being opened anew. What answers here are metrics alone, so that this needs no rights.
import assert from "node:assert/strict";
import { createServer } from "node:http";

const badge = `document.getElementById("badge").textContent`;
const received = `[...document.querySelectorAll("#live-now tr")].find((row) => row.textContent.startsWith("received"))?.lastElementChild.textContent`;
const tiles = `[...document.querySelectorAll("#panel-live .tile-value")].map((it) => it.textContent)`;

/** Metrics of a run at this address, as long as it is not closed. */
async function program(metrics, packets) {
  const [host, port] = metrics.split(":");
  const counters = { packets_received_total: packets, packets_recorded_total: packets, bytes_received_total: 100 * packets, flows_resident: 0, source_dropped_total: 0 };
  const text = Object.entries(counters).map(([name, value]) => `turboflow_${name} ${value}\n`).join("");
  const server = createServer((_, answer) => answer.end(text));
  await new Promise((listening) => server.listen(Number(port), host, listening));
  return () =>
    new Promise((closed) => {
      server.close(closed);
      server.closeAllConnections();
    });
}

export async function vanishing(browser, address, metrics) {
  const stop = await program(metrics, 5);
  await browser.visit(`${address}?page=health`);
  await browser.until(`${badge}.includes("complete") && ${received} === "5"`, "a running program");
  await browser.evaluate("globalThis.isSame = true");
  await stop();
  await browser.until(`${badge}.includes("not reached")`, "the badge says that it is away");
  assert.match(await browser.text("#live-now .problem"), /^It is not reached: .+\.$/);
  assert.equal(await browser.text("#live-ledger .tile-value"), "not reached");
  // What was last is not now.
  assert.deepEqual((await browser.evaluate(tiles)).slice(0, 2), ["–", "–"]);
  const again = await program(metrics, 3);
  await browser.until(`${badge}.includes("complete") && ${received} === "3"`, "it is there again, from its beginning");
  await browser.until(`!${tiles}.includes("–")`, "its rates");
  assert.equal(await browser.evaluate("globalThis.isSame"), true);
  await again();
  return "a program that went away and came back";
}
