// The whole viewer: what is looked at (filter, view, search) in one place, passed on to the parts of the page.

import { CATEGORY } from "./decode.js";
import { Measure, formatCount, formatPercent, formatTime } from "./format.js";
import { Palette, LEGEND } from "./palette.js";
import { Filter, weigh } from "./weigh.js";
import { CallTree, CallerTree } from "./tree.js";
import { compile, matching, matchedWeight, exactly } from "./search.js";
import { Tooltip } from "./tooltip.js";
import { FlameView } from "./flame.js";
import { Strip } from "./strip.js";
import { FunctionTable } from "./table.js";
import { Picker } from "./picker.js";
import { Crumbs } from "./crumbs.js";

const KIND_NAMES = ["", "process", "user", "kernel", "JIT", "no symbol", "cut stack"];

function byId(id) {
  return document.getElementById(id);
}

export class Viewer {
  constructor(profile) {
    this.profile = profile;
    this.filter = new Filter();
    this.filter.kind = profile.samples.kind?.[0] ?? 0;
    this.callers = false;
    this.search = { text: "", regex: false, matches: null, weight: 0 };
    this.palette = new Palette(profile.functions);
    this.measure = new Measure(profile.kinds[this.filter.kind] ?? { name: "samples", unit: 0, period: 1 });
    this.tooltip = new Tooltip(byId("tooltip"));
    this.build();
    this.header();
    this.kinds();
    this.legend();
    this.listen();
    this.palette.watch(() => this.repaint());
    this.weigh();
    this.retree(true);
    this.strip.setFilter(this.filter, this.measure);
  }

  build() {
    const { profile, palette } = this;
    this.flame = new FlameView(
      { scroller: byId("flame"), canvas: byId("flame-canvas"), spacer: byId("flame-spacer") },
      profile,
      palette,
      {
        hover: (node, event) => this.hoverNode(node, event),
        zoom: (path) => this.zoomed(path),
        cursor: (node) => this.describe(node),
      },
    );
    this.strip = new Strip(byId("strip"), profile, palette, {
      select: (range) => this.setRange(range),
      hover: (lines, title, event) => {
        if (lines === null) this.tooltip.hide();
        else this.tooltip.show(event.clientX, event.clientY, title, lines, "drag to select a range");
      },
    });
    this.table = new FunctionTable(
      {
        scroller: byId("functions-scroller"),
        body: byId("functions-body"),
        above: byId("functions-above"),
        below: byId("functions-below"),
        headers: [...document.querySelectorAll("#functions th[data-by]")],
        count: byId("functions-count"),
      },
      profile,
      palette,
      { pick: (fn) => this.pick(fn), hover: (fn, event) => this.hoverFunction(fn, event) },
    );
    this.processes = new Picker(byId("process-filter"), {
      all: "All processes",
      many: "processes",
      change: (ids) => this.setProcesses(ids),
    });
    this.threads = new Picker(byId("thread-filter"), {
      all: "All threads",
      many: "threads",
      change: (ids) => this.setThreads(ids),
    });
    this.crumbs = new Crumbs(byId("crumbs"), (node) => this.functionOf(node).name, (node) => this.flame.zoom(node));
  }

  header() {
    const { system, samples } = this.profile;
    document.title = `${system.command || system.host || "profile"} – Collector`;
    byId("host").textContent = system.host || "profile";
    byId("command").textContent = system.command;
    byId("command").hidden = system.command === "";
    const facts = [
      [system.kernel, "system"],
      [system.architecture, "architecture"],
      [system.cpus > 0 ? `${system.cpus} ${system.cpus === 1 ? "CPU" : "CPUs"}` : "", "online CPUs"],
      [formatTime(system.duration), "duration"],
      [`${formatCount(samples.count)} ${samples.count === 1 ? "sample" : "samples"}`, "recorded"],
      // The first line is what was lost; the others say how stacks ended.
      [system.account[0] ?? "", system.account.slice(1).join("\n") || "lost samples"],
      [system.start > 0 ? new Date(system.start).toLocaleString() : "", "start"],
    ];
    byId("facts").replaceChildren(
      ...facts
        .filter(([text]) => text !== "")
        .map(([text, title]) => {
          const fact = document.createElement("li");
          fact.textContent = text;
          fact.title = title;
          return fact;
        }),
    );
  }

  kinds() {
    const select = byId("kind");
    select.hidden = this.profile.kinds.length < 2;
    for (const { id, name } of this.profile.kinds) select.add(new Option(name, id));
    select.value = String(this.filter.kind);
    select.addEventListener("change", () => {
      this.filter.kind = Number(select.value);
      this.measure = new Measure(this.profile.kinds[this.filter.kind]);
      this.strip.setFilter(this.filter, this.measure);
      this.refilter();
    });
  }

