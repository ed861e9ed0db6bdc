// Changes in words: what a comparison found in, text for the table and for tooltips out.

import { formatPercent } from "./format.js";

/// The three columns of the table: base, new, change.
export function changeColumns(comparison, measure) {
  const of = ({ id }) => comparison.ofFunction(id);
  const by = (pick) => (a, b) => pick(of(a)) - pick(of(b));
  const side = (name, label, pick) => ({
    by: name,
    label,
    compare: by(pick),
    cell: (fn) => ({
      text: pick(of(fn)) === 0 ? "–" : sideText(comparison, measure, pick(of(fn))),
      note: "",
      share: comparison.absolute ? 0 : pick(of(fn)),
    }),
  });
  return [
    side("base", "Base", ({ base }) => base),
    side("new", "New", ({ now }) => now),
    {
      by: "change",
      label: "Change",
      compare: by(({ difference }) => difference),
      cell: (fn) => ({
        text: differenceText(comparison, measure, of(fn).difference),
        note: relativeText(of(fn)),
        share: 0,
      }),
    },
  ];
}

/// Lines of a tooltip: both sides in shares and values, and what is between them.
export function changeLines(comparison, measure, own, other) {
  const { ownWeights, otherWeights, otherMeasure, otherIsBase, factor } = comparison;
  const sides = [
    `${formatPercent(other, otherWeights.sum)}  (${otherMeasure.long(other / factor)})`,
    `${formatPercent(own, ownWeights.sum)}  (${measure.long(own)})`,
  ];
  const [base, now] = otherIsBase ? sides : sides.reverse();
  const change = comparison.change(own, other);
  const relative = relativeText(change);
  const difference = differenceText(comparison, measure, change.difference);
  return [["Base", base], ["New", now], ["Change", relative === "" ? difference : `${difference},  ${relative}`]];
}

function sideText(comparison, measure, value) {
  return comparison.absolute ? measure.short(value) : formatPercent(value, 1);
}

// Shares differ by percentage points.
function differenceText(comparison, measure, difference) {
  const sign = difference > 0 ? "+" : difference < 0 ? "−" : "±";
  const size = Math.abs(difference);
  return sign + (comparison.absolute ? measure.short(size) : `${(size * 100).toFixed(2)} pp`);
}

function relativeText({ base, now, ratio }) {
  if (base === 0 && now === 0) return "";
  if (base === 0) return "new";
  if (now === 0) return "gone";
  if (ratio >= 10) return `× ${ratio.toFixed(0)}`;
  const percent = (ratio - 1) * 100;
  const sign = percent >= 0.05 ? "+" : percent <= -0.05 ? "−" : "±";
  return `${sign}${Math.abs(percent).toFixed(1)} %`;
}
