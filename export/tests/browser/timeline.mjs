// The timeline: lanes of a recording of which every span is known, as pixels and in words; ranges and threads that
// are chosen on it; zoom; many threads.

import { deepEqual, equal, match, ok } from "node:assert/strict";
import { functionsOf, settled, stateOf } from "./browser.mjs";

const MS = 1_000;

// From the top of a row: where rings are, what ran at full height, what is blocked, and what is below.
const RING = 4;
const HIGH = 9;
const LOW = 18;
const UNDER = 22;

async function opened(browser, { page: file }, options) {
  const page = await browser.open(file, options);
  await page.click("#toggle-timeline");
  await page.waitForFunction(() => window.collector.lanes().length > 0);
  await settled(page);
  return page;
}

async function lanesOf(page) {
  return page.evaluate(() => window.collector.lanes());
}

async function lane(page, name) {
  return (await lanesOf(page)).find((row) => row.tid !== null && row.name === name);
}

function xAt({ left, width, view }, us) {
  return left + ((us - view[0]) / (view[1] - view[0])) * width;
}

// Whether there is anything but the page's surface at a time of a lane, `down` pixels below its top.
async function painted(page, name, us, down) {
  const row = await lane(page, name);
  return page.evaluate(
    ({ x, y }) => {
      const canvas = document.getElementById("lanes-canvas");
      const bounds = canvas.getBoundingClientRect();
      const pixel = (x, y) => [...canvas.getContext("2d").getImageData(x, y, 1, 1).data].join();
      // The last line above the next row stays free.
      const free = pixel(Math.round(x - bounds.left), Math.round(y.top - bounds.top) + 26);
      return pixel(Math.round(x - bounds.left), Math.round(y.top - bounds.top) + y.down) !== free;
    },
    { x: xAt(row, us), y: { top: row.y, down } },
  );
}

async function hover(page, name, us, down) {
  const row = await lane(page, name);
  await page.mouse.move(xAt(row, us), row.y + down);
  const tooltip = page.locator("#tooltip");
  const title = await tooltip.locator("strong").textContent();
  const labels = await tooltip.locator("dt").allTextContents();
  const values = await tooltip.locator("dd").allTextContents();
  return { title, ...Object.fromEntries(labels.map((label, i) => [label, values[i]])) };
}

async function rowsAreGrouped(browser, { timeline }) {
  const page = await opened(browser, timeline);
  const rows = (await lanesOf(page)).map(({ pid, tid, name, weight }) => [pid, tid, name, weight]);
  deepEqual(rows, [
    [10, null, "app", 350],
    [10, 10, "main", 300],
    [10, 11, "worker", 50],
    [20, null, "db", 10],
    [20, 20, "db", 10],
  ]);
  deepEqual(page.complaints, []);
  // By another kind the order is another one.
  await page.selectOption("#kind", { label: "lock" });
  await settled(page);
  const names = (await lanesOf(page)).map(({ name }) => name);
  deepEqual(names, ["app", "worker", "main", "db", "db"]);
}

async function pixelsAreTheTruth(browser, { timeline }) {
  for (const dark of [false, true]) {
    const page = await opened(browser, timeline, { dark });
    const expected = [
      // Running is high; blocked is low, from its start to its end and no further.
      ["main", 5, HIGH, true],
      ["main", 95, HIGH, true],
      ["main", 105, HIGH, false],
      ["main", 105, LOW, true],
      ["main", 200, LOW, true],
      ["main", 295, LOW, true],
      ["main", 200, HIGH, false],
      ["main", 305, HIGH, true],
      ["main", 650, LOW, true],
      ["main", 650, HIGH, false],
      ["main", 905, HIGH, true],
      // Nothing is known of what was between.
      ["worker", 100, LOW, false],
      ["worker", 225, HIGH, true],
      ["worker", 260, LOW, false],
      // An estimate is a ring at its time, and no span.
      ["worker", 520, LOW, false],
      ["worker", 650, LOW, false],
      ["worker", 799, LOW, false],
      ["worker", 520, RING, false],
      // An occurrence is a tick; a lock is a band below.
      ["worker", 620, UNDER, false],
      ["worker", 750, UNDER, true],
      ["worker", 810, UNDER, false],
      ["worker", 750, LOW, false],
      // Waiting for a CPU.
      ["worker", 875, LOW, true],
      ["worker", 905, LOW, false],
      ["db", 5, HIGH, true],
      ["db", 20, HIGH, false],
    ];
    for (const [name, ms, down, is] of expected) {
      equal(await painted(page, name, ms * MS, down), is, `${name} at ${ms} ms, ${down} down`);
    }
    const near = async (ms, down) => {
      const found = [];
      for (let off = -4; off <= 4; off++) found.push(await painted(page, "worker", ms * MS + off * 800, down));
      return found.includes(true);
    };
    ok(await near(500, RING - 2), "a ring");
    ok(await near(600, UNDER + 2), "a tick");
    // A switch is a line as high as what runs, at both ends of what is blocked.
    for (const ms of [100, 900]) {
      const row = await lane(page, "main");
      const colours = await page.evaluate(
        ({ x, y }) => {
          const canvas = document.getElementById("lanes-canvas");
          const bounds = canvas.getBoundingClientRect();
          const { data } = canvas.getContext("2d").getImageData(x - bounds.left - 3, y - bounds.top, 7, 1);
          return new Set(Array.from({ length: 7 }, (_, i) => data.slice(i * 4, i * 4 + 3).join())).size;
        },
        { x: Math.round(xAt(row, ms * MS)), y: Math.round(row.y + HIGH) },
      );
      ok(colours >= 3, `surface, line and running at ${ms} ms`);
    }
  }
}

