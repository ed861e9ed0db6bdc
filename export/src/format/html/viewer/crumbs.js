// Breadcrumbs: the path of nodes to what fills the width of the flame graph; a click goes back to a node.

const CRUMBS_FIRST = 2;
const CRUMBS_LAST = 4;

export class Crumbs {
  /// `go(node)` is called for a click; `name(node)` is a node's text.
  constructor(element, name, go) {
    Object.assign(this, { element, name, go });
  }

  show(path) {
    const gap = path.length > CRUMBS_FIRST + CRUMBS_LAST + 1;
    const shown = gap ? [...path.slice(0, CRUMBS_FIRST), null, ...path.slice(-CRUMBS_LAST)] : path;
    this.element.replaceChildren(
      ...shown.map((node) => {
        const item = document.createElement("li");
        if (node === null) {
          item.textContent = `… ${path.length - CRUMBS_FIRST - CRUMBS_LAST} …`;
          return item;
        }
        const button = document.createElement("button");
        button.type = "button";
        button.textContent = this.name(node);
        button.title = this.name(node);
        if (node === path[path.length - 1]) button.setAttribute("aria-current", "true");
        button.addEventListener("click", () => this.go(node));
        item.append(button);
        return item;
      }),
    );
  }
}
