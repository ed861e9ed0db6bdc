// Recordings with a known truth: the page to test, and counts taken from the truth by plain loops that share
// nothing with the page's own algorithms.

import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/// The checkout's top folder.
export const top = join(dirname(fileURLToPath(import.meta.url)), "../../..");

const folder = join(top, "target/browser");

/// Writes the pages and gives them by name.
export function makeFixtures() {
  mkdirSync(folder, { recursive: true });
  const make = (name, ...size) => {
    const page = join(folder, `${name}.html`);
    const cargo = process.env.CARGO ?? "cargo";
    const example = ["--package", "collector-export", "--example", "browser_fixtures"];
    const command = ["run", "--quiet", ...example, "--", page, ...size];
    console.log(execFileSync(cargo, command, { cwd: top, encoding: "utf8" }).trim());
    return new Fixture(page);
  };
  const known = (name, ...size) => make(name, name, ...size);
  return {
    small: make("small"),
    big: make("big", "1000000"),
    empty: make("empty", "0"),
    timeline: known("timeline"),
    base: known("base"),
    new: known("new"),
    otherKind: known("other-kind"),
    crowd: known("crowd", "200000"),
  };
}

class Fixture {
  constructor(page) {
    this.page = page;
  }

  get truth() {
    return (this.read ??= new Truth(JSON.parse(readFileSync(this.page.replace(/html$/, "truth.json"), "utf8"))));
  }
}

/// What was put into a recording.
export class Truth {
  constructor({ functions, stacks, processes, threads, samples }) {
    this.functions = functions.map(([name, module, inlined, source]) => ({ name, module, inlined: inlined === 1, source }));
    this.stacks = stacks;
    this.processes = processes.map(([pid, name], id) => ({ id, pid, name }));
    this.threads = threads.map(([process, tid, name], id) => ({ id, process, tid, name }));
    this.samples = samples.map(([us, thread, cpu, stack, kind, value]) => ({ us, thread, cpu, stack, kind, value }));
  }

  /// The samples of a kind that pass a test.
  select(test = () => true, kind = 0) {
    return this.samples.filter((sample) => sample.kind === kind && test(sample));
  }

  processOf(sample) {
    return this.processes[this.threads[sample.thread].process];
  }

  /// The names on a sample's stack from the process down to the leaf.
  pathOf(sample) {
    const names = this.stacks[sample.stack].map((id) => this.functions[id].name);
    return [this.processOf(sample).name, ...names.reverse()];
  }

  /// By path (joined names, with "all" above): the weight of the samples on it, from the root or the leaf on.
  weightByPath(samples, fromLeaf = false) {
    const paths = new Map();
    const byStack = new Map();
    for (const sample of samples) {
      const key = `${this.processOf(sample).name}\n${sample.stack}`;
      const entry = byStack.get(key) ?? { path: this.pathOf(sample), weight: 0 };
      entry.weight += sample.value;
      byStack.set(key, entry);
    }
    for (const { path, weight } of byStack.values()) {
      let key = "all";
      add(paths, key, weight);
      for (const name of fromLeaf ? [...path].reverse() : path) {
        key = joined([key, name]);
        add(paths, key, weight);
      }
    }
    return paths;
  }

  /// By function (name and module): {self, total}; recursion counts once.
  weightByFunction(samples) {
    const weights = new Map();
    const of = (id) => {
      const key = functionKey(this.functions[id]);
      if (!weights.has(key)) weights.set(key, { self: 0, total: 0 });
      return weights.get(key);
    };
    for (const { stack, value } of samples) {
      const ids = this.stacks[stack];
      if (ids.length > 0) of(ids[0]).self += value;
      for (const id of new Set(ids)) of(id).total += value;
    }
    return weights;
  }

  /// The weight of samples with a function on their stack that passes a test.
  matched(samples, test) {
    const byStack = this.stacks.map((ids) => ids.some((id) => test(this.functions[id])));
    return sum(samples.filter(({ stack }) => byStack[stack]));
  }
}

export function sum(samples) {
  return samples.reduce((sum, { value }) => sum + value, 0);
}

export function joined(path) {
  return path.join("\u0000");
}

export function functionKey({ name, module }) {
  return joined([name, module]);
}

function add(map, key, weight) {
  map.set(key, (map.get(key) ?? 0) + weight);
}
