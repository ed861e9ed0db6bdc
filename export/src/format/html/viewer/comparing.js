// The controls of a comparison: opens another page, says which of the two is the base, and what went wrong.

import { formatCount, formatTime } from "./format.js";
import { Comparison } from "./comparison.js";
import { listenForFiles, openPage } from "./opening.js";

export class Comparing {
  /// `on` has the callbacks changed(comparison or null) for another page or none, and turned() for another way to
  /// look at the same two.
  constructor({ bar, button, input, problem }, profile, on) {
    Object.assign(this, { bar, button, problem, profile, on });
    this.comparison = null;
    listenForFiles(button, input, (file) => this.open(file));
    problem.querySelector("button").addEventListener("click", () => this.tell(""));
    bar.querySelector("#end-comparison").addEventListener("click", () => this.set(null));
    this.choice("absolute", (value) => (this.comparison.absolute = value !== ""));
    this.choice("wide", (value) => (this.comparison.otherIsWide = value !== ""));
    this.choice("counted", (value) => (this.comparison.counted = value));
    bar.querySelector("#swap").addEventListener("click", () => {
      this.comparison.otherIsBase = !this.comparison.otherIsBase;
      this.show();
      on.turned();
    });
  }

  choice(name, choose) {
    const buttons = [...this.bar.querySelectorAll(`[data-${name}]`)];
    for (const button of buttons) {
      button.addEventListener("click", () => {
        choose(button.dataset[name]);
        for (const other of buttons) other.setAttribute("aria-pressed", String(other === button));
        this.on.turned();
      });
    }
  }

  async open(file) {
    this.tell("");
    this.button.disabled = true;
    try {
      const other = await openPage(file);
      const own = new Set(this.profile.kinds.map(({ name, unit }) => `${unit} ${name}`));
      if (!other.kinds.some(({ name, unit }) => own.has(`${unit} ${name}`))) {
        const names = ({ kinds }) => kinds.map(({ name }) => name).join(", ");
        throw new Error(`it has samples of ${names(other)}, this page of ${names(this.profile)}`);
      }
      this.set(new Comparison(this.profile, other, file.name));
    } catch (error) {
      this.tell(`${file.name} can't be compared: ${error.message}.`);
    } finally {
      this.button.disabled = false;
    }
  }

  /// Says what is wrong, or nothing for "".
  tell(text) {
    this.problem.hidden = text === "";
    this.problem.querySelector("p").textContent = text;
  }

  set(comparison) {
    this.comparison = comparison;
    this.bar.hidden = comparison === null;
    document.body.classList.toggle("comparing", comparison !== null);
    for (const first of ["absolute", "wide", "counted"].map((name) => this.bar.querySelector(`[data-${name}]`))) {
      for (const button of first.parentElement.children) button.setAttribute("aria-pressed", String(button === first));
    }
    this.on.changed(comparison);
  }

  /// Names both sides, once they are weighed.
  show() {
    const { comparison, bar, profile } = this;
    const about = ({ system }, count) =>
      [system.host, `${formatCount(count)} samples of ${formatTime(system.duration)}`].filter((text) => text !== "").join(", ");
    const own = `this page (${about(profile, comparison.ownCount)})`;
    const other = `${comparison.name} (${about(comparison.other, comparison.otherCount)})`;
    const texts = comparison.otherIsBase ? [other, own] : [own, other];
    for (const [index, id] of ["#base-side", "#new-side"].entries()) {
      const side = bar.querySelector(id);
      side.textContent = texts[index];
      side.title = texts[index];
    }
    this.tell(comparison.missing === null ? "" : `${comparison.name} has no samples of ${comparison.missing}.`);
  }
}
