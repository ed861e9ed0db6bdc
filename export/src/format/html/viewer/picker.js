// A filter over many things (processes, threads): a button that opens a list with a search field.

import { formatPercent } from "./format.js";

const OPTIONS = 200;
const POPUP_WIDTH = 330;

export class Picker {
  /// `all` is the button's text without a choice, `many` the plural; `change(ids)` is called with the new set.
  constructor(element, { all, many, change }) {
    this.all = all;
    this.many = many;
    this.change = change;
    this.chosen = new Set();
    this.items = [];
    this.open = false;
    this.button = element.querySelector(".pick");
    this.label = this.button.querySelector("span");
    this.popup = element.querySelector("[popover]");
    this.field = this.popup.querySelector("input");
    this.list = this.popup.querySelector("[role=listbox]");
    this.more = this.popup.querySelector("p");
    [this.clear, this.take] = this.popup.querySelectorAll(".actions button");
    this.field.addEventListener("input", () => this.draw());
    this.clear.addEventListener("click", () => this.choose(new Set()));
    this.take.addEventListener("click", () => this.choose(new Set(this.found().map(({ id }) => id))));
    this.popup.addEventListener("beforetoggle", (event) => this.toggled(event.newState === "open"));
    this.popup.addEventListener("keydown", (event) => this.key(event));
  }

  /// The things to choose from: {id, name, detail, weight, facts}, and the weight of all.
  setItems(items, sum) {
    this.items = items.sort((a, b) => b.weight - a.weight || a.id - b.id);
    this.sum = sum;
    if (this.open) this.draw();
    this.relabel();
  }

  /// Shows a choice without telling of it.
  setChosen(ids) {
    this.chosen = ids;
    this.relabel();
    if (this.open) this.draw();
  }

  choose(ids) {
    this.setChosen(ids);
    this.change(ids);
  }

  relabel() {
    const [only] = this.chosen;
    const item = this.chosen.size === 1 ? this.items.find(({ id }) => id === only) : undefined;
    const text = item ? `${item.name} ${item.detail}` : `${this.chosen.size} ${this.many}`;
    this.label.textContent = this.chosen.size === 0 ? this.all : text;
    this.button.classList.toggle("active", this.chosen.size > 0);
  }

  toggled(open) {
    this.open = open;
    this.button.setAttribute("aria-expanded", String(open));
    if (!open) return;
    const { left, bottom } = this.button.getBoundingClientRect();
    this.popup.style.left = `${Math.max(8, Math.min(left, innerWidth - POPUP_WIDTH - 8))}px`;
    this.popup.style.top = `${bottom + 6}px`;
    this.popup.style.width = `${POPUP_WIDTH}px`;
    this.field.value = "";
    this.draw();
  }

  found() {
    const wanted = this.field.value.trim().toLowerCase();
    return this.items.filter(({ name, detail, facts }) => `${name} ${detail} ${facts}`.toLowerCase().includes(wanted));
  }

  draw() {
    const found = this.found();
    this.list.replaceChildren(...found.slice(0, OPTIONS).map((item) => this.option(item)));
    this.more.hidden = found.length > 0 && found.length <= OPTIONS;
    this.more.textContent = found.length === 0 ? "nothing matches" : `${found.length - OPTIONS} more: type to narrow`;
    this.clear.disabled = this.chosen.size === 0;
    this.take.hidden = this.field.value.trim() === "" || found.length === 0;
    this.take.textContent = `Only these ${found.length}`;
  }

  option(item) {
    const option = document.createElement("div");
    option.setAttribute("role", "option");
    option.setAttribute("aria-selected", String(this.chosen.has(item.id)));
    option.tabIndex = -1;
    option.dataset.id = item.id;
    option.title = item.facts;
    const name = document.createElement("span");
    name.textContent = item.name;
    const detail = document.createElement("small");
    detail.textContent = item.detail;
    const share = document.createElement("b");
    share.textContent = formatPercent(item.weight, this.sum);
    option.append(name, detail, share);
    option.style.setProperty("--share", this.sum > 0 ? Math.max(0, item.weight / this.sum) : 0);
    option.addEventListener("click", () => this.toggle(item.id));
    return option;
  }

  toggle(id) {
    const chosen = new Set(this.chosen);
    if (!chosen.delete(id)) chosen.add(id);
    this.choose(chosen);
  }

  // Down from the field into the list, up and down in it, Enter or space to choose.
  key(event) {
    const options = [...this.list.children];
    const at = options.indexOf(document.activeElement);
    if (event.key === "ArrowDown") (options[at + 1] ?? options[at])?.focus();
    else if (event.key === "ArrowUp") (at > 0 ? options[at - 1] : this.field).focus();
    else if (at >= 0 && (event.key === "Enter" || event.key === " ")) {
      this.toggle(Number(options[at].dataset.id));
      this.list.children[at]?.focus();
    } else return;
    event.preventDefault();
  }
}