async function hoverTellsOfSamples(browser, { timeline }) {
  const page = await opened(browser, timeline);
  const blocked = await hover(page, "main", 650 * MS, LOW);
  equal(blocked.title, "main, tid 10");
  equal(blocked.Process, "app, pid 10");
  equal(blocked.Time, "400.000 ms");
  equal(blocked.Until, "900.000 ms");
  equal(blocked.off_cpu, "blocked, 500 ms");
  equal(blocked.Stack, "wait_for_input\nmain");
  const running = await hover(page, "main", 350.5 * MS, LOW);
  equal(running.Time, "350.000 ms");
  match(running.cpu, /^running, 1 sample/);
  equal(running.Stack, "compute\nmain");
  const estimate = await hover(page, "worker", 500 * MS, RING);
  equal(estimate.off_cpu, "300 ms");
  equal(estimate.Until, undefined);
  match(estimate.Estimate, /no duration/);
  equal((await hover(page, "worker", 600 * MS, UNDER)).Time, "600.000 ms");
  equal((await hover(page, "worker", 750 * MS, UNDER)).lock, "100 ms");
  match((await hover(page, "worker", 875 * MS, LOW)).wall_clock, /^waiting for a CPU, 50/);
  // Where nothing is known it tells of the thread.
  equal((await hover(page, "worker", 450 * MS, LOW))["In all"], "50 samples, 50.0 ms");
}

async function draggingFilters(browser, { timeline }) {
  const page = await opened(browser, timeline);
  const row = await lane(page, "main");
  await page.mouse.move(xAt(row, 150 * MS), row.y + 10);
  await page.mouse.down();
  await page.mouse.move(xAt(row, 200 * MS), row.y + 10);
  await page.mouse.move(xAt(row, 350 * MS), row.y + 12);
  await page.mouse.up();
  await settled(page);
  const { range, samples } = await stateOf(page);
  ok(Math.abs(range[0] - 150 * MS) < 1.5 * MS && Math.abs(range[1] - 350 * MS) < 1.5 * MS, String(range));
  // 50 of the worker, and of `main` those from 300 ms on.
  equal(samples, 50 + Math.ceil(range[1] / MS) - 300);
  deepEqual(await functionsOf(page).then((rows) => rows.map(({ name, self }) => [name, self])), [
    ["compute", samples],
    ["main", 0],
  ]);
  ok(await page.locator("#all-time").isVisible());
  await page.click("#all-time");
  equal((await stateOf(page)).range, null);
  equal((await stateOf(page)).samples, 360);
}

async function clickingFilters(browser, { timeline }) {
  const page = await opened(browser, timeline);
  const click = async (name, tid) => {
    const row = (await lanesOf(page)).find((row) => row.name === name && row.tid === tid);
    await page.mouse.click(row.left - 60, row.y + 10);
    await settled(page);
  };
  await click("worker", 11);
  equal((await stateOf(page)).samples, 50);
  equal(await page.locator("#thread-filter .pick span").textContent(), "worker 11");
  await click("main", 10);
  equal((await stateOf(page)).samples, 350);
  await click("main", 10);
  await click("worker", 11);
  equal((await stateOf(page)).samples, 360);
  await click("db", null);
  equal((await stateOf(page)).samples, 10);
  equal(await page.locator("#process-filter .pick span").textContent(), "db 20");
}

