// The timeline: a lane for each thread below its process, on a canvas that shows the rows in sight.
//
// What a view shows is the part [from, to] of the recording, in microseconds. Dragging chooses a range, a click a
// thread or process; the wheel scrolls, with Ctrl it zooms, with Shift it moves sideways.

import { FORM } from "./decode.js";
import { formatTime } from "./format.js";
import { Lanes, rowsOf } from "./lanes.js";
import { Columns } from "./columns.js";
import { drawLane, LANE, STATE, BELOW } from "./lane.js";
import { drawRange, drawTicks } from "./ruler.js";
import { RangeDrag } from "./drag.js";

const RULER = 18;
const GUTTER = 196;
const SHORTEST = 20;
const SLACK = 3;
const LABEL = '12px "Inter", system-ui, "Segoe UI", Roboto, "Helvetica Neue", sans-serif';

// Which samples a point of a lane is about: of the row of marks, of what the thread did, of what is below.
const STATES = { [FORM.blocked]: 0, [FORM.waiting]: 0, [FORM.running]: 1 };
const MARKS = { [FORM.estimate]: 0 };
const OTHERS = { [FORM.moment]: 0, [FORM.time]: 1 };

export class Timeline {
  /// `on` has weights(), by thread, and the callbacks range(range or null), choose(row), hover(row or null, sample
  /// or null, event) and cursor(row or null, sample or null).
  constructor({ scroller, canvas, spacer }, profile, palette, on) {
    Object.assign(this, { scroller, canvas, spacer, profile, palette, on });
    this.context = canvas.getContext("2d");
    this.duration = Math.max(profile.system.duration, 1);
    this.view = [0, this.duration];
    this.lanes = null;
    this.rows = [];
    this.filter = null;
    this.cursor = null;
    this.sample = null;
    this.frame = 0;
    new ResizeObserver(() => this.resize()).observe(scroller);
    this.drag = new RangeDrag(canvas, {
      takes: (event) => event.offsetY >= RULER,
      timeAt: (x) => this.timeAt(x),
      begun: (event) => on.hover(null, null, event),
      changed: () => this.redraw(),
      chosen: (range) => on.range(range),
      clicked: (event) => this.clicked(event),
    });
    canvas.addEventListener("pointermove", (event) => this.hover(event));
    canvas.addEventListener("pointerleave", (event) => on.hover(null, null, event));
    canvas.addEventListener("dblclick", () => on.range(null));
    canvas.addEventListener("keydown", (event) => this.key(event));
    canvas.addEventListener("blur", () => this.point(null, null));
    scroller.addEventListener("scroll", () => this.redraw());
    scroller.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
  }

  /// Orders the lanes by the weights of threads. Before it is first seen nothing is made.
  order() {
    if (this.lanes === null) return;
    this.rows = rowsOf(this.profile, this.on.weights());
    this.point(null, null);
    this.spacer.style.height = `${RULER + this.rows.length * LANE + 4}px`;
    this.redraw();
  }

  setFilter(filter) {
    this.filter = filter;
    this.redraw();
  }

  resize() {
    const { clientWidth, clientHeight } = this.scroller;
    if (clientWidth === 0) return;
    this.canvas.width = Math.round(clientWidth * devicePixelRatio);
    this.canvas.height = Math.round(clientHeight * devicePixelRatio);
    this.canvas.style.width = `${clientWidth}px`;
    this.canvas.style.height = `${clientHeight}px`;
    this.height = clientHeight;
    this.width = Math.max(1, clientWidth - GUTTER);
    if (this.lanes === null) {
      this.lanes = new Lanes(this.profile);
      this.columns = new Columns(this.profile, this.lanes);
      this.order();
    }
    this.draw();
  }

  /// Whether everything is drawn.
  get idle() {
    return this.frame === 0;
  }

  timeAt(x) {
    const [from, to] = this.view;
    return from + Math.min(1, Math.max(0, (x - GUTTER) / this.width)) * (to - from);
  }

  xOf(time) {
    const [from, to] = this.view;
    return GUTTER + ((time - from) / (to - from)) * this.width;
  }

  yOf(index) {
    return RULER + index * LANE - this.scroller.scrollTop;
  }

  rowAt(y) {
    if (y < RULER) return null;
    return this.rows[Math.floor((y - RULER + this.scroller.scrollTop) / LANE)] ?? null;
  }

  /// Shows a part of the recording.
  show(from, to) {
    const length = Math.min(this.duration, Math.max(SHORTEST, to - from));
    const start = Math.min(this.duration - length, Math.max(0, from));
    this.view = [start, start + length];
    this.redraw();
  }

