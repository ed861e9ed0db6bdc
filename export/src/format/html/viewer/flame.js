// The flame graph: a tree of tree.js in, a canvas with zoom, hover and a keyboard cursor out. The root is on top.
//
// A view is the part [from, to] of the root's weight that fills the width; zooming moves it. Each layout walks
// from the root and leaves out what is off the sides or too narrow to see, so its cost is that of the picture,
// whatever the size of the tree. The canvas is as high as the window; rows off it are not drawn.

import { CATEGORY } from "./decode.js";
import { pathTo, follow } from "./tree.js";

const FRAME_ROW = 21;
const NARROWEST = 0.7;
const ZOOM_MS = 170;
const FONT = '12px "Inter", system-ui, "Segoe UI", Roboto, "Helvetica Neue", sans-serif';

export class FlameView {
  /// `on` has the callbacks hover(node, event) (node null when left), zoom(path of nodes) and cursor(node).
  constructor({ scroller, canvas, spacer }, profile, palette, on) {
    Object.assign(this, { scroller, canvas, spacer, profile, palette, on });
    this.context = canvas.getContext("2d");
    this.tree = null;
    this.fillOf = null;
    this.matches = null;
    this.rows = [];
    this.zoomed = 0;
    this.cursor = null;
    this.hovered = null;
    this.view = [0, 1];
    this.animation = 0;
    this.textWidths = new Map();
    new ResizeObserver(() => this.resize()).observe(scroller);
    scroller.addEventListener("scroll", () => this.draw());
    canvas.addEventListener("pointermove", (event) => this.hover(this.at(event.clientX, event.clientY), event));
    canvas.addEventListener("pointerleave", (event) => this.hover(null, event));
    canvas.addEventListener("click", (event) => {
      const node = this.at(event.clientX, event.clientY);
      if (node !== null) this.zoom(node);
    });
    canvas.addEventListener("keydown", (event) => this.key(event));
    canvas.addEventListener("blur", () => this.setCursor(null));
  }

  /// Whether nothing moves.
  get idle() {
    return this.animation === 0;
  }

  /// Whose functions and frames the next tree is of, and the colour of its nodes; null for that of their functions.
  setProfile(profile, fillOf) {
    this.profile = profile;
    this.fillOf = fillOf;
  }

  /// Shows another tree. The zoom stays where the path to it is still there, unless `reset` is set.
  setTree(tree, reset) {
    const path = this.tree === null || reset ? [] : pathTo(this.tree, this.zoomed);
    this.tree = tree;
    this.hovered = null;
    this.cursor = null;
    this.zoomed = follow(tree, path);
    this.view = this.extent(this.zoomed);
    this.stop();
    this.layout();
    if (reset) this.scroller.scrollTop = 0;
    this.draw();
    this.on.zoom(this.ancestors(this.zoomed));
  }

  /// Highlights functions (by function: 1 for a match), or none for null.
  setMatches(matches) {
    this.matches = matches;
    this.draw();
  }

  /// Makes a node fill the width.
  zoom(node) {
    if (node === this.zoomed) return;
    this.zoomed = node;
    this.animate(this.extent(node));
    const top = (this.ancestors(node).length - 1) * FRAME_ROW;
    const { scrollTop, clientHeight } = this.scroller;
    if (top < scrollTop || top > scrollTop + clientHeight * 0.6) {
      this.scroller.scrollTop = Math.max(0, top - 3 * FRAME_ROW);
    }
    this.on.zoom(this.ancestors(node));
  }

  /// The nodes from the root to `node`.
  ancestors(node) {
    const path = [node];
    while (path[0] !== this.tree.root) path.unshift(this.tree.parent(path[0]));
    return path;
  }

  /// Where a node stands in the root's weight, as [from, to].
  extent(node) {
    const { tree } = this;
    const whole = tree.total(tree.root);
    if (node === tree.root || whole <= 0) return [0, 1];
    let before = 0;
    for (let at = node; at !== tree.root; at = tree.parent(at)) {
      for (const sibling of tree.children(tree.parent(at))) {
        if (sibling === at) break;
        before += tree.total(sibling);
      }
    }
    return [before / whole, (before + tree.total(node)) / whole];
  }

  stop() {
    cancelAnimationFrame(this.animation);
    this.animation = 0;
  }