  legend() {
    const used = new Set(this.profile.functions.map(({ category }) => category));
    const entries = LEGEND.filter(([category]) => used.has(category)).map(([category, name]) => {
      const entry = document.createElement("li");
      const dot = document.createElement("i");
      dot.style.background = this.palette.category(category);
      entry.append(dot, name);
      return entry;
    });
    if (this.profile.frames.heuristic.includes(1)) {
      const entry = document.createElement("li");
      const dot = document.createElement("i");
      dot.className = "hatched";
      dot.style.backgroundColor = this.palette.category(CATEGORY.user);
      entry.append(dot, "found by heuristic");
      entry.title = "Frames that unwind information did not lead to";
      entries.push(entry);
    }
    byId("legend").replaceChildren(...entries);
  }

  listen() {
    for (const button of document.querySelectorAll("#views button")) {
      button.addEventListener("click", () => this.setCallers(button.dataset.view === "callers"));
    }
    byId("search").addEventListener("input", (event) => this.setSearch(event.target.value, this.search.regex));
    byId("regex").addEventListener("click", () => this.setSearch(this.search.text, !this.search.regex));
    byId("by-cpu").addEventListener("click", (event) => {
      const pressed = event.currentTarget.getAttribute("aria-pressed") !== "true";
      event.currentTarget.setAttribute("aria-pressed", String(pressed));
      this.strip.setByCpu(pressed);
    });
    byId("all-time").addEventListener("click", () => this.strip.choose(null));
    byId("toggle-functions").addEventListener("click", () => this.toggleFunctions());
    addEventListener("keydown", (event) => this.key(event));
  }

  // --- What is looked at ---

  setRange(range) {
    this.filter.range = range;
    this.refilter();
  }

  setProcesses(ids) {
    this.filter.processes = ids;
    const threads = [...this.filter.threads].filter(
      (id) => ids.size === 0 || ids.has(this.profile.threads[id].process),
    );
    this.filter.threads = new Set(threads);
    this.threads.setChosen(this.filter.threads);
    this.strip.setFilter(this.filter, this.measure);
    this.refilter();
  }

  setThreads(ids) {
    this.filter.threads = ids;
    this.strip.setFilter(this.filter, this.measure);
    this.refilter();
  }

  setCallers(callers) {
    if (callers === this.callers) return;
    this.callers = callers;
    for (const button of document.querySelectorAll("#views button")) {
      button.setAttribute("aria-pressed", String((button.dataset.view === "callers") === callers));
    }
    this.retree(true);
  }

  setSearch(text, regex) {
    this.highlight(text, regex);
    this.table.picked = null;
    this.table.setMatches(this.search.matches);
  }

  // The search in the graph; the table keeps its rows.
  highlight(text, regex) {
    const field = byId("search");
    if (field.value !== text) field.value = text;
    byId("regex").setAttribute("aria-pressed", String(regex));
    Object.assign(this.search, { text, regex });
    let test = null;
    let problem = "";
    try {
      test = compile(text, regex);
    } catch {
      problem = "not a regular expression";
    }
    field.setAttribute("aria-invalid", String(problem !== ""));
    this.search.problem = problem;
    this.search.matches = test === null ? null : matching(this.profile.functions, test);
    this.flame.setMatches(this.search.matches);
    this.matched();
  }

  // A function of the table as the search; a second time ends it.
  pick(fn) {
    if (this.table.picked === fn.id) {
      this.setSearch("", false);
      return;
    }
    this.highlight(exactly(fn.name), true);
    this.table.picked = fn.id;
    this.table.draw();
  }

  refilter() {
    this.weigh();
    this.retree(false);
  }

  // --- What follows from it ---

  weigh() {
    const { profile, filter } = this;
    const began = performance.now();
    this.weights = weigh(profile, filter);
    this.weighMs = performance.now() - began;
    const { threads } = this.weights;
    const byProcess = new Float64Array(profile.processes.length);
    profile.threads.forEach(({ id, process }) => (byProcess[process] += threads[id]));
    const sum = threads.reduce((sum, weight) => sum + weight, 0);
    this.processes.setItems(
      profile.processes.map(({ id, pid, name, facts }) => item(id, name, pid, byProcess[id], facts)),
      sum,
    );
    const chosen = filter.processes;
    this.threads.setItems(
      profile.threads
        .filter(({ process }) => chosen.size === 0 || chosen.has(process))
        .map(({ id, tid, name }) => item(id, name, tid, threads[id])),
      sum,
    );
    this.table.setWeights(this.weights, this.measure);
    const { range } = filter;
    const all = this.weights.count === profile.samples.count;
    byId("shown").textContent =
      `${formatCount(this.weights.count)}${all ? "" : ` of ${formatCount(profile.samples.count)}`} samples` +
      (range ? ` · ${formatTime(range[0])} – ${formatTime(range[1])}` : "");
    byId("all-time").hidden = range === null;
    byId("empty").hidden = this.weights.sum > 0;
    this.matched();
  }

