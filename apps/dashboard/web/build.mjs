// SPDX-License-Identifier: Apache-2.0
// Builds what the program serves: script and style into ../dist, and the page of reports with both
// in it. One build gives the bytes of another one.
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync, mkdirSync } from "node:fs";
import { build } from "esbuild";

const dist = new URL("../dist/", import.meta.url).pathname;
mkdirSync(dist, { recursive: true });

await build({
  entryPoints: { app: "src/main.ts" },
  outdir: dist,
  bundle: true,
  minify: true,
  format: "iife",
  target: "es2022",
  charset: "utf8",
  legalComments: "none",
  banner: { js: "/* TurboFlow, Apache-2.0; uPlot, MIT; Apache ECharts, Apache-2.0; zrender, BSD-3-Clause */" },
  loader: { ".css": "css" },
  logLevel: "warning",
});

const read = (name) => readFileSync(name, "utf8");
const script = read(`${dist}app.js`).replaceAll("</script", "<\\/script");
const style = read(`${dist}app.css`);
const hash = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
const policy =
  `default-src 'none'; script-src ${hash(script)}; style-src ${hash(style)}; ` +
  `base-uri 'none'; form-action 'none'`;
const page = read("src/index.html");
const report = page
  .replace(
    /<!-- served -->[\s\S]*<!-- end -->/,
    () =>
      `<meta http-equiv="Content-Security-Policy" content="${policy}">\n` +
      `<style>${style}</style>`,
  )
  .replace(
    "</body>",
    () =>
      `<script type="application/json" id="report">{{ANSWERS}}</script>\n` +
      `<script>${script}</script>\n</body>`,
  );
writeFileSync(`${dist}index.html`, page);
writeFileSync(`${dist}report.html`, report);
writeFileSync(`${dist}icon.svg`, read("src/icon.svg"));
