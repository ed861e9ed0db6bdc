// Samples by thread: a profile in, out the samples of each thread in the order of time, from when to when each
// lasts, and which of them is at a point.

import { FORM, UNIT } from "./decode.js";
import { positionOf } from "./weigh.js";

export class Lanes {
  /// The samples of thread t are order[start[t]] up to order[start[t + 1]]; `reach` is by position in `order`
  /// the latest end on this lane so far, so that what began long ago is found.
  constructor(profile) {
    const { samples, threads, kinds } = profile;
    const { count, thread } = samples;
    Object.assign(this, { samples, kinds });
    this.start = new Uint32Array(threads.length + 1);
    for (let i = 0; i < count; i++) this.start[thread[i] + 1]++;
    for (let t = 0; t < threads.length; t++) this.start[t + 1] += this.start[t];
    const next = this.start.slice(0, -1);
    this.order = new Uint32Array(count);
    this.reach = new Float64Array(count);
    for (let i = 0; i < count; i++) {
      const at = next[thread[i]]++;
      this.order[at] = i;
      const before = at > this.start[thread[i]] ? this.reach[at - 1] : 0;
      this.reach[at] = Math.max(before, this.end(i));
    }
  }

  kind(sample) {
    return this.kinds[this.samples.kind === null ? 0 : this.samples.kind[sample]];
  }

  form(sample) {
    const { form } = this.samples;
    return typeof form === "number" ? form : form[sample];
  }

  /// Whether a sample is a clock's tick, of which only the period is known.
  isTick(sample) {
    return this.form(sample) === FORM.running && this.kind(sample).unit !== UNIT.nanoseconds;
  }

  /// When a sample ends, in microseconds: a clock's tick stands for its period.
  end(sample) {
    const { time, value } = this.samples;
    const form = this.form(sample);
    if (form === FORM.moment || form === FORM.estimate) return time[sample];
    const kind = this.kind(sample);
    const length = kind.unit === UNIT.nanoseconds ? (value === null ? 1 : value[sample]) : kind.period;
    return time[sample] + Math.max(0, length) / 1e3;
  }

  /// Positions [first, last) in `order` of what a thread has in a range of time; some between may not be in it.
  touching(thread, from, to) {
    const lane = [this.start[thread], this.start[thread + 1]];
    let [low, high] = lane;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.reach[middle] < from) low = middle + 1;
      else high = middle;
    }
    const first = low;
    high = lane[1];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.samples.time[this.order[middle]] < to) low = middle + 1;
      else high = middle;
    }
    return [first, low];
  }

  /// The sample of a thread at a time, or null. Of those whose form has a rank what lasts at that time goes before
  /// what is within `slack` of it, then the lowest rank counts, then the nearest, then the one that began last.
  at(thread, time, slack, rank) {
    const [first, last] = this.touching(thread, time - slack, time + slack);
    let best = null;
    let least = null;
    for (let at = first; at < last; at++) {
      const sample = this.order[at];
      const order = rank[this.form(sample)];
      if (order === undefined) continue;
      const far = Math.max(0, this.samples.time[sample] - time, time - this.end(sample));
      if (far > slack) continue;
      const key = [far > 0 ? 1 : 0, order, far];
      const place = least === null ? -1 : key.map((part, i) => part - least[i]).find((step) => step !== 0);
      if (place > 0) continue;
      best = sample;
      least = key;
    }
    return best;
  }

  /// The sample that follows `sample` on its lane (step 1) or is before it (-1), or null; without one the first
  /// that begins at `time` or later.
  beside(thread, sample, step, time) {
    const lane = this.order.subarray(this.start[thread], this.start[thread + 1]);
    // Samples are numbered in the order of time.
    const at = positionOf(lane, sample ?? positionOf(this.samples.time, time));
    return lane[sample === null ? at : at + step] ?? null;
  }
}

/// Rows of the timeline: processes, heaviest first, each followed by its threads, by weight of threads.
export function rowsOf(profile, weights) {
  const byProcess = profile.processes.map((process) => ({ process, weight: 0, threads: [] }));
  for (const thread of profile.threads) {
    const entry = byProcess[thread.process];
    entry.weight += weights[thread.id];
    entry.threads.push({ process: entry.process, thread, weight: weights[thread.id] });
  }
  const heaviest = (a, b) => b.weight - a.weight;
  return byProcess
    .sort(heaviest)
    .flatMap(({ process, weight, threads }) => [{ process, thread: null, weight }, ...threads.sort(heaviest)]);
}
