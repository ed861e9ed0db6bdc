// The graph: boxes against the truth in both views, zoom, search, hover, keys, colours.

import { deepEqual, equal, match, ok } from "node:assert/strict";
import { boxNamed, boxesOf, clickBox, settled, stateOf } from "./browser.mjs";
import { joined, sum } from "./fixtures.mjs";

const MARKUP = '<img src=x onerror="window.pwned=4"></script><script>window.pwned=5</script>';

// Every box has its path's weight, a width in proportion, and a place beside its heavier sibling or at its
// parent's left edge; every path wide enough has a box.
function compareBoxes(boxes, weights, canvasWidth) {
  const drawn = new Set();
  const whole = weights.get("all");
  const right = new Map();
  for (const { path, total, x, width, parent } of boxes) {
    if (parent >= 0) ok(Math.abs(x - (right.get(parent) ?? boxes[parent].x)) < 0.01, `place of ${path.join(" / ")}`);
    right.set(parent, x + width);
    const key = joined(path);
    equal(total, weights.get(key), path.join(" / "));
    ok(Math.abs(width - (total / whole) * canvasWidth) < 0.01, `width of ${path.join(" / ")}`);
    ok(!drawn.has(key), `${path.join(" / ")} is drawn twice`);
    drawn.add(key);
  }
  for (const [key, weight] of weights) {
    if ((weight / whole) * canvasWidth >= 1) ok(drawn.has(key), `${key.split("\u0000").join(" / ")} is missing`);
  }
}

async function canvasWidth(page) {
  return (await page.locator("#flame-canvas").boundingBox()).width;
}

async function flameIsTheTruth(browser, { small, big }) {
  for (const { page: file, truth } of [small, big]) {
    const page = await browser.open(file);
    const boxes = await boxesOf(page);
    compareBoxes(boxes, truth.weightByPath(truth.select()), await canvasWidth(page));
  }
}

async function callersAreTheTruth(browser, { small, big }) {
  for (const { page: file, truth } of [small, big]) {
    const page = await browser.open(file);
    await page.click("[data-view=callers]");
    await settled(page);
    const samples = truth.select();
    const boxes = await boxesOf(page);
    compareBoxes(boxes, truth.weightByPath(samples, true), await canvasWidth(page));
    const selves = new Map();
    for (const { self, path } of boxes.filter(({ path }) => path.length === 2)) {
      selves.set(path[1], (selves.get(path[1]) ?? 0) + self);
    }
    for (const sample of samples) {
      const leaf = truth.pathOf(sample).at(-1);
      if (selves.has(leaf)) selves.set(leaf, selves.get(leaf) - sample.value);
    }
    ok(selves.size > 5);
    deepEqual([...selves.values()].filter((left) => left !== 0), []);
  }
}

async function zoomAndBack(browser, { small }) {
  const page = await browser.open(small.page);
  const width = await canvasWidth(page);
  const before = await boxesOf(page);
  const handle = await boxNamed(page, "server::handle(request<'_>&, std::string const&)");
  ok(handle.width < width / 2);
  await clickBox(page, handle);
  const zoomed = await boxNamed(page, handle.name);
  ok(Math.abs(zoomed.width - width) < 0.01);
  equal(zoomed.total, handle.total);
  const crumbs = await page.locator("#crumbs button").allTextContents();
  deepEqual(crumbs, handle.path);
  equal((await stateOf(page)).zoomed, handle.name);

  await page.keyboard.press("Backspace");
  await settled(page);
  equal((await stateOf(page)).zoomed, "main");
  await page.locator("#crumbs button").nth(1).click();
  await settled(page);
  equal((await stateOf(page)).zoomed, "web server");
  await page.keyboard.press("Escape");
  await settled(page);
  deepEqual(await boxesOf(page), before);
}

// The zoom stays when a filter changes, and gives way when its path is gone.
async function zoomAndFilter(browser, { small }) {
  const page = await browser.open(small.page);
  await clickBox(page, (await boxesOf(page)).find(({ path }) => joined(path) === joined(["all", "java", "_start"])));
  const only = async (name) => {
    await page.click("#process-filter button");
    await page.locator("#process-list [role=option]", { hasText: name }).click();
    await page.keyboard.press("Escape");
    await settled(page);
  };
  await only("java");
  equal((await stateOf(page)).zoomed, "_start");
  await only("java");
  await only("naïve");
  equal((await stateOf(page)).zoomed, "all");
}

