// What floats at the pointer: a title and lines of label and value, always as text, never as markup.

export class Tooltip {
  constructor(element) {
    this.element = element;
  }

  /// Shows `title`, `lines` ([label, value]) and a small line `note` at a point of the window.
  show(x, y, title, lines, note) {
    const heading = document.createElement("strong");
    heading.textContent = title;
    const table = document.createElement("dl");
    for (const [label, value] of lines) {
      const term = document.createElement("dt");
      term.textContent = label;
      const text = document.createElement("dd");
      text.textContent = value;
      table.append(term, text);
    }
    this.element.replaceChildren(heading, table);
    if (note) {
      const small = document.createElement("small");
      small.textContent = note;
      this.element.append(small);
    }
    this.element.hidden = false;
    const { width, height } = this.element.getBoundingClientRect();
    const left = x + 16 + width > innerWidth ? x - 16 - width : x + 16;
    const top = y + 20 + height > innerHeight ? y - 14 - height : y + 20;
    this.element.style.translate = `${Math.max(4, left)}px ${Math.max(4, top)}px`;
  }

  hide() {
    this.element.hidden = true;
  }
}