async function wheelZooms(browser, { timeline }) {
  const page = await opened(browser, timeline);
  const before = await lane(page, "main");
  const x = xAt(before, 650 * MS);
  await page.mouse.move(x, before.y + 10);
  await page.keyboard.down("Control");
  await page.mouse.wheel(0, -600);
  await page.keyboard.up("Control");
  await page.waitForFunction(() => window.collector.lanes()[0].view[0] > 0);
  const zoomed = await lane(page, "main");
  ok(zoomed.view[1] - zoomed.view[0] < 500 * MS);
  // What the pointer was at stays there.
  ok(Math.abs(xAt(zoomed, 650 * MS) - x) < 1.5);
  await page.keyboard.down("Shift");
  await page.mouse.wheel(0, 200);
  await page.keyboard.up("Shift");
  await page.waitForFunction((from) => window.collector.lanes()[0].view[0] > from, zoomed.view[0]);
  const moved = await lane(page, "main");
  const length = ({ view }) => view[1] - view[0];
  ok(Math.abs(length(moved) - length(zoomed)) < 1);
  ok(Math.abs(moved.view[0] - zoomed.view[0] - (200 / zoomed.width) * length(zoomed)) < 1);
  await page.click("#lanes-all");
  deepEqual((await lane(page, "main")).view, [0, 1_000 * MS]);
}

async function keysReachEverything(browser, { timeline }) {
  const page = await browser.open(timeline.page);
  await page.keyboard.press("h");
  await page.waitForFunction(() => window.collector.lanes().length > 0);
  await page.focus("#lanes-canvas");
  const status = () => page.locator("#status").textContent();
  await page.keyboard.press("ArrowDown");
  match(await status(), /^app, pid 10/);
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  match(await status(), /^worker, tid 11/);
  await page.keyboard.press("n");
  match(await status(), /Time 200\.000 ms/);
  await page.keyboard.press("n");
  match(await status(), /Time 201\.000 ms.*compute ← main/);
  await page.keyboard.press("p");
  match(await status(), /Time 200\.000 ms/);
  await page.keyboard.press("Enter");
  equal((await stateOf(page)).samples, 50);
  await page.keyboard.press("Enter");
  equal((await stateOf(page)).samples, 360);
  await page.keyboard.press("+");
  const { view } = await lane(page, "main");
  deepEqual(view.map(Math.round), [150 * MS, 850 * MS]);
  await page.keyboard.press("ArrowRight");
  deepEqual((await lane(page, "main")).view.map(Math.round), [220 * MS, 920 * MS]);
  await page.keyboard.press("r");
  deepEqual((await stateOf(page)).range, [220 * MS, 920 * MS]);
  await page.keyboard.press("Shift+ArrowLeft");
  deepEqual((await stateOf(page)).range, [220 * MS, 906 * MS]);
  await page.keyboard.press("Escape");
  deepEqual((await lane(page, "main")).view, [0, 1_000 * MS]);
  await page.keyboard.press("Escape");
  equal((await stateOf(page)).range, null);
}

async function namesStayText(browser, { small }) {
  const page = await opened(browser, small);
  const row = await lane(page, "worker <script>window.pwned=2</script>");
  await page.mouse.move(row.left - 50, row.y + 10);
  match(await page.locator("#tooltip strong").textContent(), /^worker <script>/);
  equal(await page.locator("#tooltip script").count(), 0);
  equal(await page.evaluate(() => "pwned" in window), false);
  deepEqual(page.complaints, []);
}

async function manyThreads(browser, { crowd }) {
  const page = await opened(browser, crowd);
  const rows = await lanesOf(page);
  ok(rows.length < 30, `${rows.length} rows in sight`);
  await page.locator("#lanes").evaluate((element) => element.scrollTo(0, element.scrollHeight));
  await page.waitForFunction((first) => window.collector.lanes()[0].pid !== first, rows[0].pid);
  await settled(page);
  const last = (await lanesOf(page)).at(-1);
  equal(last.tid, 50_000 + 99);
  // The 4,999th thread: ticks at 49.99 ms and every 100 ms after it, times off of 30 ms from 99.99 ms on.
  equal(await painted(page, last.name, 99_990 + 15 * MS, LOW), true);
  equal(await painted(page, last.name, 99_990 + 40 * MS, LOW), false);
  const tooltip = await hover(page, last.name, 99_990 + 15 * MS, LOW);
  equal(tooltip.Time, "99.990 ms");
  equal(tooltip.off_cpu, "blocked, 30.0 ms");
}

export const tests = [
  ["timeline: threads stand below their process, heaviest first", rowsAreGrouped],
  ["timeline: pixels are the known spans, estimates are none", pixelsAreTheTruth],
  ["timeline: hover tells of the sample", hoverTellsOfSamples],
  ["timeline: dragging selects a range for graph and table", draggingFilters],
  ["timeline: a click filters by thread and process", clickingFilters],
  ["timeline: the wheel zooms at the pointer and moves", wheelZooms],
  ["timeline: keys reach rows, samples, ranges", keysReachEverything],
  ["timeline: names are text", namesStayText],
  ["timeline: 5,000 threads are rows in sight alone", manyThreads],
];