async function searchFindsTheTruth(browser, { small, big }) {
  for (const { page: file, truth } of [small, big]) {
    const page = await browser.open(file);
    const samples = truth.select();
    const searches = [
      ["READ", false, ({ name }) => name.toLowerCase().includes("read")],
      ["fib", false, ({ name }) => name.includes("fib")],
      ["^(main|vfs_.*)$", true, ({ name }) => /^(main|vfs_.*)$/i.test(name)],
      ["module:[kernel", false, ({ module }) => module.includes("[kernel")],
      ["module:libc\\.so", true, ({ module }) => /libc\.so/.test(module)],
      ["größe::測定", false, ({ name }) => name.includes("größe::測定")],
      ["no such function", false, () => false],
    ];
    for (const [text, regex, test] of searches) {
      const pressed = (await page.getAttribute("#regex", "aria-pressed")) === "true";
      if (pressed !== regex) await page.click("#regex");
      await page.fill("#search", text);
      const { matched } = await stateOf(page);
      const expected = truth.matched(samples, test);
      equal(matched.weight, expected, text);
      const percent = (expected / sum(samples)) * 100;
      const shown = parseFloat(await page.locator("#matched").textContent());
      ok(Math.abs(shown - percent) <= 0.05, `${text}: ${shown} is not ${percent}`);
    }
    await page.click("#regex");
    await page.fill("#search", "(");
    await page.locator("#search[aria-invalid=true]").waitFor();
    match(await page.locator("#matched").textContent(), /not a regular expression/);
    await page.focus("#search");
    await page.keyboard.press("Escape");
    equal(await page.inputValue("#search"), "");
    ok(await page.locator("#matched").isHidden());
  }
}

async function colourAt(page, box) {
  return page.evaluate(({ x, y, width }) => {
    const canvas = document.getElementById("flame-canvas");
    const bounds = canvas.getBoundingClientRect();
    const ratio = canvas.width / bounds.width;
    const at = [(x + Math.min(3, width / 2) - bounds.left) * ratio, (y + 3 - bounds.top) * ratio];
    return [...canvas.getContext("2d").getImageData(...at.map(Math.round), 1, 1).data.slice(0, 3)];
  }, box);
}

function hue([red, green, blue]) {
  const [most, least] = [Math.max(red, green, blue), Math.min(red, green, blue)];
  const span = most - least;
  if (span < 12) return null;
  const sixth =
    most === red
      ? ((green - blue) / span + 6) % 6
      : most === green
        ? (blue - red) / span + 2
        : (red - green) / span + 4;
  return sixth * 60;
}

async function coloursTellKinds(browser, { small }) {
  for (const dark of [false, true]) {
    const page = await browser.open(small.page, { dark });
    const colour = async (name) => colourAt(page, await boxNamed(page, name));
    const between = (value, from, to) => ok(value !== null && value >= from && value <= to, `${value}`);
    between(hue(await colour("main")), 160, 245);
    between(hue(await colour("vfs_read")), 5, 50);
    between(hue(await colour("LMain;.loop()V")), 270, 325);
    equal(hue(await colour("libc.so.6+0x10af")), null);
    // Highlighted is pink, everything else loses its colour.
    await page.fill("#search", "vfs_read");
    between(hue(await colour("vfs_read")), 320, 345);
    const [red, green, blue] = await colour("main");
    ok(Math.max(red, green, blue) - Math.min(red, green, blue) < 30);
    const legend = await page.locator("#legend").textContent();
    for (const word of ["user", "kernel", "JIT", "no symbol", "heuristic"]) ok(legend.includes(word), word);
  }
}

// A row through a hatched box changes colour again and again; through a plain box it doesn't.
async function heuristicsAreHatched(browser, { small }) {
  const page = await browser.open(small.page);
  const changes = async (name) =>
    page.evaluate(
      ({ x, y, width }) => {
        const canvas = document.getElementById("flame-canvas");
        const bounds = canvas.getBoundingClientRect();
        const data = canvas
          .getContext("2d")
          .getImageData(Math.round(x - bounds.left) + 2, Math.round(y - bounds.top) + 2, Math.floor(width) - 5, 1).data;
        let count = 0;
        for (let i = 4; i < data.length; i += 4) count += data[i] !== data[i - 4] ? 1 : 0;
        return count;
      },
      (await boxesOf(page)).filter((box) => box.name === name).sort((a, b) => b.width - a.width)[0],
    );
  ok((await changes("guessed_by_scan")) > 8);
  equal(await changes("main"), 0);
  equal((await boxNamed(page, "guessed_by_scan")).heuristic, true);
  equal((await boxNamed(page, "main")).heuristic, false);
}

