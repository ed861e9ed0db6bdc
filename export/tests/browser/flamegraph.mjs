// The flame graph's pictures in a browser: boxes with their titles, a click that makes one as wide as the picture, and the search. What is
// expected comes from the samples that were put in.

import { deepEqual, equal, ok } from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { joined, sum, top } from "./fixtures.mjs";

/// In pictures the root is lowest, in icicles highest.
const ENDINGS = { "flame graph": "svg", icicle: "icicle.svg" };

/// By path from the root on: the weight of the samples there. What a sample's path begins with is its thread.
function weightsOf(truth) {
  const weights = new Map();
  for (const { thread, stack, value } of truth.select()) {
    const names = truth.stacks[stack].map((id) => truth.functions[id].name).reverse();
    // What separates names in lines is replaced.
    const path = ["all", ...[truth.threads[thread].name, ...names].map((name) => name.replaceAll(";", ":"))];
    for (let depth = 1; depth <= path.length; depth++) {
      const key = joined(path.slice(0, depth));
      weights.set(key, (weights.get(key) ?? 0) + value);
    }
  }
  return weights;
}

async function open(browser, fixture, ending) {
  const page = await browser.context.newPage();
  page.complaints = [];
  page.on("pageerror", (error) => page.complaints.push(error.stack));
  page.on("console", (message) => {
    if (message.type() === "error") page.complaints.push(message.text());
  });
  await page.setViewportSize({ width: 1440, height: 900 });
  await page.goto(pathToFileURL(fixture.page.replace(/html$/, ending)).href);
  return page;
}

/// The boxes, each with its path, its title, its colour, and where it is if it is shown.
async function boxesOf(page) {
  const boxes = await page.evaluate(() =>
    [...document.querySelectorAll("#frames > g")].map((group, index) => {
      const [rect, shape] = [group.querySelector("rect"), group.querySelector("rect").getBoundingClientRect()];
      const [from, width] = ["fg:x", "fg:w"].map((name) => Number(rect.getAttribute(name)));
      const place = { left: shape.left, width: shape.width };
      const shown = getComputedStyle(group).display === "none" ? null : place;
      const title = group.querySelector("title").textContent;
      return { index, title, y: Number(rect.getAttribute("y")), from, width, fill: rect.getAttribute("fill"), shown };
    }),
  );
  for (const box of boxes) {
    const [, title, weight, percent] = /^(.*) \(([\d,]+) samples, ([\d.]+)%\)$/s.exec(box.title);
    // A line's last name has blanks that do not break, as it is taken apart at its last blank.
    const name = title.replaceAll("\u00a0", " ");
    Object.assign(box, { name, weight: Number(weight.replaceAll(",", "")), percent: Number(percent) });
  }
  const root = boxes.find(({ name, width }) => name === "all" && width === Math.max(...boxes.map((box) => box.width)));
  const rowOf = (box) => Math.round(Math.abs(box.y - root.y) / 16);
  const rows = [];
  for (const box of boxes) (rows[rowOf(box)] ??= []).push(box);
  for (const box of rows.flat()) {
    const isAround = ({ from, width }) => from <= box.from && box.from + box.width <= from + width;
    const callers = (rows[rowOf(box) - 1] ?? []).filter(isAround);
    equal(callers.length, box === root ? 0 : 1, box.title);
    box.path = [...(callers[0]?.path ?? []), box.name];
  }
  return boxes;
}

const weightsDrawn = (boxes) => new Map(boxes.map(({ path, weight }) => [joined(path), weight]));
const sorted = (weights) => [...weights].sort(([a], [b]) => (a < b ? -1 : 1));
const isWithin = (path, around) => around.every((name, depth) => path[depth] === name);
const group = (page, box) => page.locator("#frames > g").nth(box.index);

/// Takes a step with both pictures.
const both = (test) => async (browser, fixtures) => {
  for (const [name, ending] of Object.entries(ENDINGS)) {
    const page = await open(browser, fixtures.small, ending);
    await test(page, fixtures.small.truth, name);
    deepEqual(page.complaints, []);
    equal(await page.evaluate(() => window.pwned), undefined);
  }
};

