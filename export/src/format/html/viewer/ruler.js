// What canvases over time share: the ticks below or above, and the range that is chosen.

/// Ticks and their labels: a line from `left` over `width` at height `y`, with the labels `below` it or above.
export function drawTicks(context, palette, { left, width, y, below }, [from, to]) {
  context.fillStyle = palette.line;
  context.fillRect(left, y, width, 1);
  context.font = "10.5px system-ui, sans-serif";
  context.textBaseline = "middle";
  const least = (to - from) / Math.max(1, Math.floor(width / 90));
  const power = 10 ** Math.floor(Math.log10(least));
  const every = [1, 2, 5, 10].map((times) => times * power).find((tick) => tick >= least) ?? 10 * power;
  for (let at = Math.ceil(from / every); at * every <= to; at++) {
    const tick = at * every;
    const x = left + Math.round(((tick - from) / (to - from)) * width);
    context.fillStyle = palette.line;
    context.fillRect(x, below ? y : y - 4, 1, 5);
    const label = at === 0 ? "0" : formatTick(tick, every);
    context.fillStyle = palette.muted;
    const room = left + width - x - 4;
    if (context.measureText(label).width < room) context.fillText(label, x + 4, below ? y + 9 : y - 8);
  }
}

function formatTick(us, every) {
  const [unit, name] = us >= 1e6 || every >= 1e5 ? [1e6, "s"] : us >= 1e3 ? [1e3, "ms"] : [1, "µs"];
  const digits = Math.max(0, Math.ceil(Math.log10(unit / every)));
  return `${Number((us / unit).toFixed(digits))} ${name}`;
}

/// A range from `start` to `end` of what reaches from `left` over `width`: the rest is paler, and a label says
/// how long it is.
export function drawRange(context, palette, { left, width, height }, [start, end], label) {
  const clamp = (x) => Math.min(left + width, Math.max(left, x));
  const from = clamp(start);
  const to = clamp(Math.max(start + 1, end));
  context.globalAlpha = 0.66;
  context.fillStyle = palette.surface;
  context.fillRect(left, 0, from - left, height);
  context.fillRect(to, 0, left + width - to, height);
  context.globalAlpha = 0.1;
  context.fillStyle = palette.accent;
  context.fillRect(from, 0, to - from, height);
  context.globalAlpha = 1;
  if (start >= left) context.fillRect(Math.round(from), 0, 1.5, height);
  if (end <= left + width) context.fillRect(Math.round(to) - 1.5, 0, 1.5, height);
  if (to <= from) return;
  context.font = "600 11px system-ui, sans-serif";
  const text = context.measureText(label).width;
  const x = Math.min(left + width - text - 14, Math.max(left, (from + to - text - 14) / 2));
  context.beginPath();
  context.roundRect(x, 3, text + 14, 18, 9);
  context.fill();
  context.fillStyle = palette.surface;
  context.textBaseline = "middle";
  context.fillText(label, x + 7, 12.5);
}
