// Comparison of two pages of known shares: what each call path and function became, both ways round; files that
// can't be compared.

import { deepEqual, equal, match, ok } from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { boxesOf, boxNamed, functionsOf, settled, stateOf } from "./browser.mjs";

async function compared(browser, own, other, options) {
  const page = await browser.open(own.page, options);
  await page.setInputFiles("#compare-file", other.page);
  await page.locator("#comparison, #problem").filter({ visible: true }).first().waitFor();
  await settled(page);
  return page;
}

// By name: base, new, difference, ratio, to four digits.
async function changesOf(page, rows) {
  const list = (await rows(page)).map(({ name, base, now, difference, ratio }) => [
    name,
    ...[base, now, difference, ratio].map((number) => (number === null ? null : Math.round(number * 1e4) / 1e4)),
  ]);
  return Object.fromEntries(list.map(([name, ...numbers]) => [name, numbers]));
}

// 20, 30 and 50 of 100 became 80, 0 and 100 of 200, and 20 came up. JSON has no infinity: "new" is null there.
const SHARES = {
  work: [0.2, 0.4, 0.2, 2],
  fresh: [0, 0.1, 0.1, Infinity],
  same: [0.5, 0.5, 0, 1],
  old: [0.3, 0, -0.3, 0],
};

async function sharesAreTheTruth(browser, fixtures) {
  const page = await compared(browser, fixtures.new, fixtures.base);
  deepEqual(page.complaints, []);
  match(await page.locator("#base-side").textContent(), /^base\.html \(known, 100 samples of 100 ms\)$/);
  match(await page.locator("#new-side").textContent(), /^this page \(known, 200 samples of 200 ms\)$/);
  deepEqual(await changesOf(page, functionsOf), SHARES);
  // The widths are this page's, so what is gone has none.
  const boxes = await changesOf(page, boxesOf);
  const { old, ...rest } = SHARES;
  const whole = [1, 1, 0, 1];
  deepEqual(boxes, { ...rest, all: whole, prog: whole, main: whole });
  const width = (await boxNamed(page, "all")).width;
  ok(Math.abs((await boxNamed(page, "work")).width - width * 0.4) < 0.01);
  const rows = await page.locator("#functions-body tr").allTextContents();
  deepEqual(rows.map((row) => row.replace(/prog/, "|")), [
    "work|20.0 %40.0 %+20.00 pp+100.0 %",
    "fresh|–10.0 %+10.00 ppnew",
    "same|50.0 %50.0 %±0.00 pp±0.0 %",
    "old|30.0 %–−30.00 ppgone",
  ]);
  const box = await boxNamed(page, "work");
  await page.mouse.move(box.x + 5, box.y + 5);
  const text = await page.locator("#tooltip dd").allTextContents();
  deepEqual(text.slice(-3), [
    "20.0 %  (20 samples, 40.0 ms)",
    "40.0 %  (80 samples, 80.0 ms)",
    "+20.00 pp,  +100.0 %",
  ]);
}

// The base's samples stand for 2 ms each, which is two of this page's.
async function absoluteIsTheTruth(browser, fixtures) {
  const page = await compared(browser, fixtures.new, fixtures.base);
  await page.click("[data-absolute='1']");
  deepEqual(await changesOf(page, functionsOf), {
    work: [40, 80, 40, 2],
    fresh: [0, 20, 20, Infinity],
    same: [100, 100, 0, 1],
    old: [60, 0, -60, 0],
  });
  await page.click("[data-counted=total]");
  deepEqual((await changesOf(page, functionsOf)).main, [200, 200, 0, 1]);
}

