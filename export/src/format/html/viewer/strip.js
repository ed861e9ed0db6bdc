// The time strip: weights over time as stacked columns on a canvas; dragging selects a range.

import { formatTime } from "./format.js";
import { overTime } from "./weigh.js";

const AXIS = 16;
const TOP = 24;
const COLUMN = 3;

export class Strip {
  /// `on` has the callbacks select(range or null) when a drag ends and hover(lines or null, title, event).
  constructor(canvas, profile, palette, on) {
    Object.assign(this, { canvas, profile, palette, on });
    this.context = canvas.getContext("2d");
    this.duration = Math.max(profile.system.duration, 1);
    this.range = null;
    this.drag = null;
    this.byCpu = false;
    this.filter = null;
    this.data = null;
    new ResizeObserver(() => this.resize()).observe(canvas);
    canvas.addEventListener("pointerdown", (event) => this.down(event));
    canvas.addEventListener("pointermove", (event) => this.move(event));
    canvas.addEventListener("pointerup", (event) => this.up(event));
    canvas.addEventListener("pointercancel", () => this.cancel());
    canvas.addEventListener("pointerleave", (event) => on.hover(null, "", event));
    canvas.addEventListener("dblclick", () => this.choose(null));
    canvas.addEventListener("keydown", (event) => this.key(event));
  }

  /// Shows the samples of a filter; `measure` names their weights.
  setFilter(filter, measure) {
    this.filter = filter;
    this.measure = measure;
    this.range = filter.range;
    this.count();
  }

  setByCpu(byCpu) {
    this.byCpu = byCpu;
    this.count();
  }

  resize() {
    const { clientWidth, clientHeight } = this.canvas;
    if (clientWidth === this.width && clientHeight === this.height) return;
    this.width = clientWidth;
    this.height = clientHeight;
    this.canvas.width = Math.round(clientWidth * devicePixelRatio);
    this.canvas.height = Math.round(clientHeight * devicePixelRatio);
    this.count();
  }

  count() {
    if (this.filter === null || !(this.width > 0)) return;
    const bins = Math.max(1, Math.floor(this.width / COLUMN));
    this.data = overTime(this.profile, this.filter, bins, this.byCpu);
    this.peak = 0;
    for (let bin = 0; bin < bins; bin++) {
      this.peak = Math.max(this.peak, this.data.rows.reduce((sum, row) => sum + row[bin], 0));
    }
    this.draw();
  }

  timeAt(x) {
    return Math.min(1, Math.max(0, x / this.width)) * this.duration;
  }

  draw() {
    const { context, palette, data, width } = this;
    if (data === null) return;
    const height = this.height - AXIS;
    const ratio = devicePixelRatio;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = palette.surface;
    context.fillRect(0, 0, width, this.height);
    const bins = data.rows[0]?.length ?? 0;
    const base = new Float64Array(bins);
    const step = width / Math.max(bins, 1);
    const scale = this.peak > 0 ? (height - TOP) / this.peak : 0;
    data.rows.forEach((row, index) => {
      context.fillStyle = data.categories
        ? palette.category(data.categories[index])
        : palette.series(index, data.rows.length);
      for (let bin = 0; bin < bins; bin++) {
        if (row[bin] <= 0) continue;
        const left = Math.round(bin * step);
        const top = height - (base[bin] + row[bin]) * scale;
        context.fillRect(left, top, Math.max(1, Math.round((bin + 1) * step) - left), row[bin] * scale);
        base[bin] += row[bin];
      }
    });
    const range = this.drag?.range ?? this.range;
    if (range !== null) this.selection(range, height);
    this.axis(height);
  }

  axis(height) {
    const { context, palette, width, duration } = this;
    context.fillStyle = palette.line;
    context.fillRect(0, height, width, 1);
    context.font = "10.5px system-ui, sans-serif";
    context.textBaseline = "middle";
    const least = duration / Math.max(1, Math.floor(width / 90));
    const power = 10 ** Math.floor(Math.log10(least));
    const every = [1, 2, 5, 10].map((times) => times * power).find((tick) => tick >= least);
    for (let tick = 0; tick <= duration; tick += every) {
      const x = Math.round((tick / duration) * width);
      context.fillStyle = palette.line;
      context.fillRect(x, height, 1, 5);
      const label = tick === 0 ? "0" : formatTick(tick, every);
      context.fillStyle = palette.muted;
      if (x + 4 + context.measureText(label).width < width) context.fillText(label, x + 4, height + AXIS / 2 + 1);
    }
    const label = this.peakLabel();
    context.fillStyle = palette.muted;
    context.fillText(label, 8, TOP / 2);
  }

