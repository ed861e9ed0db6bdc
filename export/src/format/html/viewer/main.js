// Start: decodes the profile, opens the viewer, and shows in words what went wrong where it does not.
//
// `window.collector` is the page's state to read, for tests and for the curious: plain copies, nothing to set.

import { decodeProfile } from "./decode.js";
import { Viewer } from "./viewer.js";

// What is looked at now is behind getters, which `live` below lists.
function stateOf(viewer, timings) {
  const { profile } = viewer;
  const state = {
    ready: true,
    error: null,
    timings,
    system: { ...profile.system },
    nodes: profile.nodes.count,
    /// Frames on the canvas with window coordinates, row by row from the root down; `parent` is the position in
    /// this list, -1 for the root.
    boxes() {
      const { tree } = viewer.flame;
      return viewer.flame.boxes().map((box) => {
        const { name, module, category } = viewer.functionOf(box.node);
        const heuristic = viewer.stage.profile.frames.heuristic[tree.frame(box.node)] === 1;
        const { node, ...place } = box;
        const change = viewer.comparison?.ofNode(tree, node);
        return { ...place, name, module, category, heuristic, total: tree.total(node), self: tree.self(node), ...change };
      });
    },
    /// The table's rows in its order.
    functions(limit = Infinity) {
      const { functionSelf, functionTotal } = viewer.stage.weights;
      return viewer.table.rows.slice(0, limit).map(({ id, name, module }) => ({
        name,
        module,
        self: functionSelf[id],
        total: functionTotal[id],
        ...viewer.comparison?.ofFunction(id),
      }));
    },
    /// The timeline's rows in sight with window coordinates: `view` is what is in `width` from `left` on.
    lanes() {
      const { view } = viewer.timeline;
      return viewer.timeline.inSight().map(({ row: { process, thread, weight }, ...place }) => ({
        ...place,
        view,
        pid: process.pid,
        tid: thread?.tid ?? null,
        name: (thread ?? process).name,
        weight,
      }));
    },
  };
  const live = {
    idle: () => viewer.flame.idle && viewer.timeline.idle,
    total: () => viewer.weights.sum,
    samples: () => viewer.weights.count,
    weighMs: () => viewer.weighMs,
    range: () => viewer.filter.range,
    matched: () => ({ weight: viewer.search.weight, share: viewer.search.weight / viewer.stage.weights.sum }),
    zoomed: () => viewer.functionOf(viewer.flame.zoomed).name,
  };
  for (const [name, get] of Object.entries(live)) Object.defineProperty(state, name, { get, enumerable: true });
  return Object.freeze(state);
}

function publish(state) {
  Object.defineProperty(window, "collector", { value: state, configurable: true });
}

async function start() {
  publish(Object.freeze({ ready: false, error: null }));
  const splash = document.getElementById("splash");
  try {
    const element = document.getElementById("profile");
    const began = performance.now();
    const profile = await decodeProfile(element.textContent);
    element.remove();
    const decoded = performance.now();
    document.body.classList.remove("loading");
    const viewer = new Viewer(profile);
    splash.remove();
    const timings = { decodeMs: decoded - began, buildMs: performance.now() - decoded, shownMs: null };
    // The frame after next is on the screen when its callback runs.
    await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    timings.shownMs = performance.now();
    publish(stateOf(viewer, Object.freeze(timings)));
  } catch (error) {
    const message = document.createElement("p");
    message.textContent = `This profile can't be shown: ${error.message}. The file may be incomplete; export it again.`;
    splash.replaceChildren(message);
    publish(Object.freeze({ ready: false, error: error.message }));
  }
}

await start();
