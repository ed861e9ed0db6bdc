// Weights: samples that pass a filter in, weights of nodes, functions, processes and threads out.
//
// One pass over the samples in the range of time (they are sorted) when a filter changes, one over the nodes;
// drawing reads only the results.

import { CATEGORY } from "./decode.js";

/// What is looked at: a kind of sample, at the beginning the profile's first one, a range of time ([from, to) in
/// microseconds) or null for all, and sets of processes and threads, where an empty set stands for all.
export class Filter {
  constructor() {
    this.kind = 0;
    this.range = null;
    this.processes = new Set();
    this.threads = new Set();
  }

  /// By thread: 1 if its samples pass.
  mask(profile) {
    const { processes, threads } = this;
    return Uint8Array.from(profile.threads, (thread) =>
      (processes.size === 0 || processes.has(thread.process)) && (threads.size === 0 || threads.has(thread.id))
        ? 1
        : 0,
    );
  }
}

/// The first position in `times`, which is sorted, that is not before `time`.
export function positionOf(times, time) {
  let low = 0;
  let high = times.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (times[middle] < time) low = middle + 1;
    else high = middle;
  }
  return low;
}

/// Weights by node (`self`, `total`) and function (`functionSelf`, `functionTotal`), the `sum` of all and the
/// number of samples. `threads` is by thread whether or not it passes, for the filter's own lists.
export function weigh(profile, filter) {
  const { self, threads, count } = selfWeights(profile, filter);
  return { ...sumUp(profile, self), threads, count };
}

/// What `weigh` gives of the samples themselves: weights of nodes that are leaves, of threads, and their number.
export function selfWeights(profile, filter) {
  const { nodes, samples } = profile;
  const { time, thread, node, kind, value } = samples;
  const mask = filter.mask(profile);
  const from = filter.range ? positionOf(time, filter.range[0]) : 0;
  const to = filter.range ? positionOf(time, filter.range[1]) : samples.count;
  const self = new Float64Array(nodes.count);
  const threads = new Float64Array(profile.threads.length);
  let count = 0;
  for (let i = from; i < to; i++) {
    if (kind !== null && kind[i] !== filter.kind) continue;
    const weight = value === null ? 1 : value[i];
    const owner = thread[i];
    threads[owner] += weight;
    if (mask[owner] === 0) continue;
    self[node[i]] += weight;
    count++;
  }
  return { self, threads, count };
}

/// What follows from the weights of leaves.
export function sumUp({ nodes, functions }, self) {
  const total = self.slice();
  const functionSelf = new Float64Array(functions.length);
  const functionTotal = new Float64Array(functions.length);
  // Children follow their parents, so backwards every node is complete before it is added to its parent.
  for (let i = nodes.count - 1; i >= 0; i--) {
    const fn = nodes.function[i];
    functionSelf[fn] += self[i];
    if (nodes.outermost[i] === 1) functionTotal[fn] += total[i];
    if (i > 0) total[nodes.parent[i]] += total[i];
  }
  return { self, total, functionSelf, functionTotal, sum: nodes.count > 0 ? total[0] : 0 };
}

/// Weights over time, stacked by the leaf's category or by CPU: `series[s][bin]`, drawn from the first up. The
/// filter's range is not applied.
export function overTime(profile, filter, bins, byCpu) {
  const { samples, system } = profile;
  const { time, thread, node, kind, value } = samples;
  const mask = filter.mask(profile);
  const series = byCpu ? cpuSeries(profile) : categorySeries(profile);
  const rows = series.names.map(() => new Float64Array(bins));
  const scale = bins / Math.max(system.duration, 1);
  for (let i = 0; i < samples.count; i++) {
    if (mask[thread[i]] === 0 || (kind !== null && kind[i] !== filter.kind)) continue;
    const bin = Math.min(bins - 1, Math.floor(time[i] * scale));
    rows[series.of(i, node)][bin] += value === null ? 1 : value[i];
  }
  return { ...series, rows };
}

function cpuSeries({ samples }) {
  const cpus = [...new Set(samples.cpu)].sort((a, b) => a - b);
  const position = new Uint16Array(65536);
  cpus.forEach((cpu, index) => (position[cpu] = index));
  return { names: cpus.map((cpu) => `CPU ${cpu}`), categories: null, of: (i) => position[samples.cpu[i]] };
}

function categorySeries({ nodes, functions }) {
  const categories = [CATEGORY.user, CATEGORY.kernel, CATEGORY.jit, CATEGORY.unknown];
  const position = Uint8Array.from(functions, ({ category }) => {
    const index = categories.indexOf(category);
    return index < 0 ? categories.length - 1 : index;
  });
  return {
    names: ["user", "kernel", "JIT", "no symbol"],
    categories,
    of: (i, node) => position[nodes.function[node[i]]],
  };
}
