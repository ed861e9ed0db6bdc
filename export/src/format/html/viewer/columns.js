// A lane in columns of a pixel each: what a thread did in a range of time in, how much of each column which form
// fills out. Its cost is that of the samples in the range, however many of them share a pixel, and of those before it back to the
// first that reaches into it.

import { CATEGORY, FORM } from "./decode.js";

/// Leaves of what runs, in the order they are drawn from the bottom up.
export const RUNNING = [CATEGORY.user, CATEGORY.kernel, CATEGORY.jit, CATEGORY.unknown];

// From this width on a span's ends have room.
const ENDS = 5;

export class Columns {
  constructor(profile, lanes) {
    this.lanes = lanes;
    this.nodes = profile.nodes;
    this.position = Uint8Array.from(profile.functions, ({ category }) => {
      const index = RUNNING.indexOf(category);
      return index < 0 ? RUNNING.length - 1 : index;
    });
    this.width = 0;
  }

  resize(width) {
    if (width === this.width) return;
    this.width = width;
    const cover = () => new Cover(width);
    this.running = RUNNING.map(cover);
    Object.assign(this, { blocked: cover(), waiting: cover(), time: cover() });
    this.moments = new Uint32Array(width);
    this.estimates = new Uint32Array(width);
    this.ends = new Uint8Array(width);
  }

  /// Fills the columns with a thread's samples; `from` to `to` is what the width shows.
  fill(thread, from, to, width) {
    this.resize(width);
    const { lanes, ends, moments, estimates } = this;
    const { samples, order } = lanes;
    const covers = [...this.running, this.blocked, this.waiting, this.time];
    for (const cover of covers) cover.clear();
    for (const counts of [moments, estimates, ends]) counts.fill(0);
    const scale = width / (to - from);
    const [first, last] = lanes.touching(thread, from, to);
    let tick = null;
    const endTick = (time) => {
      if (tick === null) return;
      const end = Math.min(lanes.end(tick), time);
      this.runningOf(tick).add((samples.time[tick] - from) * scale, (end - from) * scale);
      tick = null;
    };
    for (let at = first; at < last; at++) {
      const sample = order[at];
      const time = samples.time[sample];
      const x = (time - from) * scale;
      const form = lanes.form(sample);
      if (form === FORM.moment || form === FORM.estimate) {
        if (x >= 0) (form === FORM.moment ? moments : estimates)[Math.floor(x)]++;
        continue;
      }
      // A tick stands for the time up to the next one, or until the thread is known not to run.
      if (form !== FORM.time) endTick(time);
      if (lanes.isTick(sample)) {
        tick = sample;
        continue;
      }
      const end = (lanes.end(sample) - from) * scale;
      this.cover(form, sample).add(x, end);
      if ((form === FORM.blocked || form === FORM.waiting) && end - x >= ENDS) {
        for (const edge of [x, end]) if (edge >= 0 && edge < width) ends[Math.floor(edge)] = 1;
      }
    }
    endTick(Infinity);
    for (const cover of covers) cover.settle();
    this.limit();
  }

  cover(form, sample) {
    if (form === FORM.running) return this.runningOf(sample);
    return form === FORM.blocked ? this.blocked : form === FORM.waiting ? this.waiting : this.time;
  }

  runningOf(sample) {
    return this.running[this.position[this.nodes.function[this.lanes.samples.node[sample]]]];
  }

  // A thread does one thing at a time: what it waited is exact, and leaves the rest to what ran.
  limit() {
    for (let x = 0; x < this.width; x++) {
      const left = Math.max(0, 1 - this.blocked.values[x] - this.waiting.values[x]);
      const runs = this.running.reduce((sum, { values }) => sum + values[x], 0);
      if (runs > left) for (const { values } of this.running) values[x] *= left / runs;
    }
  }
}

/// By column: how much of it spans cover, up to 1.
class Cover {
  constructor(width) {
    this.values = new Float32Array(width);
    this.changes = new Float32Array(width + 1);
  }

  clear() {
    this.values.fill(0);
    this.changes.fill(0);
  }

  /// A span from x to `end`, in columns.
  add(x, end) {
    const { values, changes } = this;
    const width = values.length;
    const from = Math.max(0, x);
    const to = Math.min(width, end);
    if (to <= from) return;
    const first = Math.floor(from);
    const last = Math.floor(to);
    if (first === last) {
      values[first] += to - from;
      return;
    }
    values[first] += first + 1 - from;
    if (last < width) values[last] += to - last;
    changes[first + 1]++;
    changes[last]--;
  }

  settle() {
    const { values, changes } = this;
    let whole = 0;
    for (let x = 0; x < values.length; x++) {
      whole += changes[x];
      values[x] = Math.min(1, values[x] + whole);
    }
  }
}