  // The peak as the time spent per time (CPUs busy) where weights are times.
  peakLabel() {
    const bin = this.duration / (this.data.rows[0]?.length || 1);
    if (!this.measure.timed) return `peak ${this.measure.short(this.peak)}`;
    return `peak ${(this.measure.time(this.peak) / bin).toFixed(1)} × ${this.measure.kind.name}`;
  }

  selection([from, to], height) {
    const { context, palette, width, duration } = this;
    const left = (from / duration) * width;
    const right = Math.max(left + 1, (to / duration) * width);
    context.globalAlpha = 0.66;
    context.fillStyle = palette.surface;
    context.fillRect(0, 0, left, height);
    context.fillRect(right, 0, width - right, height);
    context.globalAlpha = 0.1;
    context.fillStyle = palette.accent;
    context.fillRect(left, 0, right - left, height);
    context.globalAlpha = 1;
    context.fillRect(Math.round(left), 0, 1.5, height);
    context.fillRect(Math.round(right) - 1.5, 0, 1.5, height);
    context.font = "600 11px system-ui, sans-serif";
    const label = formatTime(to - from);
    const text = context.measureText(label).width;
    const x = Math.min(width - text - 14, Math.max(0, (left + right - text - 14) / 2));
    context.beginPath();
    context.roundRect(x, 3, text + 14, 18, 9);
    context.fill();
    context.fillStyle = palette.surface;
    context.textBaseline = "middle";
    context.fillText(label, x + 7, 12.5);
  }

  down(event) {
    if (event.button !== 0) return;
    this.canvas.setPointerCapture(event.pointerId);
    this.drag = { start: event.offsetX, range: null };
    this.on.hover(null, "", event);
  }

  move(event) {
    if (this.drag === null) {
      this.describe(event);
      return;
    }
    if (Math.abs(event.offsetX - this.drag.start) < 3 && this.drag.range === null) return;
    const ends = [this.timeAt(this.drag.start), this.timeAt(event.offsetX)].sort((a, b) => a - b);
    this.drag.range = ends.map(Math.round);
    this.draw();
  }

  up() {
    const range = this.drag?.range ?? null;
    this.drag = null;
    if (range !== null && range[1] > range[0]) this.choose(range);
  }

  cancel() {
    this.drag = null;
    this.draw();
  }

  choose(range) {
    this.range = range;
    this.draw();
    this.on.select(range);
  }

  describe(event) {
    if (this.data === null) return;
    const bins = this.data.rows[0]?.length ?? 0;
    const bin = Math.min(bins - 1, Math.max(0, Math.floor((event.offsetX / this.width) * bins)));
    const lines = this.data.names
      .map((name, index) => [name, this.data.rows[index][bin]])
      .filter(([, weight]) => weight > 0)
      .slice(0, 16)
      .map(([name, weight]) => [name, this.measure.long(weight)]);
    const from = (bin / bins) * this.duration;
    this.on.hover(lines, `${formatTime(from)} + ${formatTime(this.duration / bins)}`, event);
  }

  // Arrows shift the range, with Shift they move its end; without a range they start one in the middle.
  key(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const by = (step * this.duration) / 50;
    const [from, to] = this.range ?? [this.duration * 0.4, this.duration * 0.6];
    const [newFrom, newTo] = event.shiftKey ? [from, to + by] : [from + by, to + by];
    if (newFrom < 0 || newTo > this.duration || newTo <= newFrom) return;
    this.choose([Math.round(newFrom), Math.round(newTo)]);
  }
}

function formatTick(us, every) {
  const [unit, name] = us >= 1e6 || every >= 1e5 ? [1e6, "s"] : us >= 1e3 ? [1e3, "ms"] : [1, "µs"];
  return `${Number((us / unit).toFixed(3))} ${name}`;
}
