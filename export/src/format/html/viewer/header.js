// What stands around the graph and does not change with filters: facts of the recording, and what colours mean.

import { CATEGORY, FORM } from "./decode.js";
import { formatCount, formatTime } from "./format.js";
import { LEGEND } from "./palette.js";

/// The line above: host, command and facts.
export function showHeader({ system, samples }, { host, command, facts }) {
  document.title = `${system.command || system.host || "profile"} – Collector`;
  host.textContent = system.host || "profile";
  command.textContent = system.command;
  command.hidden = system.command === "";
  const texts = [
    [system.kernel, "system"],
    [system.architecture, "architecture"],
    [system.cpus > 0 ? `${system.cpus} ${system.cpus === 1 ? "CPU" : "CPUs"}` : "", "online CPUs"],
    [formatTime(system.duration), "duration"],
    [`${formatCount(samples.count)} ${samples.count === 1 ? "sample" : "samples"}`, "recorded"],
    // The first line is what was lost; the others say how stacks ended.
    [system.account[0] ?? "", system.account.slice(1).join("\n") || "lost samples"],
    [system.start > 0 ? new Date(system.start).toLocaleString() : "", "start"],
  ];
  facts.replaceChildren(...texts.filter(([text]) => text !== "").map(([text, title]) => entry(null, text, title)));
}

/// The colours of functions, of those kinds that there are.
export function showLegend({ functions, frames }, palette, list) {
  const used = new Set(functions.map(({ category }) => category));
  const entries = LEGEND.filter(([category]) => used.has(category)).map(([category, name]) =>
    entry(palette.category(category), name, ""),
  );
  if (frames.heuristic.includes(1)) {
    const title = "Frames that unwind information did not lead to";
    entries.push(entry(palette.category(CATEGORY.user), "found by heuristic", title, "hatched"));
  }
  list.replaceChildren(...entries);
}

/// The colours of changes.
export function showChanges(palette, list) {
  const steps = [[-1, "¼ or gone"], [-0.5, "½"], [0, "same"], [0.5, "× 2"], [1, "× 4 or new"]];
  list.replaceChildren(...steps.map(([tone, name]) => entry(palette.change(tone), name, "from base to new")));
}

/// What is seen on lanes, of those forms that there are.
export function showForms({ samples }, palette, list) {
  const { form } = samples;
  const used = typeof form === "number" ? new Set([form]) : new Set(form);
  const texts = [
    [FORM.running, palette.category(CATEGORY.user), "running", "as high as its share of the time", "tall"],
    [FORM.waiting, palette.lane.waiting, "waits for a CPU", "could run, and did not", "middle"],
    [FORM.blocked, palette.lane.blocked, "blocked", "off its CPU until it was woken; lines are switches", "low"],
    [FORM.estimate, palette.lane.estimate, "estimate", "stands for several times, which were too short to be recorded each", "ring"],
    [FORM.time, palette.lane.time, "other time", "as of locks, system calls, requests", "thin"],
    [FORM.moment, palette.lane.moment, "occurrence", "or bytes", "tick"],
  ];
  const shown = texts.filter(([wanted]) => used.has(wanted));
  list.replaceChildren(...shown.map(([, colour, name, title, shape]) => entry(colour, name, title, shape)));
}

function entry(colour, text, title, shape = "") {
  const line = document.createElement("li");
  if (colour !== null) {
    const dot = document.createElement("i");
    dot.className = shape;
    dot.style.color = colour;
    line.append(dot);
  }
  line.append(text);
  line.title = title;
  return line;
}