async function swappedIsTheOtherWayRound(browser, fixtures) {
  const page = await compared(browser, fixtures.new, fixtures.base);
  await page.click("#swap");
  match(await page.locator("#base-side").textContent(), /^this page/);
  match(await page.locator("#new-side").textContent(), /^base\.html/);
  deepEqual(await changesOf(page, functionsOf), {
    work: [0.4, 0.2, -0.2, 0.5],
    fresh: [0.1, 0, -0.1, 0],
    same: [0.5, 0.5, 0, 1],
    old: [0, 0.3, 0.3, Infinity],
  });
  // With the other's widths what is gone here is seen.
  await page.click("[data-wide='1']");
  const width = (await boxNamed(page, "all")).width;
  ok(Math.abs((await boxNamed(page, "old")).width - width * 0.3) < 0.01);
  equal((await boxesOf(page)).some(({ name }) => name === "fresh"), false);
  // From the other page it is the same seen from there.
  const there = await compared(browser, fixtures.base, fixtures.new);
  deepEqual(await changesOf(there, functionsOf), await changesOf(page, functionsOf));
}

async function callersAreCompared(browser, fixtures) {
  const page = await compared(browser, fixtures.new, fixtures.base);
  await page.click("[data-view=callers]");
  await settled(page);
  const roots = (await boxesOf(page)).filter(({ path }) => path.length === 2);
  const { old, ...rest } = SHARES;
  deepEqual(await changesOf(page, async () => roots), rest);
}

async function coloursTellChanges(browser, fixtures) {
  for (const dark of [false, true]) {
    const page = await compared(browser, fixtures.new, fixtures.base, { dark });
    const colour = async (name) => {
      const { x, y, width } = await boxNamed(page, name);
      return page.evaluate(
        ({ x, y }) => {
          const canvas = document.getElementById("flame-canvas");
          const bounds = canvas.getBoundingClientRect();
          const [red, green, blue] = canvas.getContext("2d").getImageData(x - bounds.left, y - bounds.top, 1, 1).data;
          return { red, green, blue };
        },
        { x: Math.round(x + width - 4), y: Math.round(y + 3) },
      );
    };
    const grey = await colour("same");
    ok(Math.max(...Object.values(grey)) - Math.min(...Object.values(grey)) < 24);
    const excess = ({ red, blue }) => red - blue;
    ok(excess(await colour("work")) > 20);
    ok(excess(await colour("fresh")) > excess(await colour("work")));
    await page.click("#swap");
    await settled(page);
    ok(excess(await colour("work")) < -20);
    match(await page.locator("#legend").textContent(), /gone.*same.*new/);
  }
}

async function filtersApply(browser, fixtures) {
  const page = await compared(browser, fixtures.new, fixtures.base);
  await page.focus("#strip");
  await page.keyboard.press("ArrowRight");
  // From 84 to 124 ms of the page that is open: `same` until 100 ms, `fresh` until 120, then `work`.
  deepEqual((await stateOf(page)).range, [84_000, 124_000]);
  deepEqual(await changesOf(page, functionsOf), {
    fresh: [0, 0.5, 0.5, Infinity],
    same: [0.5, 0.4, -0.1, 0.8],
    work: [0.2, 0.1, -0.1, 0.5],
    old: [0.3, 0, -0.3, 0],
  });
  await page.click("#end-comparison");
  equal((await stateOf(page)).samples, 40);
  deepEqual((await functionsOf(page)).map(({ name, self, base }) => [name, self, base]), [
    ["fresh", 20, undefined],
    ["same", 16, undefined],
    ["work", 4, undefined],
    ["main", 0, undefined],
  ]);
  ok(await page.locator("#comparison").isHidden());
}

// A page against itself: nothing changed, whatever its names are.
async function withItself(browser, { small, big }) {
  for (const fixture of [small, big]) {
    const page = await compared(browser, fixture, fixture);
    const rows = await functionsOf(page);
    ok(rows.length > 10);
    ok(rows.every(({ difference }) => difference === 0));
    const boxes = await boxesOf(page);
    ok(boxes.length > 20 && boxes.every(({ difference }) => Math.abs(difference) < 1e-12));
    deepEqual(page.complaints, []);
    equal(await page.evaluate(() => "pwned" in window || document.querySelector("main img, dl img") !== null), false);
  }
}

