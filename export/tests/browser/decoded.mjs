// What the page's own decoder makes of a page: `node decoded.mjs PAGE`. Out: JSON, with the path of each sample.

import { readFileSync } from "node:fs";
import { FORM, decodeProfile } from "../../src/format/html/viewer/decode.js";

const page = readFileSync(process.argv[2], "utf8");
const [, text] = /<script[^>]*id="profile"[^>]*>([^<]*)<\/script>/.exec(page);
const { system, kinds, functions, frames, nodes, processes, threads, samples } = await decodeProfile(text);

/// Functions from the root on; the first two nodes are above all, and the process.
function pathOf(node) {
  const path = [];
  for (; nodes.depth[node] > 1; node = nodes.parent[node]) {
    const frame = nodes.frame[node];
    path.push({
      function: functions[frames.function[frame]],
      heuristic: frames.heuristic[frame] === 1,
      inlined: frames.inlined[frame] === 1,
    });
  }
  return path.reverse();
}

const rows = Array.from({ length: samples.count }, (_, at) => {
  const thread = threads[samples.thread[at]];
  return {
    us: samples.time[at],
    kind: kinds[samples.kind?.[at] ?? 0].name,
    value: samples.value?.[at] ?? 1,
    cpu: samples.cpu[at],
    estimated: (samples.form?.[at] ?? samples.form) === FORM.estimate,
    process: processes[thread.process],
    thread,
    stack: pathOf(samples.node[at]),
  };
});
console.log(JSON.stringify({ system, kinds, processes, rows }));
