// Filters: range of time, processes, threads, kinds of sample.

import { deepEqual, equal, ok } from "node:assert/strict";
import { boxesOf, dragStrip, functionsOf, settled, stateOf } from "./browser.mjs";
import { functionKey, joined, sum } from "./fixtures.mjs";

// The page's totals, functions and boxes are those of `samples`.
async function showsExactly(page, truth, samples) {
  const state = await stateOf(page);
  equal(state.samples, samples.length);
  equal(state.total, sum(samples));
  const functions = truth.weightByFunction(samples);
  const shown = await functionsOf(page);
  for (const fn of shown) {
    deepEqual({ self: fn.self, total: fn.total }, functions.get(functionKey(fn)), fn.name);
  }
  equal(shown.length, functions.size);
  const paths = truth.weightByPath(samples);
  for (const { path, total } of await boxesOf(page)) equal(total, paths.get(joined(path)), path.join(" / "));
}

async function dragSelects(browser, { small, big }) {
  for (const { page: file, truth } of [small, big]) {
    const page = await browser.open(file);
    const { system } = await stateOf(page);
    const { width } = await page.locator("#strip").boundingBox();
    for (const [from, to] of [[300, 500], [900, 200], [1000, width - 1]]) {
      await dragStrip(page, from, to);
      const ends = [from, to]
        .sort((a, b) => a - b)
        .map((x) => Math.round((x / width) * system.duration));
      const { range } = await stateOf(page);
      ok(ends.every((end, i) => Math.abs(end - range[i]) <= system.duration / width), `${ends} is not ${range}`);
      await showsExactly(page, truth, truth.select(({ us }) => us >= range[0] && us < range[1]));
    }
    await page.locator("#strip").dblclick({ position: { x: 600, y: 40 } });
    await settled(page);
    equal((await stateOf(page)).range, null);
    await showsExactly(page, truth, truth.select());
  }
}

async function keysSelect(browser, { small: { page: file, truth } }) {
  const page = await browser.open(file);
  await page.focus("#strip");
  await page.keyboard.press("ArrowRight");
  deepEqual((await stateOf(page)).range, [1_260_000, 1_860_000]);
  await page.keyboard.press("Shift+ArrowLeft");
  deepEqual((await stateOf(page)).range, [1_260_000, 1_800_000]);
  await showsExactly(page, truth, truth.select(({ us }) => us >= 1_260_000 && us < 1_800_000));
  await page.keyboard.press("Escape");
  equal((await stateOf(page)).range, null);
}

async function choose(page, kind, detail, name) {
  await page.click(`#${kind}-filter button`);
  const options = page.locator(`#${kind}-list [role=option]`);
  const texts = await options.locator("span").allTextContents();
  const details = await options.locator("small").allTextContents();
  const at = texts.findIndex((text, i) => text === name && details[i] === String(detail));
  ok(at >= 0, `${name} ${detail} is not in ${texts}`);
  await options.nth(at).click();
  await page.keyboard.press("Escape");
  await settled(page);
}

async function processes(browser, { small: { page: file, truth } }) {
  const page = await browser.open(file);
  const java = truth.processes.find(({ name }) => name === "java");
  await choose(page, "process", java.pid, java.name);
  await showsExactly(page, truth, truth.select((sample) => truth.processOf(sample) === java));
  const hostile = truth.processes.find(({ name }) => name.startsWith("</script>"));
  await choose(page, "process", hostile.pid, hostile.name);
  const both = truth.select((sample) => [java, hostile].includes(truth.processOf(sample)));
  await showsExactly(page, truth, both);
  await page.click("#process-filter button");
  await page.click("#process-list .actions button:first-child");
  await page.keyboard.press("Escape");
  await showsExactly(page, truth, truth.select());
}