  /// Makes the part shown `factor` times as long; what is at `x` stays there.
  zoom(factor, x = GUTTER + this.width / 2) {
    const [from, to] = this.view;
    const time = this.timeAt(x);
    const length = Math.min(this.duration, Math.max(SHORTEST, (to - from) * factor));
    const share = (time - from) / (to - from);
    this.show(time - share * length, time + (1 - share) * length);
  }

  pan(share) {
    const [from, to] = this.view;
    this.show(from + share * (to - from), to + share * (to - from));
  }

  // --- Drawing ---

  redraw() {
    if (this.lanes === null || this.frame !== 0) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.draw();
    });
  }

  draw() {
    const { context, palette, width, height } = this;
    if (this.lanes === null || this.filter === null || !this.scroller.clientWidth) return;
    const ratio = devicePixelRatio;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = palette.surface;
    context.fillRect(0, 0, GUTTER + width, height);
    const mask = this.filter.mask(this.profile);
    const first = Math.floor(this.scroller.scrollTop / LANE);
    const last = Math.min(this.rows.length, first + Math.ceil(height / LANE) + 1);
    for (let index = first; index < last; index++) this.row(this.rows[index], this.yOf(index), mask);
    context.fillStyle = palette.surface;
    context.fillRect(0, 0, GUTTER + width, RULER);
    const range = this.drag.range ?? this.filter.range;
    if (range !== null) {
      const place = { left: GUTTER, width, height };
      drawRange(context, palette, place, range.map((time) => this.xOf(time)), formatTime(range[1] - range[0]));
    }
    drawTicks(context, palette, { left: GUTTER, width, y: RULER - 1, below: false }, this.view);
  }

  row(row, y, mask) {
    const { context, palette, width } = this;
    const { process, thread } = row;
    const passes = thread === null ? true : mask[thread.id] === 1;
    if (thread === null) {
      context.fillStyle = palette.page;
      context.fillRect(0, y, GUTTER + width, LANE - 1);
    } else {
      this.columns.fill(thread.id, ...this.view, width);
      context.globalAlpha = passes ? 1 : 0.28;
      drawLane(context, palette, this.columns, GUTTER, y);
      if (this.sample !== null && this.cursor === row) this.outline(y);
    }
    const { filter } = this;
    const chosen = thread === null ? filter.processes.has(process.id) : filter.threads.has(thread.id);
    context.globalAlpha = passes ? 1 : 0.5;
    context.font = thread === null ? `600 ${LABEL}` : LABEL;
    context.textBaseline = "middle";
    const number = String(thread === null ? process.pid : thread.tid);
    const left = thread === null ? 8 : 18;
    context.fillStyle = palette.muted;
    const numberWidth = context.measureText(number).width;
    context.fillText(number, GUTTER - 10 - numberWidth, y + LANE / 2);
    context.fillStyle = chosen ? palette.accent : palette.text;
    const room = GUTTER - 22 - numberWidth - left;
    row.label ??= fitted(context, nameOf(row), room);
    context.fillText(row.label, left, y + LANE / 2);
    context.globalAlpha = 1;
    context.fillStyle = palette.line;
    context.fillRect(0, y + LANE - 1, GUTTER + width, 1);
    if (chosen) {
      context.fillStyle = palette.accent;
      context.fillRect(0, y, 3, LANE - 1);
    }
    if (row === this.cursor) {
      context.strokeStyle = palette.accent;
      context.lineWidth = 2;
      context.strokeRect(1, y + 1, GUTTER + width - 2, LANE - 3);
    }
  }

  // The sample that the keyboard is at.
  outline(y) {
    const { context, palette, lanes, sample } = this;
    const left = this.xOf(lanes.samples.time[sample]);
    const right = Math.max(left + 3, this.xOf(lanes.end(sample)));
    context.strokeStyle = palette.text;
    context.lineWidth = 1.5;
    context.strokeRect(Math.max(GUTTER, left) - 1, y + 2, right - Math.max(GUTTER, left) + 2, LANE - 5);
  }

  // --- Pointer ---

  hover(event) {
    if (this.drag.active || this.lanes === null) return;
    const row = this.rowAt(event.offsetY);
    this.canvas.style.cursor = row === null ? "default" : event.offsetX < GUTTER ? "pointer" : "crosshair";
    this.on.hover(row, row?.thread ? this.sampleAt(row, event.offsetX, event.offsetY) : null, event);
  }

  sampleAt(row, x, y) {
    if (x < GUTTER) return null;
    const [from, to] = this.view;
    const slack = (SLACK / this.width) * (to - from);
    const inside = (y - RULER + this.scroller.scrollTop) % LANE;
    const ranks = inside < STATE ? [MARKS, STATES, OTHERS] : inside < BELOW ? [STATES, MARKS, OTHERS] : [OTHERS, STATES];
    for (const rank of ranks) {
      const found = this.lanes.at(row.thread.id, this.timeAt(x), slack, rank);
      if (found !== null) return found;
    }
    return null;
  }

  clicked(event) {
    const row = this.rowAt(event.offsetY);
    if (row !== null) this.on.choose(row);
  }

  wheel(event) {
    const { deltaX, deltaY } = event;
    const pixels = event.deltaMode === 0 ? 1 : 16;
    if (event.ctrlKey || event.metaKey || event.altKey) {
      this.zoom(1.0016 ** (deltaY * pixels), event.clientX - this.canvas.getBoundingClientRect().left);
    } else if (event.shiftKey || Math.abs(deltaX) > Math.abs(deltaY)) {
      this.pan(((deltaX || deltaY) * pixels) / this.width);
    } else return;
    event.preventDefault();
    this.on.hover(null, null, event);
  }

  // --- Keyboard ---

  /// Puts the keyboard at a row and a sample of it.
  point(row, sample) {
    this.cursor = row;
    this.sample = sample;
    if (row !== null) {
      const y = this.yOf(this.rows.indexOf(row));
      if (y < RULER) this.scroller.scrollTop += y - RULER;
      if (y + LANE > this.height) this.scroller.scrollTop += y + LANE - this.height;
    }
    if (sample !== null) {
      const time = this.lanes.samples.time[sample];
      const [from, to] = this.view;
      if (time < from || time >= to) this.show(time - (to - from) / 2, time + (to - from) / 2);
    }
    this.redraw();
    this.on.cursor(row, sample);
  }

  step(by) {
    const at = this.cursor === null ? -1 : this.rows.indexOf(this.cursor);
    const next = this.rows[at < 0 ? 0 : at + by];
    if (next !== undefined) this.point(next, null);
  }

  beside(by) {
    const { cursor, sample } = this;
    if (!cursor?.thread) return;
    const next = this.lanes.beside(cursor.thread.id, sample, by, this.view[0]);
    if (next !== null) this.point(cursor, next);
  }

  // Without a range one begins in the middle of what is shown; its end moves.
  extend(by) {
    const [from, to] = this.view;
    const step = (by * (to - from)) / 50;
    const [start, end] = this.filter.range ?? [from + (to - from) * 0.4, from + (to - from) * 0.6];
    const range = [start, Math.min(this.duration, end + step)].map(Math.round);
    if (range[1] > range[0]) this.on.range(range);
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const whole = this.view[0] === 0 && this.view[1] === this.duration;
    const actions = {
      ArrowUp: () => this.step(-1),
      ArrowDown: () => this.step(1),
      ArrowLeft: () => (event.shiftKey ? this.extend(-1) : this.pan(-0.1)),
      ArrowRight: () => (event.shiftKey ? this.extend(1) : this.pan(0.1)),
      "+": () => this.zoom(0.7),
      "=": () => this.zoom(0.7),
      "-": () => this.zoom(1 / 0.7),
      0: () => this.show(0, this.duration),
      n: () => this.beside(1),
      p: () => this.beside(-1),
      r: () => this.on.range(this.view.map(Math.round)),
      Enter: () => this.cursor && this.on.choose(this.cursor),
      " ": () => this.cursor && this.on.choose(this.cursor),
      ...(whole ? {} : { Escape: () => this.show(0, this.duration) }),
    };
    if (actions[event.key] === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    actions[event.key]();
  }

  /// The rows in sight, in window coordinates; times are in `width` from `left` on.
  inSight() {
    if (this.lanes === null) return [];
    const bounds = this.canvas.getBoundingClientRect();
    return this.rows
      .map((row, index) => ({ row, y: this.yOf(index) }))
      .filter(({ y }) => y + LANE > RULER && y < this.height)
      .map(({ row, y }) => ({ row, y: bounds.top + y, height: LANE, left: bounds.left + GUTTER, width: this.width }));
  }
}

/// What a row is called.
export function nameOf({ process, thread }) {
  return (thread ?? process).name || "[unnamed]";
}

function fitted(context, text, room) {
  let fits = Math.min(text.length, 80);
  if (fits === text.length && context.measureText(text).width <= room) return text;
  while (fits > 0 && context.measureText(`${text.slice(0, fits)}…`).width > room) fits--;
  return `${text.slice(0, fits)}…`;
}
