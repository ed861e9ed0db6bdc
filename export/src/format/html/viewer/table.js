// The table of functions: self and total weight, sortable, only as many rows in the page as are seen.

import { CATEGORY } from "./decode.js";
import { formatPercent, baseName } from "./format.js";

const TABLE_ROW = 28;

export class FunctionTable {
  /// `on` has the callbacks pick(function) for a click and hover(function or null, event).
  constructor({ scroller, body, above, below, headers, count }, profile, palette, on) {
    Object.assign(this, { scroller, body, above, below, headers, countLabel: count, profile, palette, on });
    this.order = { by: "self", down: true };
    this.rows = [];
    this.picked = null;
    this.matches = null;
    scroller.addEventListener("scroll", () => this.draw());
    new ResizeObserver(() => this.draw()).observe(scroller);
    for (const header of headers) {
      header.querySelector("button").addEventListener("click", () => this.sort(header.dataset.by));
    }
  }

  /// Shows the functions that have weight.
  setWeights(weights, measure) {
    this.weights = weights;
    this.measure = measure;
    this.fill();
  }

  /// Shows only functions that match (by function: 1), or all for null.
  setMatches(matches) {
    this.matches = matches;
    this.scroller.scrollTop = 0;
    if (this.weights) this.fill();
  }

  /// Sorts by a column; a second time turns the order round.
  sort(by) {
    const down = this.order.by === by ? !this.order.down : by !== "name";
    this.order = { by, down };
    this.scroller.scrollTop = 0;
    this.fill();
  }

  fill() {
    const { functionSelf, functionTotal } = this.weights;
    this.rows = this.profile.functions.filter(
      ({ id, category }) =>
        functionTotal[id] > 0 &&
        category !== CATEGORY.all &&
        category !== CATEGORY.process &&
        (this.matches === null || this.matches[id] === 1),
    );
    const { by, down } = this.order;
    const compare = {
      self: (a, b) => functionSelf[a.id] - functionSelf[b.id] || functionTotal[a.id] - functionTotal[b.id],
      total: (a, b) => functionTotal[a.id] - functionTotal[b.id] || functionSelf[a.id] - functionSelf[b.id],
      name: (a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0),
    }[by];
    this.rows.sort((a, b) => (down ? compare(b, a) : compare(a, b)) || a.id - b.id);
    for (const header of this.headers) {
      const sorted = header.dataset.by === by;
      header.setAttribute("aria-sort", sorted ? (down ? "descending" : "ascending") : "none");
    }
    this.countLabel.textContent = this.rows.length.toLocaleString("en-US");
    this.draw();
  }

  draw() {
    if (!this.weights) return;
    const { scrollTop, clientHeight } = this.scroller;
    const first = Math.max(0, Math.min(Math.floor(scrollTop / TABLE_ROW) - 4, this.rows.length));
    const last = Math.min(this.rows.length, first + Math.ceil(clientHeight / TABLE_ROW) + 9);
    this.above.style.height = `${first * TABLE_ROW}px`;
    this.below.style.height = `${(this.rows.length - last) * TABLE_ROW}px`;
    this.body.replaceChildren(...this.rows.slice(first, last).map((fn) => this.row(fn)));
  }

  row(fn) {
    const { functionSelf, functionTotal, sum } = this.weights;
    const row = document.createElement("tr");
    const name = document.createElement("th");
    name.scope = "row";
    const button = document.createElement("button");
    button.type = "button";
    button.className = "function";
    const dot = document.createElement("i");
    dot.style.background = this.palette.fill(fn.id);
    const text = document.createElement("span");
    text.textContent = fn.name;
    button.append(dot, text);
    if (fn.module !== "") {
      const module = document.createElement("small");
      module.textContent = baseName(fn.module);
      button.append(module);
    }
    button.setAttribute("aria-pressed", String(this.picked === fn.id));
    button.addEventListener("click", () => this.on.pick(fn));
    name.append(button);
    row.append(name, this.cell(functionSelf[fn.id], sum), this.cell(functionTotal[fn.id], sum));
    row.addEventListener("pointermove", (event) => this.on.hover(fn, event));
    row.addEventListener("pointerleave", (event) => this.on.hover(null, event));
    return row;
  }

  cell(weight, sum) {
    const cell = document.createElement("td");
    const percent = document.createElement("b");
    percent.textContent = weight > 0 ? formatPercent(weight, sum) : "–";
    const value = document.createElement("small");
    value.textContent = weight > 0 ? this.measure.short(weight) : "";
    cell.append(percent, value);
    cell.style.setProperty("--share", sum > 0 ? Math.min(1, weight / sum) : 0);
    return cell;
  }
}
