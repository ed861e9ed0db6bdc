// What is written for speedscope, by the schema of its files and in speedscope itself; and what is written as folded stacks, in speedscope.

import { deepEqual, equal, match, ok } from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { fileOf, load } from "./browser.mjs";
import { sum, top } from "./fixtures.mjs";

/// What a period of the fixture's clock is, in nanoseconds.
const PERIOD = 1_000_000;

const pathOf = ({ page }) => page.replace(/html$/, "speedscope.json");
const read = (fixture) => JSON.parse(readFileSync(pathOf(fixture), "utf8"));

async function filesAreAsTheSchemaSays(_, fixtures) {
  const schema = JSON.parse(readFileSync(fileOf("speedscope", "dist/release/file-format-schema.json"), "utf8"));
  const validate = new (load("ajv").default)({ strict: false, validateFormats: false }).compile(schema);
  for (const fixture of Object.values(fixtures)) {
    ok(validate(read(fixture)), JSON.stringify(validate.errors));
  }
}

/// Each thread has its samples in time order, with all of their names.
async function profilesAreTheRecordedSamples(_, { small }) {
  const { shared, profiles } = read(small);
  const { truth } = small;
  const kinds = [...new Set(truth.samples.map(({ kind }) => kind))].sort();
  ok(kinds.length > 1);
  let seen = 0;
  for (const kind of kinds) {
    for (const thread of truth.threads) {
      const samples = truth.select((sample) => sample.thread === thread.id, kind);
      if (samples.length === 0) continue;
      const process = truth.processes[thread.process];
      const label = `: ${thread.name} (tid ${thread.tid}) of ${process.name} (pid ${process.pid})`;
      const named = profiles.filter(({ name }) => name.endsWith(label));
      // A pid that was used twice has two of one label, and each kind has its own.
      const total = sum(samples) * (kind === 0 ? PERIOD : 1);
      const found = named.filter(({ endValue, weights }) => endValue === total && weights.length === samples.length);
      ok(found.length > 0, `${label} of kind ${kind}`);
      const inOrder = [...samples].sort((a, b) => a.us - b.us).map((sample) => truth.pathOf(sample).slice(1));
      const written = found.map((profile) => profile.samples.map((stack) => stack.map((frame) => shared.frames[frame].name)));
      ok(written.some((stacks) => JSON.stringify(sorted(stacks)) === JSON.stringify(sorted(inOrder))), label);
      seen += 1;
    }
  }
  equal(profiles.length, seen);
}

/// Samples of one moment have no order.
const sorted = (stacks) => stacks.map((stack) => stack.join("\n")).sort();

/// Opens a file in speedscope.
async function open(browser, file, size) {
  const page = await browser.context.newPage();
  page.complaints = [];
  page.on("pageerror", (error) => page.complaints.push(error.stack));
  if (size !== undefined) await page.setViewportSize(size);
  await page.goto(pathToFileURL(fileOf("speedscope", "dist/release/index.html")).href);
  await page.locator('input[type="file"]').first().setInputFiles(file);
  return page;
}

/// The rows of its table of functions that are in view: what each has in all and itself, and its name.
async function rowsOf(page) {
  await page.getByText("Sandwich").click();
  const rows = page.locator("tr");
  await rows.filter({ hasText: "%" }).first().waitFor();
  return (await rows.allInnerTexts()).map((row) => row.split(/\s*\n\s*|\t/).filter((text) => text !== ""));
}

async function speedscopeShowsThem(browser, { small }) {
  const page = await open(browser, pathOf(small));
  const { profiles } = read(small);
  await page.getByText(`${profiles[0].name} (1/${profiles.length})`).waitFor();
  // Functions of the first profile that most time was spent in, each with its time and once.
  const own = new Map();
  for (const sample of small.truth.select(({ thread }) => thread === 2)) {
    const leaf = small.truth.pathOf(sample).slice(1).pop();
    if (leaf !== undefined) own.set(leaf, (own.get(leaf) ?? 0) + sample.value);
  }
  const shown = await rowsOf(page);
  const hottest = [...own].sort(([, a], [, b]) => b - a).slice(0, 5);
  for (const [name, samples] of hottest) {
    const found = shown.filter((row) => row.at(-1) === name);
    equal(found.length, 1, name);
    match(found[0][1], new RegExp(`^${samples}\\.00ms`));
  }
  await page.screenshot({ path: join(top, "target/screenshots/speedscope.png") });
  deepEqual(page.complaints, []);
}

/// What each name of folded stacks has in all, where it counts once of a stack that it is on twice, and itself.
function weightsOf(folded) {
  const weights = new Map();
  const add = (name, column, count) => {
    if (!weights.has(name)) weights.set(name, [0, 0]);
    weights.get(name)[column] += count;
  };
  for (const line of folded.split("\n").filter((line) => line !== "")) {
    const [, stack, count] = /^(.*) (\d+)$/.exec(line);
    const names = stack.split(";");
    for (const name of new Set(names)) add(name, 0, Number(count));
    add(names.at(-1), 1, Number(count));
  }
  return weights;
}

async function speedscopeShowsFoldedStacks(browser, { small }) {
  const file = small.page.replace(/html$/, "folded");
  const weights = weightsOf(readFileSync(file, "utf8"));
  ok(weights.size > 500);
  // All rows are in view at once, of which there are no others.
  const page = await open(browser, file, { width: 1400, height: 24 * (weights.size + 10) });
  const shown = await rowsOf(page);
  const number = (text) => Number(/^([\d,]+) \(/.exec(text)[1].replaceAll(",", ""));
  const read = shown.filter((row) => row[0] !== "Total").map(([total, own, name]) => [name, [number(total), number(own)]]);
  const blank = (name) => name.trim().replaceAll(/\s+/g, " ");
  deepEqual(sortedRows(read), sortedRows([...weights].map(([name, weight]) => [blank(name), weight])));
  deepEqual(page.complaints, []);
}

const sortedRows = (rows) => rows.map((row) => JSON.stringify(row)).sort();

export const tests = [
  ["speedscope: files are as the schema says", filesAreAsTheSchemaSays],
  ["speedscope: profiles are the recorded samples", profilesAreTheRecordedSamples],
  ["speedscope: it shows them", speedscopeShowsThem],
  ["speedscope: it shows folded stacks", speedscopeShowsFoldedStacks],
];
