// SPDX-License-Identifier: Apache-2.0
// What a reader does: filters, completes, clicks, chooses a time, looks at a host and at one flow;
// the numbers behind each step against those of `turboflow show`. The records are biflows.
import assert from "node:assert/strict";
import { copyFileSync } from "node:fs";

const where = `new URLSearchParams(location.search).get("where")`;

/** The sums of columns over the rows that `turboflow show` prints. */
function sums(show, columns, ...words) {
  const rows = show("--group-by", "protocol", "--select", columns.join(","), ...words).map((line) => line.split(",").map(Number));
  return columns.map((_, at) => rows.reduce((sum, row) => sum + row[at + 1], 0));
}

async function filters(browser, address, show) {
  await browser.visit(address);
  await browser.typeFilter("tc");
  await browser.until(`[...document.querySelectorAll("#choices li")].some((it) => it.textContent.startsWith("tcp"))`, "a completion");
  while ((await browser.text("#choices [aria-selected=true]"))?.startsWith("tcp") !== true || (await browser.text("#choices [aria-selected=true] span")) !== "tcp") await browser.press("ArrowDown");
  await browser.press("Tab");
  await browser.until(`document.getElementById("filter").value === "tcp "`, "tcp is taken");
  await browser.command("Input.insertText", { text: "and port 443" });
  await browser.press("Enter");
  await browser.until(`${where} === "tcp and port 443"`, "the filter is in the address");
  await browser.settled();
  assert.equal(await browser.tile("tile-records"), sums(show, ["records"], "--where", "tcp and port 443")[0]);
  // A plain address is either end of a flow, in words of the language.
  const host = await browser.text("#panel-hosts .link");
  for (const [typed, filter] of [[host, `host ${host}`], [` ${host}/32 `, `net ${host}/32`], ["2001:db8::1", "host 2001:db8::1"], ["2001:db8::/32", "net 2001:db8::/32"]]) {
    await browser.typeFilter(typed);
    await browser.press("Enter");
    await browser.until(`${where} === ${JSON.stringify(filter)} && document.getElementById("filter").value === ${JSON.stringify(filter)}`, filter);
    await browser.settled();
    assert.equal(await browser.tile("tile-records"), sums(show, ["records"], "--where", filter)[0], filter);
  }
  await browser.typeFilter("bites > 5");
  await browser.press("Enter");
  await browser.until(`!document.getElementById("filter-error").hidden`, "the mistake is said");
  assert.equal(await browser.text("#filter-error mark"), "bites");
  // The browser logs every refusal.
  assert(browser.errors.splice(0).every((error) => error.includes("/api/query")));
}

async function clicks(browser, address, show) {
  await browser.visit(address);
  const host = await browser.text("#panel-hosts .link");
  await browser.click("#panel-hosts .link");
  await browser.until(`${where} === ${JSON.stringify(`host ${host}`)}`, "a click filters");
  await browser.settled();
  assert.equal(await browser.tile("tile-records"), sums(show, ["records"], "--where", `host ${host}`)[0]);
  await browser.visit(address);
  await browser.evaluate(`scrollTo(0, 300)`);
  assert(await browser.evaluate(`scrollY > 0`));
  await browser.evaluate(`document.querySelector('[aria-label="All about ${host}"]').click()`);
  await browser.until(`document.querySelector("#host-sent")`, "the page of a host");
  await browser.settled();
  assert.equal(await browser.evaluate(`scrollY`), 0, "it starts at its top");
  const [out, into] = ["src", "dst"].map((side) => sums(show, ["bytes", "reverse_bytes"], "--where", `${side}_addr == ${host}`));
  assert.deepEqual([await browser.tile("host-sent"), await browser.tile("host-received")], [out[0] + into[1], into[0] + out[1]]);
}

async function times(browser, address, show) {
  await browser.visit(address);
  await browser.click('.times [title="The last 10 s of the records"]');
  await browser.until(`new URLSearchParams(location.search).get("from")`, "a time is chosen");
  await browser.settled();
  const from = await browser.evaluate(`new URLSearchParams(location.search).get("from")`);
  const [records] = sums(show, ["records"], "--within", `${from}..`);
  const [bytes] = sums(show, ["total_bytes"], "--within", `${from}..`, "--clip");
  assert.deepEqual([await browser.tile("tile-records"), await browser.tile("tile-bytes")], [records, bytes]);
  await typedTimes(browser, show);
}

/** A time as `--within` has it. The sums of tiles are of the part of each record that is in it. */
async function typedTimes(browser, show) {
  const typed = async (text) => {
    await browser.evaluate(`(() => { const box = document.getElementById("within"); box.focus(); box.select(); })()`);
    await browser.command("Input.insertText", { text });
    await browser.press("Enter");
  };
  await typed("-5s..");
  await browser.until(`!document.getElementById("within").value.startsWith("-") && document.querySelector("main").dataset.shown`, "the time that is meant");
  await browser.settled();
  const [from, last] = await browser.evaluate(`fetch("/api/files").then((it) => it.json()).then(({ last_ns }) => [new URLSearchParams(location.search).get("from"), last_ns])`);
  const [records] = sums(show, ["records"], "--within", `${from}..`);
  assert.equal(await browser.tile("tile-records"), records);
  const [packets] = sums(show, ["total_packets"], "--within", `${from}..`, "--clip");
  assert.equal(await browser.tile("tile-packets"), packets);
  const rate = packets / ((Number(BigInt(last) / 1000n) / 1000 - Date.parse(from)) / 1000);
  const average = /([\d.]+) (k?)packets\/s on average$/.exec(await browser.text("#tile-packets .tile-more"));
  const shown = average && Number(average[1]) * (average[2] ? 1000 : 1);
  assert(Math.abs(shown - rate) <= rate / 200, `${average} is not ${rate}`);
  await typed("yesterday..");
  await browser.until(`!document.getElementById("within-error").hidden`, "the mistake is said");
  assert.match(await browser.text("#within-error"), /^This is not a time: write 2024-03-01T12:30\.\.2024-03-01T13:00/);
  assert.equal(await browser.evaluate(`new URLSearchParams(location.search).get("from")`), from);
  // The browser logs every refusal.
  assert(browser.errors.splice(0).every((error) => error.includes("/api/query")));
}

