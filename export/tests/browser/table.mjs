// The table of functions: numbers, order, highlight, scrolling.

import { deepEqual, equal, ok } from "node:assert/strict";
import { functionsOf, stateOf } from "./browser.mjs";
import { functionKey } from "./fixtures.mjs";

function isSorted(values, compare) {
  return values.every((value, i) => i === 0 || compare(values[i - 1], value) <= 0);
}

async function sortedAndRight(browser, { small, big }) {
  for (const { page: file, truth } of [small, big]) {
    const page = await browser.open(file);
    const expected = truth.weightByFunction(truth.select());
    const rows = await functionsOf(page);
    equal(rows.length, expected.size);
    for (const row of rows) deepEqual({ self: row.self, total: row.total }, expected.get(functionKey(row)), row.name);
    ok(isSorted(rows, (a, b) => b.self - a.self));
    const first = page.locator("#functions-body tr").first();
    equal(await first.locator("span").textContent(), rows[0].name);

    await page.click("#functions th[data-by=total] button");
    equal(await page.getAttribute("#functions th[data-by=total]", "aria-sort"), "descending");
    ok(isSorted(await functionsOf(page), (a, b) => b.total - a.total));
    await page.click("#functions th[data-by=total] button");
    ok(isSorted(await functionsOf(page), (a, b) => a.total - b.total));
    await page.click("#functions th[data-by=name] button");
    ok(isSorted(await functionsOf(page), (a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0)));
  }
}

async function clickHighlights(browser, { small: { page: file, truth } }) {
  const page = await browser.open(file);
  const rows = await functionsOf(page);
  for (const name of ["fib", '<img src=x onerror="window.pwned=4"></script><script>window.pwned=5</script>']) {
    const row = page.locator("#functions-body tr").nth(rows.findIndex((row) => row.name === name));
    await row.locator("button").click();
    const { matched } = await stateOf(page);
    equal(matched.weight, truth.matched(truth.select(), (fn) => fn.name === name));
    equal(await row.locator("button").getAttribute("aria-pressed"), "true");
    await row.locator("button").click();
    ok(await page.locator("#matched").isHidden());
  }
  deepEqual(page.complaints, []);
}

async function searchNarrows(browser, { small: { page: file } }) {
  const page = await browser.open(file);
  const all = await functionsOf(page);
  await page.fill("#search", "deep_1");
  const found = await functionsOf(page);
  deepEqual(
    found.map(({ name }) => name).sort(),
    all.map(({ name }) => name).filter((name) => name.includes("deep_1")).sort(),
  );
  await page.fill("#search", "");
  equal((await functionsOf(page)).length, all.length);
}

// Only rows in sight are in the page, and scrolling reaches the last.
async function longTables(browser, { big: { page: file } }) {
  const page = await browser.open(file);
  const rows = await functionsOf(page);
  ok(rows.length > 1_000);
  ok((await page.locator("#functions-body tr").count()) < 100);
  await page.locator("#functions-scroller").evaluate((element) => element.scrollTo(0, element.scrollHeight));
  const last = page.locator("#functions-body span", { hasText: rows.at(-1).name }).last();
  await last.waitFor();
  const { y, height } = await last.boundingBox();
  const view = await page.locator("#functions-scroller").boundingBox();
  ok(y >= view.y && y + height <= view.y + view.height);
}

async function canBeHidden(browser, { small: { page: file } }) {
  const page = await browser.open(file);
  const before = (await page.locator("#flame-canvas").boundingBox()).width;
  await page.keyboard.press("t");
  ok(await page.locator("#functions").isHidden());
  await page.locator(`#flame-canvas:not([style*="${before}px"])`).waitFor();
  ok((await page.locator("#flame-canvas").boundingBox()).width > before + 300);
}

export const tests = [
  ["table: sorted, and every number is the truth", sortedAndRight],
  ["table: a click highlights a function", clickHighlights],
  ["table: a search narrows it", searchNarrows],
  ["table: long ones scroll", longTables],
  ["table: hidden, the graph takes its place", canBeHidden],
];
