// Loading: what the page says of the recording, and what it must never do.

import { deepEqual, equal, match, ok } from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { boxesOf, stateOf, settled } from "./browser.mjs";
import { sum } from "./fixtures.mjs";

// How long someone waits for a picture before giving up; a limit for the wait, not a measurement.
const PATIENCE_MS = 10_000;

async function loadsQuietly(browser, { small }) {
  const page = await browser.open(small.page);
  deepEqual(page.complaints, []);
  deepEqual(page.requests, [pathToFileURL(small.page).href]);
  const state = await stateOf(page);
  equal(state.samples, small.truth.select().length);
  equal(state.total, sum(small.truth.select()));
  equal(state.system.cpus, 2);
  equal(state.system.start, 1_750_000_000_000);
  equal(state.system.duration, 3_000_000);
}

async function namesStayText(browser, { small }) {
  const page = await browser.open(small.page);
  equal(await page.locator("#host").textContent(), "host-<b>1</b>");
  equal(await page.locator("#command").textContent(), "run --flag '</script><b>'");
  match(await page.locator("#facts").textContent(), /Linux 6\.12\.9.*x86_64.*2 CPUs.*3\.00 s.*3,200 samples.*7 lost/);
  equal(await page.locator("#facts li", { hasText: "7 lost" }).getAttribute("title"), "99.00 % are <b>complete</b>");
  for (const pick of ["#process-filter button", "#thread-filter button"]) {
    await page.click(pick);
    await page.keyboard.press("Escape");
  }
  const hostile = (await boxesOf(page)).filter(({ name, width }) => name.includes("<") && width > 4);
  ok(hostile.length > 4);
  for (const { x, y, width } of hostile) {
    await page.mouse.move(x + width / 2, y + 5);
    equal(await page.locator("#tooltip img, #tooltip script, #tooltip i").count(), 0);
  }
  const made = await page.evaluate(() => ({
    pwned: "pwned" in window,
    markup: document.querySelectorAll("img, #host *, #command *, #crumbs img, .pick b").length,
    scripts: document.scripts.length,
  }));
  deepEqual(made, { pwned: false, markup: 0, scripts: 1 });
  deepEqual(page.complaints, []);
}

async function emptyRecording(browser, { empty }) {
  const page = await browser.open(empty.page);
  deepEqual(page.complaints, []);
  equal((await stateOf(page)).total, 0);
  ok(await page.locator("#empty").isVisible());
}

async function cutFile(browser, { small }) {
  const whole = readFileSync(small.page, "utf8");
  const [before, rest] = whole.split('id="profile">');
  const end = rest.indexOf("</script>");
  for (const [name, profile] of [
    ["half", rest.slice(0, Math.floor(end / 8) * 4)],
    ["noise", "!!!!"],
    ["nothing", ""],
  ]) {
    const file = join(dirname(small.page), `cut-${name}.html`);
    writeFileSync(file, `${before}id="profile">${profile}${rest.slice(end)}`);
    const page = await browser.open(file);
    match(await page.locator("#splash").textContent(), /can't be shown: .+ export it again/);
    ok(await page.locator("#splash").isVisible());
  }
}

async function aMillionSamples(browser, { big }) {
  const page = await browser.context.newPage();
  let patience;
  const late = new Promise((_, reject) => {
    patience = setTimeout(() => reject(new Error(`nothing to see after ${PATIENCE_MS} ms`)), PATIENCE_MS);
  });
  await Promise.race([late, page.goto(pathToFileURL(big.page).href).then(() => settled(page))]);
  clearTimeout(patience);
  const state = await stateOf(page);
  equal(state.samples, 1_000_000);
  ok((await page.evaluate(() => window.collector.boxes().length)) > 100);
  const { decodeMs, shownMs } = state.timings;
  return `decoded in ${decodeMs.toFixed(0)} ms, on the screen ${shownMs.toFixed(0)} ms after the start`;
}

export const tests = [
  ["loads without complaints or requests", loadsQuietly],
  ["names are text, never markup", namesStayText],
  ["an empty recording says so", emptyRecording],
  ["a broken file says so", cutFile],
  ["a million samples are shown", aMillionSamples],
];
