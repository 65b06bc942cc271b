// SPDX-License-Identifier: Apache-2.0
// Looks at the pages of a running dashboard in Chromium: numbers of the page against those of
// `turboflow show`, no error on the console, nothing to say for axe-core, no line wider than the
// window, at 1440 and 360 px, dark and light. Node 20 or newer:
//
//   node --experimental-websocket browser.mjs ADDRESS TURBOFLOW FILE [FOLDER FOR SCREENSHOTS]
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";

const [address, turboflow, file, folder] = process.argv.slice(2);
const axe = readFileSync(new URL("node_modules/axe-core/axe.min.js", import.meta.url), "utf8");
const profile = mkdtempSync(`${tmpdir()}/browser-`);
const chromium = spawn("chromium", ["--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0", `--user-data-dir=${profile}`, "about:blank"], { stdio: ["ignore", "ignore", "pipe"] });
const port = await new Promise((found) => {
  let said = "";
  chromium.stderr.on("data", (part) => {
    said += part;
    const match = /ws:\/\/127\.0\.0\.1:(\d+)/.exec(said);
    if (match) found(match[1]);
  });
});
const targets = await (await fetch(`http://127.0.0.1:${port}/json/list`)).json();
const socket = new WebSocket(targets.find((target) => target.type === "page").webSocketDebuggerUrl);
await new Promise((opened) => (socket.onopen = opened));
const waiting = new Map();
const errors = [];
socket.onmessage = ({ data }) => {
  const message = JSON.parse(data);
  waiting.get(message.id)?.(message.result);
  if (["Log.entryAdded", "Runtime.exceptionThrown"].includes(message.method)) errors.push(JSON.stringify(message.params));
};
let number = 0;
const command = (method, params = {}) =>
  new Promise((answered) => {
    waiting.set((number += 1), answered);
    socket.send(JSON.stringify({ id: number, method, params }));
  });
const evaluate = async (expression) => {
  const answer = await command("Runtime.evaluate", { expression, awaitPromise: true, returnByValue: true });
  assert(!answer.exceptionDetails, JSON.stringify(answer.exceptionDetails));
  return answer.result.value;
};
for (const domain of ["Page", "Runtime", "Log"]) await command(`${domain}.enable`);

const show = (...words) => execFileSync(turboflow, ["show", file, "--format", "csv", ...words], { encoding: "utf8" }).trim().split("\n").slice(1);
const SETTLED = `new Promise((done) => { const look = () => { const main = document.querySelector("main"); if (main?.dataset.shown && !main.hasAttribute("aria-busy")) setTimeout(done, 300); else requestAnimationFrame(look); }; look(); })`;
const PAGES = ["overview", "explore", "flows", "host", "network", "performance", "health"];
try {
  for (const [width, height] of [[1440, 900], [360, 760]])
    for (const theme of ["light", "dark"])
      for (const page of PAGES) {
        await command("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: 1, mobile: false });
        await command("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value: theme }] });
        const loaded = new Promise((done) => waiting.set("load", done));
        await command("Page.navigate", { url: `${address}?page=${page}` });
        await Promise.race([loaded, evaluate("new Promise((done) => setTimeout(done, 200))").catch(() => 0)]);
        await evaluate(SETTLED);
        const name = `${page} ${width} ${theme}`;
        assert((await evaluate("document.documentElement.scrollWidth - innerWidth")) <= 0, `${name}: too wide`);
        const found = await evaluate(`${axe}; axe.run().then((all) => all.violations.map((it) => it.id + " " + it.nodes[0].html))`);
        assert.deepEqual(found, [], name);
        if (page === "overview") {
          const tile = (id) => evaluate(`document.querySelector("#tile-${id} .tile-value").textContent.replaceAll(",", "")`);
          const records = show("--group-by", "protocol", "--select", "records,packets,bytes").map((line) => line.split(",").map(Number));
          for (const [column, id] of ["records", "packets", "bytes"].entries())
            assert.equal(Number(await tile(id)), records.reduce((sum, row) => sum + row[column + 1], 0), `${name}: ${id}`);
          const hosts = show("--group-by", "host", "--top", "10").map((line) => line.split(",")[0]);
          assert.deepEqual(await evaluate(`[...document.querySelectorAll("#panel-hosts .link")].map((it) => it.textContent)`), hosts, name);
        }
        if (folder) writeFileSync(`${folder}/${page}-${width}-${theme}.png`, Buffer.from((await command("Page.captureScreenshot", { format: "png" })).data, "base64"));
      }
  assert.deepEqual(errors, []);
  console.log(`browser: ${PAGES.length} pages, each at 1440 and 360 px, dark and light: well`);
} finally {
  socket.close();
  const ended = new Promise((done) => chromium.on("exit", done));
  chromium.kill();
  await ended;
  rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
}
