// A comparison with another page's profile: weights of both on one tree, and what has changed between them.
//
// This page's filter is applied to the other one by names, as ids differ: the same kind, processes and threads
// called alike. A range of time is this page's alone.

import { UNIT } from "./decode.js";
import { Filter, selfWeights, sumUp } from "./weigh.js";
import { Measure } from "./format.js";
import { merge } from "./merge.js";

/// From this ratio on a change has its full colour.
const STRONGEST = 4;

export class Comparison {
  constructor(own, other, name) {
    Object.assign(this, { own, other, name });
    const merged = merge(own, other);
    this.profile = merged.profile;
    this.places = merged.places;
    /// Which is the base, whether absolute values are compared, whose weights are widths, and what the table has.
    this.otherIsBase = true;
    this.absolute = false;
    this.otherIsWide = false;
    this.counted = "self";
  }

  /// Weighs both. `weights` are this page's; `missing` is then the kind of sample that the other one lacks, or null.
  weigh(filter, weights) {
    const kind = this.own.kinds[filter.kind];
    const theirs = this.other.kinds.find(({ name, unit }) => name === kind.name && unit === kind.unit);
    this.missing = theirs === undefined ? kind.name : null;
    this.ownWeights = this.moved(this.places[0], weights.self, 1);
    // Ticks of clocks of another period are counted as ticks of this page's.
    const both = theirs !== undefined && [kind, theirs].every((each) => new Measure(each).timed);
    const factor = both && kind.unit === UNIT.count ? theirs.period / kind.period : 1;
    this.otherMeasure = new Measure({ ...kind, period: kind.period * factor });
    this.factor = factor;
    const found = theirs === undefined ? null : selfWeights(this.other, this.alike(filter, theirs.id));
    this.ownCount = weights.count;
    this.otherCount = found?.count ?? 0;
    this.otherWeights = this.moved(this.places[1], found?.self ?? new Float64Array(0), factor);
  }

  moved(places, self, factor) {
    const moved = new Float64Array(this.profile.nodes.count);
    for (let i = 0; i < self.length; i++) moved[places[i]] += self[i] * factor;
    return sumUp(this.profile, moved);
  }

  // The same filter for the other page. What it has no such thing for is nothing, not everything.
  alike(filter, kind) {
    const { own, other } = this;
    const chosen = (ids, list, theirs, nameOf) => {
      const names = new Set([...ids].map((id) => nameOf(list[id], own)));
      const found = theirs.filter((each) => names.has(nameOf(each, other))).map(({ id }) => id);
      return new Set(ids.size > 0 && found.length === 0 ? [-1] : found);
    };
    const threadName = ({ name, process }, profile) => `${profile.processes[process].name}\u0000${name}`;
    const alike = new Filter();
    alike.kind = kind;
    alike.processes = chosen(filter.processes, own.processes, other.processes, ({ name }) => name);
    alike.threads = chosen(filter.threads, own.threads, other.threads, threadName);
    return alike;
  }

  /// The weights that widths are of, and the others.
  get wide() {
    return this.otherIsWide ? this.otherWeights : this.ownWeights;
  }

  get narrow() {
    return this.otherIsWide ? this.ownWeights : this.otherWeights;
  }

  /// What became of a weight of `own` here and `other` there: both sides as they are compared, as shares of their
  /// totals or in absolute values, the difference, and -1 (shrank most) to 1 (grew most).
  change(own, other) {
    const share = (weight, { sum }) => (this.absolute ? weight : sum > 0 ? weight / sum : 0);
    const sides = [share(other, this.otherWeights), share(own, this.ownWeights)];
    const [base, now] = this.otherIsBase ? sides : sides.reverse();
    const ratio = base === now ? 1 : now / base;
    const tone = Math.log(Math.max(0, ratio)) / Math.log(STRONGEST);
    return { base, now, difference: now - base, ratio, tone: Math.max(-1, Math.min(1, Number.isNaN(tone) ? 0 : tone)) };
  }

  ofNode(tree, node) {
    return this.change(tree.weightIn(this.ownWeights, node), tree.weightIn(this.otherWeights, node));
  }

  ofFunction(id, counted = this.counted) {
    const column = counted === "self" ? "functionSelf" : "functionTotal";
    return this.change(this.ownWeights[column][id], this.otherWeights[column][id]);
  }
}
