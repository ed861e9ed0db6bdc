// Chromium with a fresh profile, and pages that keep what went wrong in them.

import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { top } from "./fixtures.mjs";

const modules = process.env.COLLECTOR_NODE_MODULES ?? join(top, "target/node/node_modules");
const chromiumPath = process.env.COLLECTOR_CHROMIUM ?? "/usr/bin/chromium";
const flags = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/// A package that the tests need.
export function load(name) {
  return found(name, (require) => require(name));
}

/// Where a file of such a package is.
export function fileOf(name, path) {
  return found(name, (require) => join(dirname(require.resolve(`${name}/package.json`)), path));
}

function found(name, take) {
  try {
    return take(createRequire(join(modules, "anchor.js")));
  } catch (cause) {
    const remedy = 'run "cargo xtask setup", or set COLLECTOR_NODE_MODULES';
    throw new Error(`${modules} has no ${name}: ${remedy}`, { cause });
  }
}

export class Browser {
  static async start() {
    const { chromium } = load("playwright-core");
    const folder = mkdtempSync(join(tmpdir(), "collector-browser-"));
    const context = await chromium.launchPersistentContext(folder, {
      executablePath: chromiumPath,
      args: flags,
      viewport: null,
    });
    return new Browser(context, folder);
  }

  constructor(context, folder) {
    this.context = context;
    this.folder = folder;
  }

  /// Opens a file; `complaints` of the page collects errors, `requests` all addresses asked for.
  async open(file, { width = 1440, height = 900, dark = false } = {}) {
    const page = await this.context.newPage();
    page.complaints = [];
    page.requests = [];
    page.on("console", (message) => {
      if (["error", "warning"].includes(message.type())) page.complaints.push(message.text());
    });
    page.on("pageerror", (error) => page.complaints.push(error.stack));
    page.on("request", (request) => page.requests.push(request.url()));
    await page.setViewportSize({ width, height });
    await page.emulateMedia({ colorScheme: dark ? "dark" : "light" });
    await page.goto(pathToFileURL(file).href);
    await settled(page);
    return page;
  }

  async closePages() {
    await Promise.all(this.context.pages().slice(1).map((page) => page.close()));
  }

  async stop() {
    await this.context.close();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/// Waits until the page has shown the profile, or why not, and nothing moves. The page's policy forbids `eval`,
/// so the waiting is in the page.
export async function settled(page) {
  await page.evaluate(
    () =>
      new Promise((done) => {
        const look = () => {
          const state = window.collector;
          if (state?.error || (state?.ready && state.idle)) done();
          else requestAnimationFrame(look);
        };
        look();
      }),
  );
}

/// The page's state: everything of `window.collector` that is data.
export async function stateOf(page) {
  return page.evaluate(() => JSON.parse(JSON.stringify(window.collector)));
}

/// The boxes on the canvas, each with its path: the names from the root's to its own.
export async function boxesOf(page) {
  const boxes = await page.evaluate(() => window.collector.boxes());
  for (const box of boxes) box.path = [...(boxes[box.parent]?.path ?? []), box.name];
  return boxes;
}

export async function functionsOf(page) {
  return page.evaluate(() => window.collector.functions());
}

/// The first box of a name (with a depth, if given).
export async function boxNamed(page, name, depth) {
  const found = (await boxesOf(page)).find(
    (box) => box.name === name && (depth === undefined || box.path.length - 1 === depth),
  );
  if (found === undefined) throw new Error(`no box is called ${name}`);
  return found;
}

export async function clickBox(page, box) {
  await page.mouse.click(box.x + box.width / 2, box.y + box.height / 2);
  await settled(page);
}

/// Drags on the time strip between two distances from its left edge.
export async function dragStrip(page, from, to) {
  const { x, y, height } = await page.locator("#strip").boundingBox();
  await page.mouse.move(x + from, y + height / 2);
  await page.mouse.down();
  await page.mouse.move(x + (from + to) / 2, y + height / 2);
  await page.mouse.move(x + to, y + height / 2 + 2);
  await page.mouse.up();
  await settled(page);
}
