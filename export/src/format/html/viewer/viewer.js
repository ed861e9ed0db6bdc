// The whole viewer: what is looked at (filter, view, search) in one place, passed on to the parts of the page.

import { Measure, formatCount, formatPercent, formatTime } from "./format.js";
import { Palette } from "./palette.js";
import { Filter, selfWeights, weigh } from "./weigh.js";
import { CallTree, CallerTree } from "./tree.js";
import { compile, matching, matchedWeight, exactly } from "./search.js";
import { Tooltip } from "./tooltip.js";
import { FlameView } from "./flame.js";
import { Strip } from "./strip.js";
import { Timeline } from "./timeline.js";
import { FunctionTable, weightColumns } from "./table.js";
import { Picker } from "./picker.js";
import { Crumbs } from "./crumbs.js";
import { showChanges, showForms, showHeader, showLegend } from "./header.js";
import { changeColumns } from "./changes.js";
import { functionDetails, laneDetails, nodeDetails, nodeStatus } from "./details.js";
import { Comparing } from "./comparing.js";

function byId(id) {
  return document.getElementById(id);
}

export class Viewer {
  constructor(profile) {
    this.profile = profile;
    this.filter = new Filter();
    this.callers = false;
    this.comparison = null;
    this.search = { text: "", regex: false, matches: null, weight: 0 };
    this.palette = new Palette(profile.functions);
    this.measure = new Measure(profile.kinds[this.filter.kind]);
    this.tooltip = new Tooltip(byId("tooltip"));
    this.build();
    showHeader(profile, { host: byId("host"), command: byId("command"), facts: byId("facts") });
    this.kinds();
    this.legend();
    this.listen();
    this.palette.watch(() => this.repaint());
    this.weigh();
    this.retree(true);
    this.strip.setFilter(this.filter, this.measure);
    this.timeline.setFilter(this.filter);
  }

  /// The profile whose functions and stacks are shown, and the weights of what is drawn: this page's, or in a
  /// comparison what both have in common.
  get stage() {
    const { comparison, profile, weights } = this;
    return comparison === null ? { profile, weights } : { profile: comparison.profile, weights: comparison.wide };
  }

