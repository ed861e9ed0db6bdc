// The table of functions: columns of numbers, sortable, only as many rows in the page as are seen.

import { CATEGORY } from "./decode.js";
import { formatPercent, baseName } from "./format.js";

const TABLE_ROW = 28;

/// The columns of weights: shares, and values as `measure` writes them.
export function weightColumns({ functionSelf, functionTotal, sum }, measure) {
  const column = (by, label, values, others) => ({
    by,
    label,
    compare: (a, b) => values[a.id] - values[b.id] || others[a.id] - others[b.id],
    cell: ({ id }) => ({
      text: values[id] > 0 ? formatPercent(values[id], sum) : "–",
      note: values[id] > 0 ? measure.short(values[id]) : "",
      share: sum > 0 ? values[id] / sum : 0,
    }),
  });
  return [
    column("self", "Self", functionSelf, functionTotal),
    column("total", "Total", functionTotal, functionSelf),
  ];
}

export class FunctionTable {
  /// `on` has the callbacks pick(function) for a click and hover(function or null, event).
  constructor({ scroller, body, above, below, headers, count }, on) {
    Object.assign(this, { scroller, body, above, below, headers, countLabel: count, on });
    this.order = { by: "", down: true };
    this.columns = [];
    this.rows = [];
    this.picked = null;
    this.matches = null;
    scroller.addEventListener("scroll", () => this.draw());
    new ResizeObserver(() => this.draw()).observe(scroller);
    headers.querySelector("button").addEventListener("click", () => this.sort("name"));
  }

  /// Shows `functions` (those of code) that have weight, in `columns` of {by, label, compare, cell}, with the
  /// colours that `fill(id)` gives. Another set of columns is sorted by its `first`.
  show({ functions, hasWeight, columns, fill, first }) {
    this.functions = functions.filter(
      ({ id, category }) => hasWeight(id) && category !== CATEGORY.all && category !== CATEGORY.process,
    );
    this.fill = fill;
    const known = columns.some(({ by }) => this.columns.some((column) => column.by === by));
    this.columns = columns;
    if (!known) {
      this.order = { by: first, down: true };
      this.head();
    }
    this.fillRows();
  }

  head() {
    const cells = this.columns.map(({ by, label }) => {
      const cell = document.createElement("th");
      cell.scope = "col";
      cell.dataset.by = by;
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = label;
      button.addEventListener("click", () => this.sort(by));
      cell.append(button);
      return cell;
    });
    this.headers.replaceChildren(this.headers.firstElementChild, ...cells);
  }

  /// Shows only functions that match (by function: 1), or all for null.
  setMatches(matches) {
    this.matches = matches;
    this.scroller.scrollTop = 0;
    if (this.functions) this.fillRows();
  }

  /// Sorts by a column; a second time turns the order round.
  sort(by) {
    const down = this.order.by === by ? !this.order.down : by !== "name";
    this.order = { by, down };
    this.scroller.scrollTop = 0;
    this.fillRows();
  }

  fillRows() {
    this.rows = this.functions.filter(({ id }) => this.matches === null || this.matches[id] === 1);
    const { by, down } = this.order;
    const byName = (a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0);
    const compare = this.columns.find((column) => column.by === by)?.compare ?? byName;
    this.rows.sort((a, b) => (down ? compare(b, a) : compare(a, b)) || a.id - b.id);
    for (const header of this.headers.children) {
      const sorted = header.dataset.by === by;
      header.setAttribute("aria-sort", sorted ? (down ? "descending" : "ascending") : "none");
    }
    this.countLabel.textContent = this.rows.length.toLocaleString("en-US");
    this.draw();
  }

  draw() {
    if (!this.functions) return;
    const { scrollTop, clientHeight } = this.scroller;
    const first = Math.max(0, Math.min(Math.floor(scrollTop / TABLE_ROW) - 4, this.rows.length));
    const last = Math.min(this.rows.length, first + Math.ceil(clientHeight / TABLE_ROW) + 9);
    this.above.style.height = `${first * TABLE_ROW}px`;
    this.below.style.height = `${(this.rows.length - last) * TABLE_ROW}px`;
    this.body.replaceChildren(...this.rows.slice(first, last).map((fn) => this.row(fn)));
  }

  row(fn) {
    const row = document.createElement("tr");
    const name = document.createElement("th");
    name.scope = "row";
    const button = document.createElement("button");
    button.type = "button";
    button.className = "function";
    const dot = document.createElement("i");
    dot.style.background = this.fill(fn.id);
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
    row.append(name, ...this.columns.map((column) => cellOf(column.cell(fn))));
    row.addEventListener("pointermove", (event) => this.on.hover(fn, event));
    row.addEventListener("pointerleave", (event) => this.on.hover(null, event));
    return row;
  }
}

function cellOf({ text, note, share }) {
  const cell = document.createElement("td");
  const main = document.createElement("b");
  main.textContent = text;
  const small = document.createElement("small");
  small.textContent = note;
  cell.append(main, small);
  cell.style.setProperty("--share", Math.min(1, Math.max(0, share)));
  return cell;
}