async function droppedIn(browser, fixtures) {
  const page = await browser.open(fixtures.new.page);
  const text = readFileSync(fixtures.base.page, "utf8");
  await page.evaluate((text) => {
    const files = new DataTransfer();
    files.items.add(new File([text], "<b>dropped</b>.html"));
    for (const type of ["dragover", "drop"]) {
      document.body.dispatchEvent(new DragEvent(type, { dataTransfer: files, bubbles: true, cancelable: true }));
    }
  }, text);
  await page.locator("#comparison").waitFor();
  await settled(page);
  match(await page.locator("#base-side").textContent(), /^<b>dropped<\/b>\.html/);
  deepEqual(await changesOf(page, functionsOf), SHARES);
}

async function badFiles(browser, fixtures) {
  const folder = mkdtempSync(join(tmpdir(), "collector-compare-"));
  try {
    const page = await browser.open(fixtures.new.page);
    const whole = readFileSync(fixtures.base.page, "utf8");
    const start = whole.indexOf('id="profile">') + 'id="profile">'.length;
    const end = whole.indexOf("<", start);
    const profile = whole.slice(start, end);
    const wrapped = (text) => whole.slice(0, start) + text + whole.slice(end);
    const cases = {
      "other.html": ["<p>not ours</p>", /is no HTML page of Collector's/],
      "noise.html": [wrapped("!!!!"), /no text in base64/],
      "cut.html": [wrapped(profile.slice(0, Math.floor(profile.length / 8) * 4)), /profile can't be read: ./],
      "endless.html": [whole.slice(0, start + 100), /end is missing/],
      "old.html": [wrapped(deflated("CLP3")), /CLP3, not CLP4/],
      "strange.html": [wrapped(deflated("what?")), /does not know\./],
      // One string of 127 bytes, of which none is there; a count of 2^62 things.
      "short.html": [wrapped(deflated("CLP4\u0001\u007f")), /ends within a name/],
      "claims.html": [wrapped(deflated(`CLP4${"\u00ff".repeat(8)}\u007f`)), /cut short/],
    };
    for (const [name, [text, message]] of Object.entries(cases)) {
      writeFileSync(join(folder, name), text);
      await page.setInputFiles("#compare-file", join(folder, name));
      await page.locator("#problem p", { hasText: name }).waitFor();
      match(await page.locator("#problem p").textContent(), message);
      ok(await page.locator("#comparison").isHidden());
    }
    for (const [other, message] of [[fixtures.otherKind, /alloc_space, this page of cpu/], [fixtures.empty, /has no samples/]]) {
      await page.setInputFiles("#compare-file", other.page);
      await page.locator("#problem p", { hasText: basename(other.page) }).waitFor();
      match(await page.locator("#problem p").textContent(), message);
    }
    deepEqual(page.complaints, []);
    // A good one after that.
    await page.setInputFiles("#compare-file", fixtures.base.page);
    await page.locator("#comparison").waitFor();
    ok(await page.locator("#problem").isHidden());
    equal(page.requests.length, 1);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

// Latin-1 text as a profile's element has it: stored, not compressed.
function deflated(text) {
  const bytes = Buffer.from(text, "latin1");
  const head = Buffer.from([1, bytes.length, 0, 255 - bytes.length, 255]);
  return Buffer.concat([head, bytes]).toString("base64");
}

export const tests = [
  ["comparison: shares of functions and paths are the truth", sharesAreTheTruth],
  ["comparison: absolute values are the truth", absoluteIsTheTruth],
  ["comparison: swapped, and with the other's widths", swappedIsTheOtherWayRound],
  ["comparison: callers", callersAreCompared],
  ["comparison: grown is red, shrunk is blue", coloursTellChanges],
  ["comparison: filters apply, and it ends", filtersApply],
  ["comparison: with itself nothing changed", withItself],
  ["comparison: a page that is dropped in", droppedIn],
  ["comparison: files that can't be compared say why", badFiles],
];
