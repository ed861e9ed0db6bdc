// Trees to draw: from the root on (the prefix tree itself) and from the leaves on (callers).
//
// Both answer the same questions by node number: frame, parent, self, total, and children with weight, heaviest
// first. Children are found when they are first asked for, so only what is drawn costs anything.

/// Stacks from the root on. Nodes are those of the profile.
export class CallTree {
  constructor(profile, weights) {
    this.nodes = profile.nodes;
    this.weights = weights;
    this.sorted = new Map();
    this.root = 0;
  }

  frame(node) {
    return this.nodes.frame[node];
  }

  parent(node) {
    return this.nodes.parent[node];
  }

  total(node) {
    return this.weights.total[node];
  }

  self(node) {
    return this.weights.self[node];
  }

  /// A node's total in other weights of the same profile.
  weightIn(weights, node) {
    return weights.total[node];
  }

  children(node) {
    let children = this.sorted.get(node);
    if (children === undefined) {
      const { end } = this.nodes;
      const { total } = this.weights;
      children = [];
      for (let child = node + 1; child < end[node]; child = end[child]) {
        if (total[child] > 0) children.push(child);
      }
      children.sort((a, b) => total[b] - total[a] || a - b);
      this.sorted.set(node, children);
    }
    return children;
  }
}

/// Stacks from the leaf on: below the root stand the functions that were running, below each its callers.
///
/// A node stands for a set of leaves in the prefix tree, and has for each the place above it that was reached; its
/// callers are the parents of these places, put together by frame.
export class CallerTree {
  /// Leaves are those that have a weight in `weights` or in `also`.
  constructor(profile, weights, also = null) {
    this.nodes = profile.nodes;
    this.weights = weights;
    this.root = 0;
    const leaves = [];
    for (let i = 1; i < this.nodes.count; i++) if (weights.self[i] > 0 || also?.self[i] > 0) leaves.push(i);
    this.list = [{ frame: 0, parent: 0, total: weights.sum, self: 0, leaves, places: [], children: null }];
    this.list[0].children = this.group(0, leaves, leaves);
    for (const leaf of this.list[0].children) this.list[leaf].self = this.list[leaf].total;
  }

  frame(node) {
    return this.list[node].frame;
  }

  parent(node) {
    return this.list[node].parent;
  }

  total(node) {
    return this.list[node].total;
  }

  self(node) {
    return this.list[node].self;
  }

  weightIn(weights, node) {
    if (node === this.root) return weights.sum;
    return this.list[node].leaves.reduce((sum, leaf) => sum + weights.self[leaf], 0);
  }

  children(node) {
    const entry = this.list[node];
    if (entry.children === null) {
      const places = [];
      const leaves = [];
      entry.places.forEach((place, i) => {
        const caller = this.nodes.parent[place];
        if (caller === 0) return;
        places.push(caller);
        leaves.push(entry.leaves[i]);
      });
      entry.children = this.group(node, places, leaves);
    }
    return entry.children;
  }

  group(parent, places, leaves) {
    const { self } = this.weights;
    const byFrame = new Map();
    places.forEach((place, i) => {
      const frame = this.nodes.frame[place];
      let entry = byFrame.get(frame);
      if (entry === undefined) {
        entry = { frame, parent, total: 0, self: 0, leaves: [], places: [], children: null };
        byFrame.set(frame, entry);
      }
      entry.total += self[leaves[i]];
      entry.places.push(place);
      entry.leaves.push(leaves[i]);
    });
    const sorted = [...byFrame.values()].sort((a, b) => b.total - a.total || a.frame - b.frame);
    return sorted.map((entry) => this.list.push(entry) - 1);
  }
}

/// Frames from below the root down to `node`.
export function pathTo(tree, node) {
  const path = [];
  for (let at = node; at !== tree.root; at = tree.parent(at)) path.push(tree.frame(at));
  return path.reverse();
}

/// The node at the end of a path of frames, or the nearest above it that the tree still has.
export function follow(tree, path) {
  let node = tree.root;
  for (const frame of path) {
    const next = tree.children(node).find((child) => tree.frame(child) === frame);
    if (next === undefined) break;
    node = next;
  }
  return node;
}