async function explore(browser, address, show) {
  for (const view of ["area", "lines", "sankey", "tree", "heatmap", "table"]) {
    await browser.visit(`${address}?page=explore&view=${view}&by=src_addr,dst_port`);
    if (view !== "table") await browser.until(`document.querySelector("main canvas")`, `${view} is drawn`);
    await browser.until(`document.querySelectorAll("#panel-table tbody tr").length >= 8`, `${view}: the table`);
  }
  const [first, ...rest] = show("--group-by", "src_addr,dst_port", "--by", "total_bytes").map((line) => line.split(","));
  for (const view of ["sankey", "tree"]) {
    await browser.visit(`${address}?page=explore&view=${view}&by=src_addr,dst_port&top=1`);
    await browser.until(`document.querySelector("main canvas")`, `${view} of one group`);
    const said = await browser.evaluate(`document.querySelector("main canvas").closest("[role=img]").ariaLabel`);
    assert.equal(said.split(": ")[1], view === "sankey" ? `${first[0]}, ${first[1]} and Other` : `${first[0]} and Other`);
    assert.equal(await browser.text("main .panel:not(.controls) header p"), `the 1 largest of ${rest.length + 1} groups, the rest as Other${view === "tree" ? ", each field within the one before" : ""}`);
  }
}

async function flows(browser, address, show) {
  await browser.visit(`${address}?page=flows`);
  assert.deepEqual(await browser.evaluate(`[...document.querySelectorAll("#panel-flows th")].slice(0, 2).map((it) => it.textContent)`), ["first packet", "last packet"]);
  await browser.click("#panel-flows tbody tr.opens td:nth-child(2)");
  await browser.until(`document.querySelector("#panel-flow .features")`, "one flow");
  const flow = await browser.evaluate(`new URLSearchParams(location.search).get("flow")`);
  const [packets] = sums(show, ["total_packets"], "--where", flow);
  assert((await browser.text("#panel-flow header p")).replaceAll(",", "").includes(` ${packets} packets`), flow);
  await recordOfFlow(browser, address, show);
}

/**
 * A flow without an answer, whose record has no times of that direction; and one that the active
 * timeout has cut, where the record that is clicked is the one that is shown.
 */
async function recordOfFlow(browser, address, show) {
  const key = ["src_addr", "src_port", "dst_addr", "dst_port", "protocol"];
  const visit = async (...question) => {
    const [most] = show("--group-by", key.join(","), ...question).map((line) => line.split(","));
    const condition = key.map((name, place) => `${name} == ${most[place]}`).join(" and ");
    await browser.visit(`${address}?page=flows&flow=${encodeURIComponent(condition)}`);
  };
  await visit("--where", "reverse_packets == 0");
  await browser.until(`document.querySelector("#panel-flow .features")`, "a flow without an answer");
  await visit("--by", "records");
  await browser.until(`document.querySelector("#panel-flow .record")`, "the records of a flow");
  const second = "#panel-flow tbody tr:nth-child(2) td:first-child";
  const first = await browser.text(second);
  await browser.click(`${second} button`);
  await browser.until(`document.querySelector("#panel-flow .record").textContent.startsWith("Record 2 of ")`, "its second record");
  const shown = await browser.evaluate(`[...document.querySelectorAll("#panel-flow dt")].find((it) => it.textContent === "first packet").nextSibling.textContent`);
  assert.equal(shown, `${first} UTC`);
}

/** New records come while somebody types. */
async function typing(browser, address, given, more) {
  await browser.visit(address);
  const before = await browser.evaluate(`document.querySelector("main").dataset.snapshot`);
  await browser.typeFilter("not yet finis");
  copyFileSync(more, `${given}/more.parquet`);
  await browser.until(`document.querySelector("main").dataset.snapshot !== ${JSON.stringify(before)} && !document.querySelector("main").hasAttribute("aria-busy")`, "the new records");
  assert.deepEqual(await browser.evaluate(`[document.activeElement.id, document.getElementById("filter").value]`), ["filter", "not yet finis"]);
  await browser.command("Input.insertText", { text: "hed" });
  assert.equal(await browser.evaluate(`document.getElementById("filter").value`), "not yet finished");
}

export async function moves(browser, address, show, given, more) {
  await browser.command("Emulation.setDeviceMetricsOverride", { width: 1440, height: 900, deviceScaleFactor: 1, mobile: false });
  await filters(browser, address, show);
  await clicks(browser, address, show);
  await times(browser, address, show);
  await explore(browser, address, show);
  await flows(browser, address, show);
  await typing(browser, address, given, more);
  return "filters, completions, clicks, times, views, one flow, new records while typing";
}