async function titlesTellTheWeight(page, truth, picture) {
  const boxes = await boxesOf(page);
  deepEqual(sorted(weightsDrawn(boxes)), sorted(weightsOf(truth)));
  const [total, root] = [sum(truth.select()), boxes.find(({ path }) => path.length === 1)];
  for (const { weight, percent, shown } of boxes) {
    ok(Math.abs(percent - (100 * weight) / total) <= 0.005);
    ok(Math.abs(shown.width / root.shown.width - weight / total) < 0.001);
  }
  const called = boxes.filter(({ path }) => path.length > 1);
  ok(called.every(({ y }) => (picture === "icicle" ? y > root.y : y < root.y)));
  // Under the mouse the title is told below the picture, too.
  const widest = called.sort((a, b) => b.weight - a.weight)[0];
  await group(page, widest).hover();
  equal(await page.locator("#details").textContent(), `Function: ${widest.title}`);
  const folder = join(top, "target/screenshots");
  mkdirSync(folder, { recursive: true });
  await page.screenshot({ path: join(folder, `${ENDINGS[picture]}.png`) });
}

async function aClickZooms(page, truth) {
  const before = await boxesOf(page);
  const all = before.find(({ path }) => path.length === 1);
  const clicked = before.find(({ path }) => path.length === 5 && path[4].startsWith("server::handle"));
  await group(page, clicked).click();
  const after = await boxesOf(page);
  const expected = before.filter(({ path }) => isWithin(path, clicked.path) || isWithin(clicked.path, path));
  const shown = after.filter((box) => box.shown !== null);
  deepEqual(sorted(weightsDrawn(shown)), sorted(weightsDrawn(expected)));
  ok(expected.length > clicked.path.length && expected.length < before.length);
  for (const { path, weight, shown: place } of shown) {
    // What it was called from is as wide.
    const part = isWithin(path, clicked.path) ? weight / clicked.weight : 1;
    ok(Math.abs(place.width / all.shown.width - part) < 0.001, path.join(" "));
  }
  // A search is for what is shown.
  await search(page, "^fib ");
  equal((await page.locator("#matched").textContent()).trim(), "");
  await search(page, "^__read ");
  const read = joined([...clicked.path, "__read"]);
  equal(await page.locator("#matched").textContent(), matchedText(weightsOf(truth).get(read), clicked.weight));
  await page.locator("#search").click();
  await page.locator("#unzoom").click();
  deepEqual(await boxesOf(page), before);
}

/// Asks for a term, as by the button.
async function search(page, term) {
  page.once("dialog", (dialog) => dialog.accept(term));
  await page.locator("#search").click();
}

/// Of all it says so without a part.
function matchedText(weight, total) {
  const percent = (100 * weight) / total;
  return `Matched: ${percent === 100 ? 100 : percent.toFixed(1)}%`;
}

async function theSearchHighlights(page, truth) {
  const before = await boxesOf(page);
  await search(page, "^fib ");
  const found = (await boxesOf(page)).filter(({ index, fill }) => fill !== before[index].fill);
  const expected = before.filter(({ name }) => name === "fib");
  deepEqual(sorted(weightsDrawn(found)), sorted(weightsDrawn(expected)));
  ok(expected.length > 1 && new Set(found.map(({ fill }) => fill)).size === 1);
  // Samples of several of these count once.
  const matched = truth.matched(truth.select(), ({ name }) => name === "fib");
  equal(await page.locator("#matched").textContent(), matchedText(matched, sum(truth.select())));
  await page.locator("#search").click();
  deepEqual(await boxesOf(page), before);
}

export const tests = [
  ["flamegraph: titles tell the weight", both(titlesTellTheWeight)],
  ["flamegraph: a click zooms", both(aClickZooms)],
  ["flamegraph: the search highlights", both(theSearchHighlights)],
];
