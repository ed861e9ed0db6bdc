// What tooltips and the status line say of a node, a function, a row of the timeline or a sample: {title, lines,
// note} with lines of label and value.

import { FORM } from "./decode.js";
import { Measure, formatPercent, formatTime } from "./format.js";
import { changeLines } from "./changes.js";
import { nameOf } from "./timeline.js";

const KIND_NAMES = ["", "process", "user", "kernel", "JIT", "no symbol", "cut stack"];

const FORM_NAMES = {
  [FORM.running]: "running",
  [FORM.blocked]: "blocked",
  [FORM.waiting]: "waiting for a CPU",
};

const INNERMOST = 8;

/// A node of the flame graph.
export function nodeDetails(viewer, node) {
  const { flame, stage, comparison, measure, callers } = viewer;
  const { tree } = flame;
  const { profile, weights } = stage;
  const frame = tree.frame(node);
  const fn = profile.functions[profile.frames.function[frame]];
  const total = tree.total(node);
  const share = (weight) => shareText(weight, weights, measure);
  const zoomed = tree.total(flame.zoomed);
  const lines = [];
  if (comparison !== null) {
    const [own, other] = [comparison.ownWeights, comparison.otherWeights];
    lines.push(...changeLines(comparison, measure, tree.weightIn(own, node), tree.weightIn(other, node)));
  } else {
    lines.push([callers ? "On this path" : "Total", share(total)]);
    if (!callers) lines.push(["Self", share(tree.self(node))]);
  }
  if (zoomed !== tree.total(tree.root)) lines.push(["Of zoomed", formatPercent(total, zoomed)]);
  if (node !== tree.root && comparison === null) {
    lines.push(["Everywhere", `self ${formatPercent(weights.functionSelf[fn.id], weights.sum)}, ` +
      `total ${formatPercent(weights.functionTotal[fn.id], weights.sum)}`]);
  }
  const notes = [];
  if (profile.frames.inlined[frame] === 1) notes.push("inlined into its caller");
  if (profile.frames.heuristic[frame] === 1) notes.push("found by a heuristic, not by unwind information");
  return { title: fn.name, lines: [...origin(fn), ...lines], note: notes.join("; ") };
}

/// A row of the table.
export function functionDetails({ stage, comparison, measure }, fn) {
  const { functionSelf, functionTotal } = stage.weights;
  let lines = [["Self", functionSelf], ["Total", functionTotal]].map(([label, values]) => [
    label,
    shareText(values[fn.id], stage.weights, measure),
  ]);
  if (comparison !== null) {
    const { ownWeights: own, otherWeights: other } = comparison;
    lines = ["functionSelf", "functionTotal"].flatMap((column) =>
      changeLines(comparison, measure, own[column][fn.id], other[column][fn.id]).map(([label, text]) => [
        `${column === "functionSelf" ? "Self" : "Total"}, ${label.toLowerCase()}`,
        text,
      ]),
    );
  }
  return { title: fn.name, lines: [...origin(fn), ...lines], note: "click to highlight" };
}

/// The keyboard's node in a line.
export function nodeStatus({ flame, stage, measure }, node) {
  const { profile, weights } = stage;
  const fn = profile.functions[profile.frames.function[flame.tree.frame(node)]];
  const module = fn.module === "" ? "" : ` · ${fn.module}`;
  return `${fn.name}${module} · ${shareText(flame.tree.total(node), weights, measure)}`;
}

/// A row of the timeline, and a sample on it or null.
export function laneDetails({ profile, timeline, weights, measure }, row, sample) {
  const { process, thread } = row;
  const number = thread === null ? `pid ${process.pid}` : `tid ${thread.tid}`;
  const lines = [];
  if (thread !== null) lines.push(["Process", `${process.name || "[unnamed]"}, pid ${process.pid}`]);
  else if (process.facts !== "") lines.push(["Process", process.facts.split("\n").map(shortened).join("\n")]);
  if (sample === null) {
    lines.push(["In all", measure.long(row.weight)]);
    return { title: `${nameOf(row)}, ${number}`, lines, note: `click for this ${thread === null ? "process" : "thread"} alone` };
  }
  return { title: `${nameOf(row)}, ${number}`, lines: [...lines, ...sampleLines(profile, timeline.lanes, sample)], note: "" };
}

function sampleLines({ nodes, functions, samples }, lanes, sample) {
  const kind = lanes.kind(sample);
  const form = lanes.form(sample);
  const time = samples.time[sample];
  const value = samples.value === null ? 1 : samples.value[sample];
  const lines = [["Time", exactTime(time)]];
  const what = FORM_NAMES[form];
  lines.push([kind.name, what === undefined ? new Measure(kind).long(value) : `${what}, ${new Measure(kind).long(value)}`]);
  if (form === FORM.estimate) lines.push(["Estimate", "stands for several, each shorter: no duration"]);
  else if (form !== FORM.moment && !lanes.isTick(sample)) lines.push(["Until", exactTime(lanes.end(sample))]);
  lines.push(["CPU", String(samples.cpu[sample])]);
  const names = [];
  for (let node = samples.node[sample]; nodes.parent[node] !== 0 && node !== 0; node = nodes.parent[node]) {
    names.push(functions[nodes.function[node]].name);
  }
  const more = names.length > INNERMOST ? [`… ${names.length - INNERMOST} more`] : [];
  if (names.length > 0) lines.push(["Stack", [...names.slice(0, INNERMOST), ...more].join("\n")]);
  return lines;
}

// Command lines may be long.
function shortened(text) {
  return text.length > 160 ? `${text.slice(0, 160)}…` : text;
}

// To the microsecond, as it is recorded.
function exactTime(us) {
  return us >= 1e6 ? `${(us / 1e6).toFixed(6)} s` : us >= 1e3 ? `${(us / 1e3).toFixed(3)} ms` : formatTime(us);
}

function shareText(weight, weights, measure) {
  return `${formatPercent(weight, weights.sum)}  (${measure.long(weight)})`;
}

// Where a function is from.
function origin({ module, category, source, firstLine, lastLine }) {
  const lines = [];
  if (module !== "") lines.push(["Module", module]);
  if (firstLine > 0) {
    const last = lastLine > firstLine ? `–${lastLine}` : "";
    lines.push(["Source", `${source}:${firstLine}${last}`]);
  }
  if (KIND_NAMES[category]) lines.push(["Kind", KIND_NAMES[category]]);
  return lines;
}