async function inlinedFunctionsTellTheirSource(browser, { small }) {
  const page = await browser.open(small.page);
  const { truth } = small;
  const several = truth.functions.filter(({ source }) => source !== "");
  deepEqual(several.map(({ inlined }) => inlined), [true, true, false]);
  const tooltip = page.locator("#tooltip");
  for (const { name, inlined, source } of several) {
    const box = await boxNamed(page, name);
    await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
    equal(await tooltip.locator("strong").textContent(), name);
    const text = await tooltip.textContent();
    ok(text.includes(source), text);
    equal(text.includes("inlined into its caller"), inlined, text);
  }
  const main = await boxNamed(page, "main");
  await page.mouse.move(main.x + main.width / 2, main.y + main.height / 2);
  equal(await tooltip.locator("strong").textContent(), "main");
  ok(!(await tooltip.textContent()).includes("Source"));
}

async function hoverTells(browser, { small }) {
  const page = await browser.open(small.page);
  const box = await boxNamed(page, MARKUP);
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  const tooltip = page.locator("#tooltip");
  ok(await tooltip.isVisible());
  equal(await tooltip.locator("strong").textContent(), MARKUP);
  const text = await tooltip.textContent();
  const { truth } = small;
  const samples = truth.select();
  const everywhere = truth.matched(samples, ({ name }) => name === MARKUP);
  const percent = ((everywhere / sum(samples)) * 100).toFixed(1);
  ok(text.includes("/opt/a b/<i>server</i>"), text);
  ok(text.includes(`${box.total} samples, ${box.total >= 100 ? box.total : box.total.toFixed(1)} ms`), text);
  ok(text.includes(`total ${percent} %`), text);
  await page.mouse.move(2, 2);
  ok(await tooltip.isHidden());
}

async function keysMove(browser, { small }) {
  const page = await browser.open(small.page);
  await page.focus("#flame-canvas");
  for (const key of ["ArrowDown", "ArrowDown", "ArrowDown", "ArrowDown"]) await page.keyboard.press(key);
  match(await page.locator("#status").textContent(), /^main · /);
  await page.keyboard.press("ArrowUp");
  match(await page.locator("#status").textContent(), /^_start · /);
  await page.keyboard.press("Enter");
  await settled(page);
  equal((await stateOf(page)).zoomed, "_start");
  await page.keyboard.press("Escape");
  await settled(page);
  equal((await stateOf(page)).zoomed, "all");
  await page.keyboard.press("/");
  equal(await page.evaluate(() => document.activeElement.id), "search");
  await page.keyboard.type("c/t");
  equal(await page.inputValue("#search"), "c/t");
}

async function deepStacks(browser, { small }) {
  const page = await browser.open(small.page);
  const deepest = (await boxesOf(page)).filter(({ name }) => name === "deep_499");
  ok(deepest.length > 0);
  equal(deepest[0].path.length, 504);
  await page.locator("#flame").evaluate((element) => element.scrollTo(0, element.scrollHeight));
  const { y, height } = await boxNamed(page, "deep_499");
  const view = await page.locator("#flame").boundingBox();
  ok(y >= view.y && y + height <= view.y + view.height + 1, "the deepest frame can be scrolled to");
  await clickBox(page, await boxNamed(page, "deep_499"));
  equal((await stateOf(page)).zoomed, "deep_499");
}

export const tests = [
  ["flame graph: every box is the truth", flameIsTheTruth],
  ["callers: every box is the truth, roots are self counts", callersAreTheTruth],
  ["zoom: click, Backspace, breadcrumbs, Escape", zoomAndBack],
  ["zoom stays over a filter while it can", zoomAndFilter],
  ["search: matched share is the truth", searchFindsTheTruth],
  ["colours tell user, kernel, JIT and unknown apart", coloursTellKinds],
  ["frames found by a heuristic are hatched", heuristicsAreHatched],
  ["hover: module, counts, time", hoverTells],
  ["graph: inlined functions tell their source", inlinedFunctionsTellTheirSource],
  ["keyboard: move, zoom, search", keysMove],
  ["a stack of 500 frames can be reached", deepStacks],
];
