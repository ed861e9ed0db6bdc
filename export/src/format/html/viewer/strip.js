// The time strip: weights over time as stacked columns on a canvas; dragging selects a range.

import { formatTime } from "./format.js";
import { overTime } from "./weigh.js";
import { drawRange, drawTicks } from "./ruler.js";
import { RangeDrag } from "./drag.js";

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
    this.byCpu = false;
    this.filter = null;
    this.data = null;
    new ResizeObserver(() => this.resize()).observe(canvas);
    this.drag = new RangeDrag(canvas, {
      takes: () => true,
      timeAt: (x) => this.timeAt(x),
      begun: (event) => on.hover(null, "", event),
      changed: () => this.draw(),
      chosen: (range) => this.choose(range),
      clicked: () => {},
    });
    canvas.addEventListener("pointermove", (event) => this.describe(event));
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
    const range = this.drag.range ?? this.range;
    if (range !== null) {
      const ends = range.map((time) => (time / this.duration) * width);
      drawRange(context, palette, { left: 0, width, height }, ends, formatTime(range[1] - range[0]));
    }
    drawTicks(context, palette, { left: 0, width, y: height, below: true }, [0, this.duration]);
    context.fillStyle = palette.muted;
    context.fillText(this.peakLabel(), 8, TOP / 2);
  }

  // The peak as the time spent per time (CPUs busy) where weights are times.
  peakLabel() {
    const bin = this.duration / (this.data.rows[0]?.length || 1);
    if (!this.measure.timed) return `peak ${this.measure.short(this.peak)}`;
    return `peak ${(this.measure.time(this.peak) / bin).toFixed(1)} × ${this.measure.kind.name}`;
  }

  choose(range) {
    this.range = range;
    this.draw();
    this.on.select(range);
  }

  describe(event) {
    if (this.data === null || this.drag.active) return;
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
