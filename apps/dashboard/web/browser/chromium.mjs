// SPDX-License-Identifier: Apache-2.0
// A Chromium without a window, driven over its debugging protocol. Node 20 or newer, with
// --experimental-websocket.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";

/** Longest wait for what a page is to show, far beyond what it takes. */
const PATIENCE_MS = 60_000;

const SETTLED = `new Promise((done) => { const look = () => { const main = document.querySelector("main"); if (main?.dataset.shown && !main.hasAttribute("aria-busy")) setTimeout(done, 300); else requestAnimationFrame(look); }; look(); })`;

export class Browser {
  #waiting = new Map();
  #number = 0;
  /** What the console said, and exceptions that nobody caught. */
  errors = [];

  static async open() {
    const browser = new Browser();
    browser.profile = mkdtempSync(`${tmpdir()}/browser-`);
    browser.process = spawn("chromium", ["--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0", `--user-data-dir=${browser.profile}`, "about:blank"], { stdio: ["ignore", "ignore", "pipe"] });
    const port = await new Promise((found) => {
      let said = "";
      browser.process.stderr.on("data", (part) => {
        said += part;
        const match = /ws:\/\/127\.0\.0\.1:(\d+)/.exec(said);
        if (match) found(match[1]);
      });
    });
    const targets = await (await fetch(`http://127.0.0.1:${port}/json/list`)).json();
    browser.socket = new WebSocket(targets.find((target) => target.type === "page").webSocketDebuggerUrl);
    await new Promise((opened) => (browser.socket.onopen = opened));
    browser.socket.onmessage = ({ data }) => {
      const message = JSON.parse(data);
      browser.#waiting.get(message.id)?.(message.result);
      if (["Log.entryAdded", "Runtime.exceptionThrown"].includes(message.method)) browser.errors.push(JSON.stringify(message.params));
    };
    for (const domain of ["Page", "Runtime", "Log"]) await browser.command(`${domain}.enable`);
    return browser;
  }

  async close() {
    this.socket.close();
    const ended = new Promise((done) => this.process.on("exit", done));
    this.process.kill();
    await ended;
    try {
      // Its helpers may write for a moment longer.
      rmSync(this.profile, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
    } catch (error) {
      console.error(`browser: ${this.profile} stays: ${error.message}`);
    }
  }

  command(method, params = {}) {
    return new Promise((answered) => {
      this.#waiting.set((this.#number += 1), answered);
      this.socket.send(JSON.stringify({ id: this.#number, method, params }));
    });
  }

  async evaluate(expression) {
    const answer = await this.command("Runtime.evaluate", { expression, awaitPromise: true, returnByValue: true });
    assert(!answer.exceptionDetails, JSON.stringify(answer.exceptionDetails));
    return answer.result.value;
  }

  /** Waits for the page to show what it was asked for. */
  settled() {
    return this.evaluate(SETTLED);
  }

  /** Waits until an expression is true of the page. */
  async until(expression, what = expression) {
    const poll = `new Promise((done) => { const end = Date.now() + ${PATIENCE_MS}; const look = () => { let it = false; try { it = ${expression}; } catch {} if (it || Date.now() > end) done(Boolean(it)); else requestAnimationFrame(look); }; look(); })`;
    assert(await this.evaluate(poll), `the page never came to: ${what}; it says: ${(await this.evaluate("document.body.innerText")).slice(0, 2000)}`);
  }

  async visit(url) {
    await this.command("Page.navigate", { url: "about:blank" });
    await this.command("Page.navigate", { url });
    await this.until("document.querySelector('main')?.dataset.shown", url);
    await this.settled();
  }

  /** Clicks the first element that a selector finds, as a pointer would. */
  async click(selector) {
    await this.until(`document.querySelector(${JSON.stringify(selector)})`, selector);
    const place = await this.evaluate(`(() => { const element = document.querySelector(${JSON.stringify(selector)}); element.scrollIntoView({ block: "center" }); const box = element.getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2]; })()`);
    for (const type of ["mousePressed", "mouseReleased"]) await this.command("Input.dispatchMouseEvent", { type, x: place[0], y: place[1], button: "left", clickCount: 1 });
  }

  async press(key) {
    const code = { Enter: 13, Tab: 9, Escape: 27, ArrowDown: 40 }[key];
    const text = key === "Enter" ? "\r" : undefined;
    await this.command("Input.dispatchKeyEvent", { type: "keyDown", key, code: key, windowsVirtualKeyCode: code, text });
    await this.command("Input.dispatchKeyEvent", { type: "keyUp", key, code: key, windowsVirtualKeyCode: code });
  }

  /** Types into the filter box in place of what is in it. */
  async typeFilter(text) {
    await this.evaluate(`(() => { const box = document.getElementById("filter"); box.focus(); box.select(); })()`);
    await this.command("Input.insertText", { text });
  }

  text(selector) {
    return this.evaluate(`document.querySelector(${JSON.stringify(selector)})?.textContent`);
  }

  /** The number of a tile. */
  async tile(id) {
    return Number((await this.text(`#${id} .tile-value`)).replaceAll(",", ""));
  }
}
