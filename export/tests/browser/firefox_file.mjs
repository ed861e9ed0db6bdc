// A file for Firefox Profiler, as that one's own command line reads it: `node firefox_file.mjs FILE`. Out: JSON, with the markers of each
// thread by their beginnings.

import { id, reading } from "./firefox_reader.mjs";

const nanoseconds = (milliseconds) => Math.round(milliseconds * 1e6);

const threads = await reading(process.argv[2], (ask) =>
  ask("thread", "list", "--limit", "0").threads.map(({ threadHandle, pid, tid, processName, name }) => {
    const answer = ask("thread", "markers", "--thread", threadHandle, "--list", "--limit", "0");
    // Starts are told from that of the range, which is all of the recording's time.
    const { start: first } = answer.context.rootRange;
    const markers = answer.flatMarkers.map(({ start, duration, name, label, data }) => ({
      name,
      label,
      start: nanoseconds(start + first),
      lasts: duration === null || duration === undefined ? null : nanoseconds(duration),
      data,
    }));
    return { pid: id(pid), tid: id(tid), process: processName, name, markers: markers.sort((a, b) => a.start - b.start) };
  }),
);
console.log(JSON.stringify(threads));
