// Colours: a hue a category, varied by module (user code) or name, in a light and a dark set that follow the
// system's setting. The page's own colours are custom properties in style.css.

import { CATEGORY } from "./decode.js";

/// What the legend says of the categories.
export const LEGEND = [
  [CATEGORY.process, "process"],
  [CATEGORY.user, "user"],
  [CATEGORY.kernel, "kernel"],
  [CATEGORY.jit, "JIT"],
  [CATEGORY.unknown, "no symbol"],
  [CATEGORY.cut, "stack cut"],
];

const HUES = {
  [CATEGORY.user]: { from: 176, range: 56, saturation: [58, 38] },
  [CATEGORY.kernel]: { from: 14, range: 28, saturation: [88, 58] },
  [CATEGORY.jit]: { from: 282, range: 34, saturation: [60, 36] },
};

const GREYS = {
  [CATEGORY.all]: ["#d5dae3", "#2b3240"],
  [CATEGORY.process]: ["#c3ccda", "#3a4456"],
  [CATEGORY.unknown]: ["#d3d0cb", "#45433f"],
  [CATEGORY.cut]: ["#e4e1dc", "#34322f"],
};

const scheme = matchMedia("(prefers-color-scheme: dark)");

function hash(text) {
  let hash = 2166136261;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 16777619);
  hash ^= hash >>> 15;
  hash = Math.imul(hash, 2246822519);
  return (hash ^ (hash >>> 13)) >>> 0;
}

/// Colours of functions and of the page, for the system's present scheme.
export class Palette {
  constructor(functions) {
    this.functions = functions;
    this.read();
  }

  /// Calls `changed` whenever the scheme has changed.
  watch(changed) {
    scheme.addEventListener("change", () => {
      this.read();
      changed();
    });
  }

  read() {
    this.dark = scheme.matches;
    this.fills = new Array(this.functions.length);
    const style = getComputedStyle(document.documentElement);
    const property = (name) => style.getPropertyValue(`--${name}`).trim();
    this.page = property("page");
    this.surface = property("surface");
    this.text = property("text");
    this.muted = property("muted");
    this.accent = property("accent");
    this.line = property("line");
    this.frameText = this.dark ? "#f2f4f8" : "#1a1f29";
    this.dimmed = this.dark ? "#242a35" : "#e9ecf1";
    this.dimmedText = this.dark ? "#7c8597" : "#8b93a1";
    this.match = this.dark ? "#d83f87" : "#f26fa9";
    this.rest = this.dark ? "#1e232d" : "#eceef2";
    this.hatch = null;
    const pick = (light, dark) => (this.dark ? dark : light);
    this.lane = {
      blocked: pick("hsl(258 24% 74%)", "hsl(258 20% 44%)"),
      waiting: pick("hsl(47 92% 55%)", "hsl(47 74% 50%)"),
      time: pick("hsl(150 48% 44%)", "hsl(150 44% 48%)"),
      moment: pick("hsl(220 12% 38%)", "hsl(220 14% 68%)"),
      estimate: pick("hsl(258 40% 48%)", "hsl(258 60% 78%)"),
      end: pick("hsl(258 32% 46%)", "hsl(258 40% 72%)"),
    };
  }

  /// The colour of a change from -1 (blue, shrank) over 0 (grey) to 1 (red, grew).
  change(tone) {
    const strength = Math.abs(tone);
    if (strength < 0.02) return this.dark ? "hsl(220 8% 32%)" : "hsl(220 10% 84%)";
    const hue = tone > 0 ? 4 : 212;
    const light = this.dark ? 32 + strength * 10 : 84 - strength * 22;
    return `hsl(${hue} ${Math.round(18 + strength * (this.dark ? 44 : 62))}% ${light.toFixed(0)}%)`;
  }

  /// The colour of a function.
  fill(id) {
    return (this.fills[id] ??= this.mix(this.functions[id]));
  }

  mix({ name, module, category }) {
    const grey = GREYS[category];
    if (grey) return grey[this.dark ? 1 : 0];
    const { from, range, saturation } = HUES[category];
    const hue = from + (hash(category === CATEGORY.user ? module : name) % range);
    const light = (this.dark ? 30 : 72) + (hash(name) % 9);
    return `hsl(${hue} ${saturation[this.dark ? 1 : 0]}% ${light}%)`;
  }

  /// The colour of a category in the legend and the strip.
  category(category) {
    const grey = GREYS[category];
    if (grey) return grey[this.dark ? 1 : 0];
    const { from, range, saturation } = HUES[category];
    return `hsl(${from + range / 2} ${saturation[this.dark ? 1 : 0] + 6}% ${this.dark ? 44 : 66}%)`;
  }

  /// The colour of the nth of `count` stacked series.
  series(index, count) {
    const at = count > 1 ? index / (count - 1) : 0;
    return `hsl(${208 + at * 34} ${this.dark ? 46 : 62}% ${this.dark ? 52 - at * 20 : 56 + at * 22}%)`;
  }

  /// Diagonal lines over frames that a heuristic found.
  hatching(context) {
    if (this.hatch) return this.hatch;
    const tile = new OffscreenCanvas(8, 8);
    const draw = tile.getContext("2d");
    draw.strokeStyle = this.dark ? "rgb(255 255 255 / 22%)" : "rgb(0 0 0 / 20%)";
    draw.lineWidth = 1.5;
    draw.beginPath();
    for (const shift of [-8, 0, 8]) {
      draw.moveTo(shift - 1, 9);
      draw.lineTo(shift + 9, -1);
    }
    draw.stroke();
    return (this.hatch = context.createPattern(tile, "repeat"));
  }
}