  animate(target) {
    this.stop();
    const start = this.view;
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const began = performance.now();
    const step = (now) => {
      const at = still ? 1 : Math.min(1, Math.max(0, now - began) / ZOOM_MS);
      const eased = 1 - (1 - at) ** 3;
      this.view = at === 1 ? target : start.map((from, i) => from + (target[i] - from) * eased);
      this.layout();
      this.draw();
      this.animation = at === 1 ? 0 : requestAnimationFrame(step);
    };
    this.animation = requestAnimationFrame(step);
  }

  resize() {
    const { clientWidth, clientHeight } = this.scroller;
    const ratio = devicePixelRatio;
    this.canvas.width = Math.round(clientWidth * ratio);
    this.canvas.height = Math.round(clientHeight * ratio);
    this.canvas.style.width = `${clientWidth}px`;
    this.canvas.style.height = `${clientHeight}px`;
    this.width = clientWidth;
    this.height = clientHeight;
    if (this.tree !== null) {
      this.layout();
      this.draw();
    }
  }

  // Rows of boxes {node, x, width}, each row from left to right. The node of a box for children too narrow to
  // draw is null.
  layout() {
    const { tree, view } = this;
    const rows = (this.rows = []);
    const whole = tree.total(tree.root);
    if (whole <= 0 || !(this.width > 0)) {
      this.spacer.style.height = "0px";
      return;
    }
    const scale = this.width / (view[1] - view[0]) / whole;
    const left = view[0] * whole;
    const visible = (start, weight) => (start + weight - left) * scale >= 0 && (start - left) * scale <= this.width;
    const add = (depth, node, start, weight) => {
      while (rows.length <= depth) rows.push([]);
      rows[depth].push({ node, x: (start - left) * scale, width: weight * scale });
    };
    const open = [{ node: tree.root, depth: 0, start: 0 }];
    while (open.length > 0) {
      const { node, depth, start } = open.pop();
      const total = tree.total(node);
      add(depth, node, start, total);
      const children = tree.children(node);
      const first = open.length;
      let at = start;
      let index = 0;
      for (; index < children.length; index++) {
        const weight = tree.total(children[index]);
        if (weight * scale < NARROWEST) break;
        if (visible(at, weight)) open.push({ node: children[index], depth: depth + 1, start: at });
        at += weight;
      }
      if (index < children.length) {
        let rest = 0;
        for (; index < children.length && (at + rest - left) * scale < this.width; index++) {
          rest += tree.total(children[index]);
        }
        if (rest * scale >= 1 && visible(at, rest)) {
          open.push({ node: null, depth: depth + 1, start: at, weight: rest });
        }
      }
      // What was put in last comes out first: the leftmost child, so that rows are in order.
      for (let low = first, high = open.length - 1; low < high; low++, high--) {
        [open[low], open[high]] = [open[high], open[low]];
      }
      while (open.length > 0 && open[open.length - 1].node === null) {
        const rest = open.pop();
        add(rest.depth, null, rest.start, rest.weight);
      }
    }
    this.spacer.style.height = `${rows.length * FRAME_ROW + 2}px`;
  }

  draw() {
    const { context, palette, scroller } = this;
    if (this.tree === null || !(this.width > 0)) return;
    const ratio = devicePixelRatio;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = palette.surface;
    context.fillRect(0, 0, this.width, this.height);
    context.font = FONT;
    context.textBaseline = "middle";
    const scroll = scroller.scrollTop;
    const last = Math.min(this.rows.length, Math.ceil((scroll + this.height) / FRAME_ROW));
    const zoomDepth = this.ancestors(this.zoomed).length - 1;
    for (let depth = Math.floor(scroll / FRAME_ROW); depth < last; depth++) {
      for (const box of this.rows[depth]) this.box(box, depth * FRAME_ROW - scroll, depth < zoomDepth);
    }
  }

