// What is written for Firefox Profiler, as that one's own command line reads it.

import { deepEqual, equal, ok } from "node:assert/strict";
import { basename } from "node:path";
import { id, reading as readingFile } from "./firefox_reader.mjs";

const reading = ({ page }, test) => readingFile(page.replace(/html$/, "firefox.json.gz"), test);

/// The threads of the truth: by tid, since one tid is one thread, and those of pids that were used twice one after the other.
function threadsOf(truth) {
  return truth.threads.map((thread) => ({ ...thread, process: truth.processes[thread.process] }));
}

const key = ({ pid, tid, process, name }) => JSON.stringify([pid, tid, process, pid === tid ? process : name]);

/// Handles of the reader's threads, by `key`.
function listed(ask) {
  const handles = new Map();
  for (const thread of ask("thread", "list", "--limit", "0").threads) {
    const named = { pid: id(thread.pid), tid: id(thread.tid), process: thread.processName, name: thread.name };
    const known = handles.get(key(named)) ?? [];
    handles.set(key(named), [...known, thread.threadHandle]);
  }
  return handles;
}

/// What a function is to the reader: one without a symbol is an address.
function shown({ name, module, inlined }) {
  // It has no address of its own.
  if (inlined) return JSON.stringify([name, null]);
  const isFile = module.startsWith("/");
  const unnamed = /^(.+)\+0x([0-9a-f]+)$/.exec(name);
  const isAddress = isFile && unnamed !== null && unnamed[1] === basename(module);
  const shownName = isAddress ? `0x${unnamed[2]}` : name;
  return JSON.stringify([shownName, isFile || module === "[kernel]" ? basename(module) : null]);
}

/// By function of a thread: its own and all of its weight.
function weightsOf(truth, thread, kind) {
  const samples = truth.select((sample) => sample.thread === thread, kind);
  const weights = {};
  for (const [key, { self, total }] of truth.weightByFunction(samples)) {
    const [name, module] = key.split("\u0000");
    const { inlined } = truth.functions.find((fn) => fn.name === name && fn.module === module);
    weights[shown({ name, module, inlined })] = [self, total];
  }
  return weights;
}

function weightsRead(ask, handle) {
  const { functions } = ask("thread", "functions", "--thread", handle, "--limit", "0", "--include-idle");
  const read = functions.map(({ name, library, selfSamples, totalSamples }) => [
    JSON.stringify([name, library ?? null]),
    [selfSamples, totalSamples],
  ]);
  equal(new Set(read.map(([name]) => name)).size, read.length);
  return Object.fromEntries(read);
}

/// Of the reader's threads with one key (a pid was used twice) that which fits.
function fitting(handles, fits) {
  const errors = [];
  for (const handle of handles) {
    try {
      return fits(handle);
    } catch (error) {
      errors.push(error);
    }
  }
  throw errors[0];
}

/// The period of the fixture's clock, and its end, in nanoseconds.
const PERIOD = 1_000_000;
const END = 3_000_000_000;

/// How many samples without a stack there are of a thread: at both ends of each time in which it did not run, as far as samples tell.
function breaksOf(truth, thread) {
  const times = truth.select((sample) => sample.thread === thread.id).map(({ us }) => us * 1_000 + BELOW_MICROSECOND);
  times.sort((a, b) => a - b);
  const apart = times.slice(1).filter((time, at) => time - times[at] > 2 * PERIOD);
  const [late, early] = [times[0] > PERIOD, times.at(-1) + PERIOD < END];
  // The first thread has the start and the end of the recording as well.
  return 2 * apart.length + late + (thread.id === 0 ? 2 + early : 0);
}

async function theReaderSeesThreadsAndFunctions(_, { small }) {
  await reading(small, (ask) => {
    const { truth } = small;
    const handles = listed(ask);
    const threads = threadsOf(truth);
    equal([...handles.values()].flat().length, threads.length);
    ok(threads.some((thread) => handles.get(key(named(thread))).length > 1), "a pid that was used twice");
    for (const thread of threads) {
      const found = handles.get(key(named(thread)));
      ok(found, key(named(thread)));
      fitting(found, (handle) => {
        const samples = truth.select((sample) => sample.thread === thread.id);
        equal(ask("thread", "info", "--thread", handle).sampleCount, samples.length + breaksOf(truth, thread));
        deepEqual(weightsRead(ask, handle), weightsOf(truth, thread.id, 0));
      });
    }
  });
}

const named = ({ tid, name, process }) => ({ pid: process.pid, tid, process: process.name, name });

/// What each time of the fixture has below its microsecond.
const BELOW_MICROSECOND = 321;

async function theReaderSeesTimesAsMarkers(_, { small }) {
  await reading(small, (ask) => {
    const { truth } = small;
    const handles = listed(ask);
    for (const thread of threadsOf(truth)) {
      const samples = truth.select((sample) => sample.thread === thread.id, 1);
      const expected = samples.map(({ us, value, cpu, stack }) => ({
        start: us * 1_000 + BELOW_MICROSECOND,
        duration: value,
        value,
        cpu,
        hasStack: truth.stacks[stack].length > 0,
      }));
      fitting(handles.get(key(named(thread))), (handle) => {
        const answer = ask("thread", "markers", "--thread", handle, "--list", "--limit", "0");
        // Starts are told from that of the range, which is all of the recording's time.
        const { start: first, end } = answer.context.rootRange;
        ok(end >= 3_000, "the recording took 3 s");
        const [told, timed] = [true, false].map((isTold) =>
          answer.flatMarkers.filter(({ name }) => (name === "recording") === isTold),
        );
        // The account is with the first thread.
        equal(told.length, thread.id === 0 ? 2 : 0);
        const read = timed.map((marker) => {
          equal(marker.name, "off-cpu");
          const { start, duration, data, hasStack } = marker;
          const nanos = (ms) => Math.round(ms * 1e6);
          return { start: nanos(start + first), duration: nanos(duration), value: data.value, cpu: data.cpu, hasStack };
        });
        deepEqual(read.sort((a, b) => a.start - b.start), expected.sort((a, b) => a.start - b.start));
      });
    }
  });
}

async function theReaderLoadsAnEmptyOne(_, { empty }) {
  await reading(empty, (ask) => {
    deepEqual(ask("thread", "list").threads.map(({ name, cpuMs }) => [name, cpuMs]), [["nothing recorded", 0]]);
  });
}

async function theReaderLoadsALargeOne(_, { big }) {
  return reading(big, (ask) => {
    const { truth } = big;
    const handles = listed(ask);
    equal([...handles.values()].flat().length, truth.threads.length);
    const [thread] = threadsOf(truth);
    const [handle] = handles.get(key(named(thread)));
    deepEqual(weightsRead(ask, handle), weightsOf(truth, thread.id, 0));
  });
}

export const tests = [
  ["firefox: its reader sees threads and functions", theReaderSeesThreadsAndFunctions],
  ["firefox: its reader sees times as markers", theReaderSeesTimesAsMarkers],
  ["firefox: its reader loads an empty one", theReaderLoadsAnEmptyOne],
  ["firefox: its reader loads a large one", theReaderLoadsALargeOne],
];
