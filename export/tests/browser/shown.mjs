// What a page shows in a real Chromium: `node shown.mjs PAGE`. Out: JSON, for each kind the table's functions, the graph's boxes and the
// timeline's lanes.

import { deepEqual } from "node:assert/strict";
import { pathToFileURL } from "node:url";
import { Browser, boxesOf, functionsOf, settled, stateOf } from "./browser.mjs";

const browser = await Browser.start();
try {
  const page = await browser.open(process.argv[2], { height: 1400 });
  await page.click("#toggle-timeline");
  await page.waitForFunction(() => window.collector.lanes().length > 0);
  const kinds = [];
  for (const name of await page.locator("#kind option").allTextContents()) {
    await page.selectOption("#kind", { label: name });
    await settled(page);
    const { samples, total, system } = await stateOf(page);
    const lanes = await page.evaluate(() => window.collector.lanes());
    const boxes = (await boxesOf(page)).map(({ path, self, total }) => ({ path, self, total }));
    kinds.push({ name, samples, total, duration: system.duration, functions: await functionsOf(page), boxes, lanes });
  }
  deepEqual(page.complaints, []);
  deepEqual(page.requests, [pathToFileURL(process.argv[2]).href]);
  console.log(JSON.stringify(kinds));
} finally {
  await browser.stop();
}
