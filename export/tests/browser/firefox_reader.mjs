// Firefox Profiler's own command line, which has the code of the web application: a file in, its answers out.

import { deepEqual, ok } from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { fileOf } from "./browser.mjs";

/// The reader holds a file in a process of its own, which answers to others. What `test` is given asks it.
export async function reading(path, test) {
  const sessions = mkdtempSync(join(tmpdir(), "collector-firefox-"));
  const node = fileOf(`node-linux-${process.arch}`, "bin/node");
  const reader = fileOf("@firefox-devtools/profiler-cli", "dist/profiler-cli.js");
  const env = { ...process.env, PROFILER_CLI_SESSION_DIR: sessions, PROFILER_CLI_NO_SYMBOLICATE: "1" };
  const options = { env, encoding: "utf8", maxBuffer: 1 << 28, stdio: ["ignore", "pipe", "pipe"] };
  const session = ["--session", "test"];
  const ask = (...command) => JSON.parse(execFileSync(node, [reader, ...command, ...session, "--json"], options));
  // Its own "load" gives it half a second to start, which a busy machine does not.
  const holder = spawn(node, [reader, "--daemon", path, ...session], { env, stdio: "ignore" });
  const ended = once(holder, "exit");
  try {
    const limit = Date.now() + 120_000;
    while (!isPublished(join(sessions, "test.json")) || !hasLoaded(ask)) {
      deepEqual([holder.exitCode, holder.signalCode], [null, null], "the reader ended");
      ok(Date.now() < limit, "the reader does not start");
      await setTimeout(200);
    }
    return await test(ask);
  } finally {
    holder.kill();
    await ended;
    rmSync(sessions, { recursive: true, force: true });
  }
}

/// Who asks sooner removes the files of the session that is about to begin: it takes them for those of one that died.
function isPublished(path) {
  try {
    JSON.parse(readFileSync(path, "utf8"));
    return true;
  } catch {
    return false;
  }
}

function hasLoaded(ask) {
  try {
    ask("status");
    return true;
  } catch {
    return false;
  }
}

/// An id that was used before is told apart by a number behind it.
export const id = (text) => Number(String(text).split(".")[0]);