  retree(reset) {
    const Tree = this.callers ? CallerTree : CallTree;
    this.flame.setTree(new Tree(this.profile, this.weights), reset);
  }

  matched() {
    const { matches, problem } = this.search;
    const { weights } = this;
    this.search.weight = matches === null ? 0 : matchedWeight(this.profile, weights, matches);
    const label = byId("matched");
    label.hidden = matches === null && !problem;
    label.classList.toggle("problem", Boolean(problem));
    label.textContent = problem || `${formatPercent(this.search.weight, weights.sum)} matched`;
    label.title = problem ? "" : this.measure.long(this.search.weight);
  }

  zoomed(path) {
    this.tooltip.hide();
    this.crumbs.show(path);
    byId("reset-zoom").hidden = path.length < 2;
    byId("reset-zoom").onclick = () => this.flame.zoom(this.flame.tree.root);
  }

  repaint() {
    this.legend();
    this.flame.draw();
    this.strip.draw();
    this.table.draw();
  }

  // --- Details ---

  functionOf(node) {
    const { frames, functions } = this.profile;
    return functions[frames.function[this.flame.tree.frame(node)]];
  }

  share(weight) {
    return `${formatPercent(weight, this.weights.sum)}  (${this.measure.long(weight)})`;
  }

  hoverNode(node, event) {
    if (node === null) {
      this.tooltip.hide();
      return;
    }
    const { tree } = this.flame;
    const fn = this.functionOf(node);
    const total = tree.total(node);
    const lines = [[this.callers ? "On this path" : "Total", this.share(total)]];
    if (!this.callers) lines.push(["Self", this.share(tree.self(node))]);
    const zoomed = tree.total(this.flame.zoomed);
    if (zoomed !== tree.total(tree.root)) lines.push(["Of zoomed", formatPercent(total, zoomed)]);
    if (node !== tree.root) {
      lines.push(["Everywhere", `self ${formatPercent(this.weights.functionSelf[fn.id], this.weights.sum)}, ` +
        `total ${formatPercent(this.weights.functionTotal[fn.id], this.weights.sum)}`]);
    }
    const { heuristic, inlined } = this.profile.frames;
    const notes = [];
    if (inlined[tree.frame(node)] === 1) notes.push("inlined into its caller");
    if (heuristic[tree.frame(node)] === 1) notes.push("found by a heuristic, not by unwind information");
    this.tooltip.show(event.clientX, event.clientY, fn.name, [...origin(fn), ...lines], notes.join("; "));
  }

  hoverFunction(fn, event) {
    if (fn === null) {
      this.tooltip.hide();
      return;
    }
    const { functionSelf, functionTotal } = this.weights;
    const lines = [["Self", this.share(functionSelf[fn.id])], ["Total", this.share(functionTotal[fn.id])]];
    this.tooltip.show(event.clientX, event.clientY, fn.name, [...origin(fn), ...lines], "click to highlight");
  }

  // The keyboard cursor's frame in words.
  describe(node) {
    if (node === null) {
      byId("status").textContent = "";
      return;
    }
    const fn = this.functionOf(node);
    const module = fn.module === "" ? "" : ` · ${fn.module}`;
    byId("status").textContent = `${fn.name}${module} · ${this.share(this.flame.tree.total(node))}`;
  }

  // --- Keys ---

  toggleFunctions() {
    const shown = document.body.classList.toggle("without-functions") === false;
    byId("toggle-functions").setAttribute("aria-pressed", String(shown));
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = event.target.matches?.("input, select");
    if (event.key === "Escape") {
      if (document.querySelector("[popover]:popover-open")) return;
      if (typing) event.target.blur();
      if (typing && this.search.text !== "") this.setSearch("", false);
      else if (!typing) this.escape();
      return;
    }
    if (typing) return;
    const { flame } = this;
    const actions = {
      "/": () => byId("search").focus(),
      Backspace: () => flame.zoom(flame.tree.parent(flame.zoomed)),
      c: () => this.setCallers(!this.callers),
      t: () => this.toggleFunctions(),
    };
    if (actions[event.key] === undefined) return;
    event.preventDefault();
    actions[event.key]();
  }

  // Takes back one thing at a time: the zoom, the search, the range.
  escape() {
    const { flame } = this;
    if (flame.zoomed !== flame.tree.root) flame.zoom(flame.tree.root);
    else if (this.search.text !== "") this.setSearch("", false);
    else if (this.filter.range !== null) this.strip.choose(null);
  }
}

function item(id, name, number, weight, facts = "") {
  return { id, name: name || "[unnamed]", detail: String(number), weight, facts };
}

// Where a function is from, for the tooltip.
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