// A pid that was used twice is two processes; finding them by pid takes both.
async function reusedPid(browser, { small: { page: file, truth } }) {
  const page = await browser.open(file);
  await page.click("#process-filter button");
  await page.fill("#process-list input", "100");
  const lives = truth.processes.filter(({ pid }) => pid === 100);
  equal(await page.locator("#process-list [role=option]").count(), lives.length);
  await page.locator("#process-list [role=option]").last().click();
  const last = truth.select((sample) => truth.processOf(sample) === lives.at(-1));
  await showsExactly(page, truth, last);
  await page.click("#process-list .actions button:last-child");
  await showsExactly(page, truth, truth.select((sample) => lives.includes(truth.processOf(sample))));
}

async function threads(browser, { small: { page: file, truth } }) {
  const page = await browser.open(file);
  const worker = truth.threads.find(({ name }) => name.startsWith("worker"));
  await choose(page, "thread", worker.tid, worker.name);
  await showsExactly(page, truth, truth.select(({ thread }) => thread === worker.id));
  // Another process has no such thread: the choice of threads is dropped with it.
  const java = truth.processes.find(({ name }) => name === "java");
  await choose(page, "process", java.pid, java.name);
  await showsExactly(page, truth, truth.select((sample) => truth.processOf(sample) === java));
  await page.click("#thread-filter button");
  const shown = await page.locator("#thread-list [role=option] span").allTextContents();
  deepEqual(shown.sort(), ["C2 compiler", "java"]);
}

async function together(browser, { big: { page: file, truth } }) {
  const page = await browser.open(file);
  await dragStrip(page, 200, 640);
  const { range } = await stateOf(page);
  const java = truth.processes.find(({ name }) => name === "java");
  await choose(page, "process", java.pid, "java");
  const thread = truth.threads.find(({ name }) => name === "java 7");
  await choose(page, "thread", thread.tid, "java 7");
  const expected = truth.select(
    (sample) => sample.us >= range[0] && sample.us < range[1] && sample.thread === thread.id,
  );
  ok(expected.length > 100);
  await showsExactly(page, truth, expected);
  const { weighMs } = await stateOf(page);
  return `weighed in ${weighMs.toFixed(0)} ms`;
}

async function kinds(browser, { small: { page: file, truth } }) {
  const page = await browser.open(file);
  await page.selectOption("#kind", { label: "off-cpu" });
  await settled(page);
  const samples = truth.select(undefined, 1);
  equal(sum(samples), 20_100_000);
  await showsExactly(page, truth, samples);
  ok((await page.locator("#functions-body").textContent()).includes("ms"));
  await page.selectOption("#kind", { label: "cpu" });
  await showsExactly(page, truth, truth.select());
}

// What is to be chosen from is on one line of a page that is 1400 wide, whatever events are called.
async function longNames(browser, { small: { page: file } }) {
  const page = await browser.open(file, { width: 1400 });
  const name = "uprobe:/usr/lib/x86_64-linux-gnu/libexample.so.1:handle_the_request(size:u64, path:str) /size > 4096/";
  await page.evaluate((name) => {
    for (const option of document.getElementById("kind").options) option.textContent = name;
  }, name);
  await settled(page);
  const places = await page.locator("nav > :visible").evaluateAll((all) => all.map((one) => {
    const { top, bottom, right } = one.getBoundingClientRect();
    return { middle: (top + bottom) / 2, right };
  }));
  ok(places.length > 5);
  for (const { middle, right } of places) {
    ok(Math.abs(middle - places[0].middle) < 10, "on another line");
    ok(right <= 1400);
  }
  await page.selectOption("#kind", { index: 1 });
  equal(await page.locator("#kind").getAttribute("title"), "off-cpu");
}

export const tests = [
  ["dragging on the time strip refilters, double click clears", dragSelects],
  ["the range moves by keyboard", keysSelect],
  ["filter by process", processes],
  ["a reused pid is two processes", reusedPid],
  ["filter by thread", threads],
  ["range, process and thread together on a million samples", together],
  ["kinds of sample have their own weights", kinds],
  ["long names of kinds leave the filters on one line", longNames],
];
