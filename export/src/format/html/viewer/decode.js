// The profile: text of the page's data element in, tables and typed columns out.
//
// The layout is described in ../encode.rs, which writes it: base64 of a raw deflate stream of unsigned LEB128
// numbers and UTF-8 strings. Columns that samples refer to become typed arrays; a node is an index into the
// prefix tree of stacks, depth first, so that the nodes below node i are those from i + 1 up to end[i].

export const CATEGORY = Object.freeze({ all: 0, process: 1, user: 2, kernel: 3, jit: 4, unknown: 5, cut: 6 });

export const UNIT = Object.freeze({ count: 0, nanoseconds: 1, bytes: 2 });

/// What a sample is on its thread's lane, as ../form.rs tells it.
export const FORM = Object.freeze({ moment: 0, running: 1, blocked: 2, waiting: 3, time: 4, estimate: 5 });

const LAYOUT = "CLP4";
const STRANGE = "the profile is in a layout that this page does not know";
// What a browser holds in one piece at most.
const LARGEST = 2 ** 31 - 1;

class Reader {
  constructor(bytes) {
    this.bytes = bytes;
    this.at = 0;
  }

  number() {
    const bytes = this.bytes;
    let value = 0;
    let scale = 1;
    for (;;) {
      const byte = bytes[this.at++];
      if (byte === undefined) throw new Error("the profile ends early");
      value += (byte & 127) * scale;
      if (byte < 128) return value;
      scale *= 128;
    }
  }

  /// A count of things, each of which takes a byte at least.
  count() {
    const count = this.number();
    if (count > this.bytes.length - this.at) throw new Error("the profile is cut short");
    return count;
  }

  column(into) {
    for (let i = 0; i < into.length; i++) into[i] = this.number();
    return into;
  }

  /// A column of positions in a list of `count` things.
  places(into, count) {
    this.column(into);
    for (let i = 0; i < into.length; i++) if (into[i] >= count) throw new Error("the profile refers to what is not in it");
    return into;
  }

  text(length) {
    const end = this.at + length;
    if (end > this.bytes.length) throw new Error("the profile ends within a name");
    const text = decoder.decode(this.bytes.subarray(this.at, end));
    this.at = end;
    return text;
  }
}

const decoder = new TextDecoder();

function unbase64(text) {
  try {
    if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
    const binary = atob(text);
    const bytes = new Uint8Array(binary.length);
    for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
    return bytes;
  } catch (cause) {
    throw new Error("the profile is no text in base64", { cause });
  }
}

async function inflate(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  const parts = [];
  let length = 0;
  for (let reader = stream.getReader(); ; ) {
    const { done, value } = await reader.read();
    if (done) break;
    parts.push(value);
    length += value.length;
    if (length > LARGEST) throw new Error("the profile is larger than 2 GiB");
  }
  const whole = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

export async function decodeProfile(text) {
  const reader = new Reader(await inflate(unbase64(text.trim())));
  const layout = reader.text(4);
  if (layout !== LAYOUT) throw new Error(/^CLP\d$/.test(layout) ? `${STRANGE} (${layout}, not ${LAYOUT})` : STRANGE);

  const lengths = reader.column(new Uint32Array(reader.count()));
  const strings = Array.from(lengths, (length) => reader.text(length));
  const string = () => {
    const text = strings[reader.number()];
    if (text === undefined) throw new Error("the profile refers to a name that is not in it");
    return text;
  };
  const names = (count) => Array.from({ length: count }, string);

  const system = { host: string(), kernel: string(), architecture: string(), command: string() };
  system.account = string().split("\n").filter((line) => line !== "");
  system.cpus = reader.number();
  system.start = reader.number();
  system.duration = reader.number();

  const kinds = list(reader.count(), { name: names, unit: numbers, period: numbers });
  if (kinds.length === 0) kinds.push({ id: 0, name: "samples", unit: UNIT.count, period: 1 });
  const modules = names(reader.count());
  const functions = list(reader.count(), {
    name: names,
    module: numbers,
    category: numbers,
    source: names,
    firstLine: numbers,
    lastLine: numbers,
  });
  for (const fn of functions) fn.module = fn.module === 0 ? "" : (modules[fn.module - 1] ?? "");

  const frameCount = reader.count();
  const frames = { function: reader.places(new Uint32Array(frameCount), functions.length) };
  const marks = reader.column(new Uint8Array(frameCount));
  frames.heuristic = marks.map((mark) => mark & 1);
  frames.inlined = marks.map((mark) => mark >> 1);
  const nodeCount = reader.count();
  const nodes = linked(
    reader.column(new Uint32Array(nodeCount)),
    reader.places(new Uint32Array(nodeCount), frameCount),
    frames,
    functions.length,
  );
  const processes = list(reader.count(), { pid: numbers, name: names, facts: names });
  const ofProcess = (count) => reader.places(new Array(count), processes.length);
  const threads = list(reader.count(), { process: ofProcess, tid: numbers, name: names });

  const count = reader.count();
  const samples = { count, time: times(count), thread: reader.places(new Uint32Array(count), threads.length) };
  samples.node = reader.places(new Uint32Array(count), nodeCount);
  samples.cpu = reader.column(new Uint16Array(count));
  samples.kind = kinds.length > 1 ? reader.places(new Uint8Array(count), kinds.length) : null;
  samples.value = reader.number() === 1 ? zigzag(reader.column(new Float64Array(count))) : null;
  samples.form = reader.number() === 1 ? reader.column(new Uint8Array(count)) : reader.number();
  return { system, kinds, functions, frames, nodes, processes, threads, samples };

  function numbers(count) {
    return reader.column(new Array(count));
  }

  // Objects with a property a column.
  function list(count, columns) {
    const read = Object.entries(columns).map(([name, column]) => [name, column(count)]);
    return Array.from({ length: count }, (_, i) =>
      Object.fromEntries([["id", i], ...read.map(([name, column]) => [name, column[i]])]),
    );
  }

  // Deltas to times. A recording longer than 71 minutes does not fit 32 bits.
  function times(count) {
    const time = system.duration < 2 ** 32 ? new Uint32Array(count) : new Float64Array(count);
    let now = 0;
    for (let i = 0; i < count; i++) time[i] = now += reader.number();
    return time;
  }
}

function zigzag(column) {
  for (let i = 0; i < column.length; i++) {
    const half = Math.floor(column[i] / 2);
    column[i] = column[i] % 2 === 0 ? half : -half - 1;
  }
  return column;
}

// The prefix tree with what follows from depths: parents, ends, and whether a node is the outermost one of its
// function on its path (its total counts for the function; that of a recursive call below does not).
export function linked(depth, frame, frames, functionCount) {
  const count = depth.length;
  const parent = new Uint32Array(count);
  const end = new Uint32Array(count);
  const outermost = new Uint8Array(count);
  const fn = new Uint32Array(count);
  const active = new Uint32Array(functionCount);
  const path = [];
  const close = (to, at) => {
    while (path.length > to) {
      const node = path.pop();
      end[node] = at;
      active[fn[node]]--;
    }
  };
  for (let i = 0; i < count; i++) {
    close(depth[i], i);
    parent[i] = path.length > 0 ? path[path.length - 1] : 0;
    fn[i] = frames.function[frame[i]];
    outermost[i] = active[fn[i]]++ === 0 ? 1 : 0;
    path.push(i);
  }
  close(0, count);
  return { count, depth, frame, parent, end, outermost, function: fn };
}
