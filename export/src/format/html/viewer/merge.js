// Two profiles as one prefix tree: what is called alike stands in one place, so that weights of both can be
// laid side by side.
//
// Functions are matched by name and by the last part of their module's path: what is compared often lies in
// another folder. Marks of frames (inlined, found by a heuristic) do not tell paths apart.

import { CATEGORY, linked } from "./decode.js";
import { baseName } from "./format.js";

function keyOf({ name, module, category }) {
  const code = category !== CATEGORY.all && category !== CATEGORY.process;
  return `${code ? "" : category}\u0000${baseName(module)}\u0000${name}`;
}

/// What both profiles have as a profile without samples; functions of `own` keep their ids. `places` are by node
/// of each of the two its node there.
export function merge(own, other) {
  const functions = [];
  const known = new Map();
  const ids = [own, other].map((profile) =>
    Uint32Array.from(profile.functions, (fn) => {
      const key = keyOf(fn);
      const id = known.get(key) ?? functions.length;
      if (profile === own || !known.has(key)) functions.push({ ...fn, id: functions.length });
      if (!known.has(key)) known.set(key, id);
      return id;
    }),
  );
  const tree = new Tree(own.nodes.count + other.nodes.count, functions.length);
  const places = [own, other].map(({ nodes }, side) => tree.graft(nodes, ids[side]));
  const { rank, nodes } = tree.inDepth();
  for (const place of places) for (let i = 0; i < place.length; i++) place[i] = rank[place[i]];
  return { profile: { functions, frames: nodes.frames, nodes }, places };
}

// Nodes in the order they are met, node 0 above all; a parent is always before its children.
class Tree {
  constructor(most, functions) {
    this.parent = new Uint32Array(most + 1);
    this.function = new Uint32Array(most + 1);
    this.count = 1;
    this.functions = functions;
    this.index = new Map();
  }

  graft(nodes, ids) {
    const place = new Uint32Array(nodes.count);
    for (let i = 1; i < nodes.count; i++) {
      const parent = place[nodes.parent[i]];
      const id = ids[nodes.function[i]];
      const key = parent * this.functions + id;
      let node = this.index.get(key);
      if (node === undefined) {
        node = this.count++;
        this.parent[node] = parent;
        this.function[node] = id;
        this.index.set(key, node);
      }
      place[i] = node;
    }
    return place;
  }

  /// The nodes depth first, as a profile has them, and by node its number there.
  inDepth() {
    const { count, parent } = this;
    const size = new Uint32Array(count).fill(1);
    for (let i = count - 1; i > 0; i--) size[parent[i]] += size[i];
    const rank = new Uint32Array(count);
    const next = new Uint32Array(count);
    const depth = new Uint32Array(count);
    const frame = new Uint32Array(count);
    next[0] = 1;
    for (let i = 1; i < count; i++) {
      const above = parent[i];
      rank[i] = next[above];
      next[above] += size[i];
      next[i] = rank[i] + 1;
      depth[rank[i]] = depth[rank[above]] + 1;
      frame[rank[i]] = this.function[i];
    }
    const frames = {
      function: Uint32Array.from({ length: this.functions }, (_, id) => id),
      heuristic: new Uint8Array(this.functions),
      inlined: new Uint8Array(this.functions),
    };
    return { rank, nodes: { ...linked(depth, frame, frames, this.functions), frames } };
  }
}
