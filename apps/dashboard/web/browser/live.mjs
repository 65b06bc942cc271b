// SPDX-License-Identifier: Apache-2.0
// A running program: the page follows its counters, and its badge says how many packets were
// dropped on purpose. Prints how long the page took to show what the program said.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";

const badge = `document.getElementById("badge").textContent`;
const received = `[...document.querySelectorAll("#live-now tr")].find((row) => row.textContent.startsWith("received"))?.lastElementChild.textContent.replaceAll(",", "")`;

export async function live(browser, address, metrics, { capture, packets, pid, link }) {
  const counter = async (name) => {
    const text = await (await fetch(`http://${metrics}/metrics`)).text();
    return Number(new RegExp(`^turboflow_${name} (\\d+)$`, "m").exec(text)[1]);
  };
  const until = async (name, is) => {
    for (;;) {
      const now = await counter(name);
      if (is(now)) return now;
    }
  };
  const send = (...words) => execFileSync("tcpreplay", ["-q", "-i", link, ...words, capture], { stdio: "ignore" });
  await browser.visit(`${address}?page=health`);
  await browser.until(`${badge}.includes("complete")`, "a complete ledger");
  // Slower than the smallest ring is full.
  send("--mbps", "10");
  await until("packets_received_total", (count) => count === packets);
  const start = Date.now();
  await browser.until(`${received} === "${packets}"`, `${packets} packets received`);
  const followed = Date.now() - start;
  // While the program is stopped, the ring fills up.
  process.kill(pid, "SIGSTOP");
  send("--topspeed", "--loop", "5");
  process.kill(pid, "SIGCONT");
  const seen = await until("source_seen_total", (count) => count === 6 * packets);
  const dropped = await counter("source_dropped_total");
  assert(dropped > 0 && seen > dropped, `${dropped} of ${seen}`);
  const text = `${dropped.toLocaleString("en-US")} packets lost`;
  await browser.until(`${badge}.includes(${JSON.stringify(text)})`, text);
  return `a running program: ${followed} ms until the page showed its packets; ${dropped} dropped ones are on the badge`;
}