  box({ node, x, width }, y, above) {
    const { context, palette, profile, tree } = this;
    const left = Math.max(0, Math.round(x));
    const right = Math.min(this.width, Math.max(left + 1, Math.round(x + width) - (width > 3 ? 1 : 0)));
    if (right <= left) return;
    if (node === null) {
      context.fillStyle = palette.rest;
      context.fillRect(left, y, right - left, FRAME_ROW - 1);
      if (right - left > 110) {
        context.fillStyle = palette.muted;
        context.fillText("… too small to draw", left + 5, y + FRAME_ROW / 2);
      }
      return;
    }
    const frame = tree.frame(node);
    const id = profile.frames.function[frame];
    const fn = profile.functions[id];
    const matched = this.matches !== null && this.matches[id] === 1;
    const dimmed = this.matches !== null && !matched;
    context.globalAlpha = above && !matched ? 0.55 : 1;
    context.fillStyle = matched ? palette.match : dimmed ? palette.dimmed : (this.fillOf?.(node) ?? palette.fill(id));
    context.fillRect(left, y, right - left, FRAME_ROW - 1);
    if (profile.frames.heuristic[frame] === 1 || fn.category === CATEGORY.cut) {
      context.fillStyle = palette.hatching(context);
      context.fillRect(left, y, right - left, FRAME_ROW - 1);
    }
    context.globalAlpha = 1;
    if (right - left > 26) {
      context.fillStyle = matched ? "#fff" : dimmed ? palette.dimmedText : palette.frameText;
      const text = this.fit(fn.name, right - left - 10);
      if (text !== "") context.fillText(text, left + 5, y + FRAME_ROW / 2);
    }
    if (node === this.hovered || node === this.cursor) {
      context.strokeStyle = node === this.cursor ? palette.accent : palette.text;
      context.lineWidth = node === this.cursor ? 2 : 1;
      context.strokeRect(left + 0.5, y + 0.5, right - left - 1, FRAME_ROW - 2);
    }
  }

  // As much of a name as fits: measured once whole, then cut by its mean width a character.
  fit(name, width) {
    let whole = this.textWidths.get(name);
    if (whole === undefined) {
      whole = this.context.measureText(name.slice(0, 400)).width;
      this.textWidths.set(name, whole);
    }
    if (whole <= width && name.length <= 400) return name;
    let fits = Math.floor((Math.min(name.length, 400) * (width - 8)) / whole);
    while (fits > 0 && this.context.measureText(name.slice(0, fits)).width > width - 8) fits--;
    return fits < 2 ? "" : `${name.slice(0, fits)}…`;
  }

  /// The node at a point of the window, or null.
  at(clientX, clientY) {
    const bounds = this.canvas.getBoundingClientRect();
    const x = clientX - bounds.left;
    const row = this.rows[Math.floor((clientY - bounds.top + this.scroller.scrollTop) / FRAME_ROW)];
    if (row === undefined || x < 0 || x >= this.width) return null;
    const box = row.find((box) => x >= box.x && x < box.x + Math.max(1, box.width));
    return box === undefined ? null : box.node;
  }

  hover(node, event) {
    if (node !== this.hovered) {
      this.hovered = node;
      this.canvas.style.cursor = node === null ? "default" : "pointer";
      this.draw();
    }
    this.on.hover(node, event);
  }

  setCursor(node) {
    this.cursor = node;
    if (node !== null) {
      const top = (this.ancestors(node).length - 1) * FRAME_ROW;
      const { scrollTop, clientHeight } = this.scroller;
      if (top < scrollTop) this.scroller.scrollTop = top;
      if (top + FRAME_ROW > scrollTop + clientHeight) this.scroller.scrollTop = top + FRAME_ROW - clientHeight;
    }
    this.draw();
    this.on.cursor(node);
  }

  // Arrows move the cursor: up to the caller's row, down to the heaviest child, sideways between siblings.
  key(event) {
    const { tree } = this;
    const from = this.cursor ?? this.zoomed;
    const siblings = from === tree.root ? [from] : tree.children(tree.parent(from));
    const beside = (step) => siblings[siblings.indexOf(from) + step] ?? from;
    const moves = {
      ArrowUp: () => (from === tree.root ? from : tree.parent(from)),
      ArrowDown: () => tree.children(from)[0] ?? from,
      ArrowLeft: () => beside(-1),
      ArrowRight: () => beside(1),
      Home: () => tree.root,
    };
    if (event.key === "Enter") {
      this.zoom(from);
    } else if (moves[event.key] !== undefined && !event.altKey && !event.ctrlKey && !event.metaKey) {
      this.setCursor(this.cursor === null ? this.zoomed : moves[event.key]());
    } else {
      return;
    }
    event.preventDefault();
  }

  /// What is on the canvas now: boxes in window coordinates, each with its parent's position in the list.
  boxes() {
    const bounds = this.canvas.getBoundingClientRect();
    const boxes = [];
    const positions = new Map();
    this.rows.forEach((row, depth) => {
      const y = bounds.top + depth * FRAME_ROW - this.scroller.scrollTop;
      for (const { node, x, width } of row) {
        if (node === null) continue;
        const left = Math.max(0, x);
        const right = Math.min(this.width, x + width);
        const parent = node === this.tree.root ? -1 : positions.get(this.tree.parent(node));
        positions.set(node, boxes.length);
        boxes.push({ node, parent, x: bounds.left + left, y, width: right - left, height: FRAME_ROW });
      }
    });
    return boxes;
  }
}
