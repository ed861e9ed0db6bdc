// Tests of the HTML page and of other formats in a real Chromium: `node export/tests/browser/run.mjs [PART OF A TEST'S NAME]...`
//
// In: recordings of known truth, which `cargo run -p collector-export --example browser_fixtures` writes to
// target/browser. Out: a line a test, `N passed, N failed, N skipped` at the end, pictures in target/screenshots.
//
// COLLECTOR_NODE_MODULES is the folder with playwright-core (target/node/node_modules unless set),
// COLLECTOR_CHROMIUM the browser (/usr/bin/chromium unless set).

import { Browser } from "./browser.mjs";
import { makeFixtures } from "./fixtures.mjs";
import { tests as loading } from "./loading.mjs";
import { tests as graph } from "./graph.mjs";
import { tests as filters } from "./filters.mjs";
import { tests as table } from "./table.mjs";
import { tests as timeline } from "./timeline.mjs";
import { tests as comparison } from "./comparison.mjs";
import { tests as pictures } from "./pictures.mjs";
import { tests as flamegraph } from "./flamegraph.mjs";
import { tests as speedscope } from "./speedscope.mjs";
import { tests as firefox } from "./firefox.mjs";

const wanted = process.argv.slice(2);
const ours = [...loading, ...graph, ...filters, ...table, ...timeline, ...comparison, ...pictures];
const all = [...ours, ...flamegraph, ...speedscope, ...firefox];
const chosen = all.filter(([name]) => wanted.length === 0 || wanted.some((part) => name.includes(part)));

const fixtures = makeFixtures();
const browser = await Browser.start();
let failed = 0;
try {
  for (const [name, test] of chosen) {
    try {
      const note = await test(browser, fixtures);
      console.log(`test ${name} ... ok${note ? `: ${note}` : ""}`);
    } catch (error) {
      failed++;
      console.log(`test ${name} ... FAILED\n${error.stack}`);
    } finally {
      await browser.closePages();
    }
  }
} finally {
  await browser.stop();
}
const skipped = all.length - chosen.length;
console.log(`${chosen.length - failed} passed, ${failed} failed, ${skipped} skipped`);
process.exitCode = failed > 0 || chosen.length === 0 ? 1 : 0;
