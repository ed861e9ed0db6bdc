// Pictures of the page for people to look at, in target/screenshots. What is asserted is that each shows a graph.

import { ok } from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { boxesOf, clickBox, dragStrip, settled } from "./browser.mjs";
import { top } from "./fixtures.mjs";

const folder = join(top, "target/screenshots");

async function picture(page, name) {
  mkdirSync(folder, { recursive: true });
  await settled(page);
  ok((await boxesOf(page)).length > 5);
  await page.screenshot({ path: join(folder, `${name}.png`) });
}

async function take(browser, { small, big }) {
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
  }
  await picture(await browser.open(big.page, { width: 760, height: 1000 }), "narrow");
}

export const tests = [["pictures are taken", take]];
