// SPDX-License-Identifier: Apache-2.0
// Looks at the dashboard in Chromium; scripts/dashboard-browser.sh starts what this needs.
//
//   node --experimental-websocket run.mjs TURBOFLOW CHECK WORDS...
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";

import { Browser } from "./chromium.mjs";
import { ledgers } from "./ledgers.mjs";
import { live } from "./live.mjs";
import { moves } from "./moves.mjs";
import { pages, performance } from "./pages.mjs";
import { report } from "./report.mjs";
import { vanishing } from "./vanishing.mjs";

const [turboflow, check, ...words] = process.argv.slice(2);
/** The lines of `turboflow show` in CSV, without the head. */
const of =
  (file) =>
  (...question) =>
    execFileSync(turboflow, ["show", file, "--format", "csv", ...question], { encoding: "utf8" }).trim().split("\n").slice(1);

const CHECKS = {
  pages: (browser, address, file, folder) => pages(browser, address, of(file), folder),
  moves: (browser, address, given, more) => moves(browser, address, of(given), given, more),
  performance: (browser, address, file) => performance(browser, address, of(file)),
  ledgers,
  vanishing,
  report: (browser, html, file) => report(browser, html, of(file)),
  live: (browser, address, metrics, capture, packets, pid, link) => live(browser, address, metrics, { capture, packets: Number(packets), pid: Number(pid), link }),
};

const browser = await Browser.open();
try {
  const done = await CHECKS[check](browser, ...words);
  assert.deepEqual(browser.errors, [], "the console");
  console.log(`browser: ${done}: well`);
} finally {
  await browser.close();
}