  build() {
    const { profile, palette } = this;
    this.flame = new FlameView(
      { scroller: byId("flame"), canvas: byId("flame-canvas"), spacer: byId("flame-spacer") },
      profile,
      palette,
      {
        hover: (node, event) => this.hover(event, node === null ? null : nodeDetails(this, node)),
        zoom: (path) => this.zoomed(path),
        cursor: (node) => this.say(node === null ? "" : nodeStatus(this, node)),
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
        headers: byId("functions-head"),
        count: byId("functions-count"),
      },
      {
        pick: (fn) => this.pick(fn),
        hover: (fn, event) => this.hover(event, fn === null ? null : functionDetails(this, fn)),
      },
    );
    this.timeline = new Timeline(
      { scroller: byId("lanes"), canvas: byId("lanes-canvas"), spacer: byId("lanes-spacer") },
      profile,
      palette,
      {
        weights: () => selfWeights(profile, Object.assign(new Filter(), { kind: this.filter.kind })).threads,
        range: (range) => this.strip.choose(range),
        choose: (row) => this.chooseRow(row),
        hover: (row, sample, event) => this.hover(event, row === null ? null : laneDetails(this, row, sample)),
        cursor: (row, sample) => this.say(row === null ? "" : inALine(laneDetails(this, row, sample))),
      },
    );
    this.comparing = new Comparing(
      { bar: byId("comparison"), button: byId("compare"), input: byId("compare-file"), problem: byId("problem") },
      profile,
      { changed: (comparison) => this.setComparison(comparison), turned: () => this.turned() },
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

  kinds() {
    const select = byId("kind");
    select.hidden = this.profile.kinds.length < 2;
    for (const { id, name } of this.profile.kinds) select.add(new Option(name, id));
    select.value = String(this.filter.kind);
    // A long name is cut.
    const tell = () => {
      select.title = this.profile.kinds[this.filter.kind]?.name ?? "";
    };
    tell();
    select.addEventListener("change", () => {
      this.filter.kind = Number(select.value);
      tell();
      this.measure = new Measure(this.profile.kinds[this.filter.kind]);
      this.strip.setFilter(this.filter, this.measure);
      this.timeline.order();
      this.refilter();
    });
  }

  legend() {
    if (this.comparison === null) showLegend(this.profile, this.palette, byId("legend"));
    else showChanges(this.palette, byId("legend"));
    showForms(this.profile, this.palette, byId("forms"));
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
    byId("toggle-timeline").addEventListener("click", () => this.toggleTimeline());
    byId("lanes-out").addEventListener("click", () => this.timeline.zoom(2));
    byId("lanes-in").addEventListener("click", () => this.timeline.zoom(0.5));
    byId("lanes-all").addEventListener("click", () => this.timeline.show(0, Infinity));
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

  // A thread or process of the timeline alone, or without it.
  chooseRow({ process, thread }) {
    const [picker, { id }] = thread === null ? [this.processes, process] : [this.threads, thread];
    picker.toggle(id);
  }

  setComparison(comparison) {
    this.setSearch("", false);
    this.comparison = comparison;
    comparison?.weigh(this.filter, this.weights);
    const fill = comparison && ((node) => this.palette.change(comparison.ofNode(this.flame.tree, node).tone));
    this.flame.setProfile(this.stage.profile, fill);
    this.legend();
    this.turned();
  }

  // What is weighed is the same; how it is shown is not.
  turned() {
    if (this.comparison !== null) this.comparing.show();
    this.fillTable();
    this.retree(true);
    this.matched();
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
    this.search.matches = test === null ? null : matching(this.stage.profile.functions, test);
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
    if (this.comparison !== null) {
      this.comparison.weigh(filter, this.weights);
      this.comparing.show();
    }
    this.fillTable();
    this.timeline.redraw();
    const { range } = filter;
    const all = this.weights.count === profile.samples.count;
    byId("shown").textContent =
      `${formatCount(this.weights.count)}${all ? "" : ` of ${formatCount(profile.samples.count)}`} samples` +
      (range ? ` · ${formatTime(range[0])} – ${formatTime(range[1])}` : "");
    byId("all-time").hidden = range === null;
    byId("empty").hidden = this.stage.weights.sum > 0;
    this.matched();
  }

  retree(reset) {
    const Tree = this.callers ? CallerTree : CallTree;
    this.flame.setTree(new Tree(this.stage.profile, this.stage.weights, this.comparison?.narrow), reset);
  }

  fillTable() {
    const { comparison, measure, palette, stage } = this;
    const { functions } = stage.profile;
    if (comparison === null) {
      this.table.show({
        functions,
        hasWeight: (id) => stage.weights.functionTotal[id] > 0,
        columns: weightColumns(stage.weights, measure),
        fill: (id) => palette.fill(id),
        first: "self",
      });
    } else {
      const { ownWeights, otherWeights, counted } = comparison;
      const column = counted === "self" ? "functionSelf" : "functionTotal";
      this.table.show({
        functions,
        hasWeight: (id) => ownWeights[column][id] > 0 || otherWeights[column][id] > 0,
        columns: changeColumns(comparison, measure),
        fill: (id) => palette.change(comparison.ofFunction(id).tone),
        first: "change",
      });
    }
  }

  matched() {
    const { matches, problem } = this.search;
    const { profile, weights } = this.stage;
    this.search.weight = matches === null ? 0 : matchedWeight(profile, weights, matches);
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
    this.timeline.redraw();
    this.table.draw();
  }

  // --- Details ---

  functionOf(node) {
    const { frames, functions } = this.stage.profile;
    return functions[frames.function[this.flame.tree.frame(node)]];
  }

  hover(event, details) {
    if (details === null) this.tooltip.hide();
    else this.tooltip.show(event.clientX, event.clientY, details.title, details.lines, details.note);
  }

  // What the keyboard is at, in words.
  say(text) {
    byId("status").textContent = text;
  }

  // --- Keys ---

  toggleFunctions() {
    const shown = document.body.classList.toggle("without-functions") === false;
    byId("toggle-functions").setAttribute("aria-pressed", String(shown));
  }

  toggleTimeline() {
    const timeline = byId("timeline");
    timeline.hidden = !timeline.hidden;
    byId("toggle-timeline").setAttribute("aria-pressed", String(!timeline.hidden));
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
      h: () => this.toggleTimeline(),
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

function inALine({ title, lines }) {
  return [title, ...lines.map(([label, text]) => `${label} ${text.replaceAll("\n", " ← ")}`)].join(" · ");
}
