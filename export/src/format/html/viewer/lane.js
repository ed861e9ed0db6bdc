// The picture of one lane: columns in, pixels out. In each row, from the top: marks of estimates; what the thread
// did, running as high as its share of the column, waiting lower, blocked lowest; other times and moments.

import { RUNNING } from "./columns.js";

export const LANE = 28;

/// Where in a row the part begins that tells what the thread did, and where the one below it.
export const STATE = 7;
export const BELOW = 21;

const FULL = BELOW - STATE - 1;
const WAITS = 8;
const OFF = 5;

export function drawLane(context, palette, columns, left, y) {
  const { width, running, blocked, waiting, time, moments, estimates, ends } = columns;
  const foot = y + BELOW - 1;
  band(context, palette.lane.blocked, blocked, left, foot - OFF, OFF);
  band(context, palette.lane.waiting, waiting, left, foot - WAITS, WAITS);
  const base = new Float32Array(width);
  running.forEach(({ values }, index) => {
    context.fillStyle = palette.category(RUNNING[index]);
    for (let x = 0; x < width; x++) {
      if (values[x] === 0) continue;
      const high = Math.max(base[x] === 0 ? 2 : 0, values[x] * FULL);
      context.fillRect(left + x, foot - base[x] - high, 1, high);
      base[x] = Math.min(FULL, base[x] + high);
    }
  });
  context.fillStyle = palette.lane.end;
  for (let x = 0; x < width; x++) if (ends[x] === 1) context.fillRect(left + x, y + STATE, 1, FULL);
  band(context, palette.lane.time, time, left, y + BELOW, 3);
  context.fillStyle = palette.lane.moment;
  for (let x = 0; x < width; x++) if (moments[x] > 0) context.fillRect(left + x, y + BELOW + 1, 1, 4);
  drawEstimates(context, palette, estimates, left, y);
}

// What is there at all is seen, and paler the less of the column it fills.
function band(context, colour, { values }, left, top, height) {
  const { globalAlpha } = context;
  context.fillStyle = colour;
  for (let x = 0; x < values.length; ) {
    const share = values[x];
    let end = x + 1;
    while (end < values.length && values[end] === share) end++;
    if (share > 0) {
      context.globalAlpha = globalAlpha * (0.3 + 0.7 * share);
      context.fillRect(left + x, top, end - x, height);
    }
    x = end;
  }
  context.globalAlpha = globalAlpha;
}

// Rings, one for what would overlap.
function drawEstimates(context, palette, estimates, left, y) {
  context.strokeStyle = palette.lane.estimate;
  context.lineWidth = 1.25;
  context.beginPath();
  let free = -Infinity;
  for (let x = 0; x < estimates.length; x++) {
    if (estimates[x] === 0 || x < free) continue;
    context.moveTo(left + x + 2.5, y + 4);
    context.arc(left + x + 0.5, y + 4, 2, 0, 2 * Math.PI);
    free = x + 6;
  }
  context.stroke();
}
