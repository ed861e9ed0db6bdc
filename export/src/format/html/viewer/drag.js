// Dragging over time: a pointer that goes sideways on a canvas in, a range of time out.

const STEADY = 3;

export class RangeDrag {
  /// `on` has timeAt(x) and the callbacks begun(event), changed() while the range changes, chosen(range) when
  /// the drag ends, and clicked(event) if it went nowhere. Only presses that `on.takes(event)` allows begin one.
  constructor(canvas, on) {
    Object.assign(this, { canvas, on });
    this.start = null;
    this.range = null;
    canvas.addEventListener("pointerdown", (event) => this.down(event));
    canvas.addEventListener("pointermove", (event) => this.move(event));
    canvas.addEventListener("pointerup", (event) => this.up(event));
    canvas.addEventListener("pointercancel", () => this.end());
  }

  get active() {
    return this.start !== null;
  }

  down(event) {
    if (event.button !== 0 || !this.on.takes(event)) return;
    this.canvas.setPointerCapture(event.pointerId);
    this.start = event.offsetX;
    this.on.begun(event);
  }

  move(event) {
    if (!this.active || (Math.abs(event.offsetX - this.start) < STEADY && this.range === null)) return;
    const ends = [this.on.timeAt(this.start), this.on.timeAt(event.offsetX)].sort((a, b) => a - b);
    this.range = ends.map(Math.round);
    this.on.changed();
  }

  up(event) {
    const { active, range } = this;
    this.end();
    if (range !== null && range[1] > range[0]) this.on.chosen(range);
    else if (active && range === null) this.on.clicked(event);
  }

  end() {
    this.start = null;
    this.range = null;
    this.on.changed();
  }
}
