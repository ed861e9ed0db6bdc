// Pictures of the page for people to look at, in target/screenshots. What is asserted is that each shows a graph.

import { ok } from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { boxesOf, clickBox, dragStrip, settled } from "./browser.mjs";
import { top } from "./fixtures.mjs";

const folder = join(top, "target/screenshots");

async function picture(page, name, boxes = 5) {
  mkdirSync(folder, { recursive: true });
  await settled(page);
  ok((await boxesOf(page)).length > boxes);
  await page.screenshot({ path: join(folder, `${name}.png`) });
}

async function take(browser, { small, big, timeline, base, new: changed }) {
  for (const dark of [false, true]) {
    const scheme = dark ? "dark" : "light";
    const page = await browser.open(big.page, { dark });
    await picture(page, `flame-${scheme}`);
    await dragStrip(page, 420, 900);
    await clickBox(page, (await boxesOf(page)).find(({ path }) => path.length === 5));
    await picture(page, `zoom-range-${scheme}`);
    await page.keyboard.press("Escape");
    await settled(page);
    await page.fill("#search", "flush");
    await picture(page, `search-${scheme}`);
    await page.fill("#search", "");
    await page.click("[data-view=callers]");
    await page.click("#by-cpu");
    await settled(page);
    const { x, y } = (await boxesOf(page)).find(({ path }) => path.length === 3);
    await page.mouse.move(x + 10, y + 10);
    await picture(page, `callers-${scheme}`);
    await page.click("#process-filter button");
    await picture(page, `processes-${scheme}`);
    const awkward = await browser.open(small.page, { dark });
    await picture(awkward, `small-${scheme}`);
    for (const [{ page: file }, name] of [[timeline, "known"], [big, "big"]]) {
      const lanes = await browser.open(file, { dark });
      await lanes.click("#toggle-timeline");
      await lanes.waitForFunction(() => window.collector.lanes().length > 0);
      const { left, y, width } = (await lanes.evaluate(() => window.collector.lanes()))[1];
      await lanes.mouse.move(left + width / 2, y + 18);
      await picture(lanes, `timeline-${name}-${scheme}`, 3);
    }
    const compared = await browser.open(changed.page, { dark });
    await compared.setInputFiles("#compare-file", base.page);
    await compared.locator("#comparison").waitFor();
    await picture(compared, `comparison-${scheme}`);
  }
  await picture(await browser.open(big.page, { width: 760, height: 1000 }), "narrow");
}

export const tests = [["pictures are taken", take]];
