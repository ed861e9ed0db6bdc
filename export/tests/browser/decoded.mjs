// What the decoder that is in a page makes of it: `node decoded.mjs PAGE`. Out: JSON, with the path of each sample.

import { readFileSync } from "node:fs";

const page = readFileSync(process.argv[2], "utf8");
const [, text] = /<script[^>]*id="profile"[^>]*>([^<]*)<\/script>/.exec(page);
// The first module of the page's script, up to where the next one begins.
const [, decoder] = /<script type="module">\s*\/\/ decode\.js\n([^]*?)\n\/\/ format\.js\n/.exec(page);
const source = `${decoder}\nexport { FORM, decodeProfile };`;
const { FORM, decodeProfile } = await import(`data:text/javascript,${encodeURIComponent(source)}`);
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
