// Numbers for people.

import { UNIT } from "./decode.js";

const grouped = new Intl.NumberFormat("en-US");

/// A count with its thousands apart.
export function formatCount(count) {
  return grouped.format(Math.round(count));
}

/// A share of a whole.
export function formatPercent(part, whole) {
  const percent = whole > 0 ? (part / whole) * 100 : 0;
  if (percent >= 99.995) return "100 %";
  if (percent >= 10) return `${percent.toFixed(1)} %`;
  if (percent >= 0.01 || percent === 0) return `${percent.toFixed(2)} %`;
  return "<0.01 %";
}

/// Microseconds with a unit that fits, to three digits.
export function formatTime(us) {
  if (us === 0) return "0 s";
  if (us >= 6e7) {
    const seconds = Math.round(us / 1e6);
    return `${Math.floor(seconds / 60)} m ${String(seconds % 60).padStart(2, "0")} s`;
  }
  if (us >= 1e6) return `${digits(us / 1e6)} s`;
  if (us >= 1e3) return `${digits(us / 1e3)} ms`;
  return `${digits(us)} µs`;
}

/// Bytes with a unit that fits.
export function formatBytes(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let power = 0;
  let value = Math.abs(bytes);
  while (value >= 1024 && power < units.length - 1) {
    value /= 1024;
    power++;
  }
  return `${bytes < 0 ? "-" : ""}${power === 0 ? value : digits(value)} ${units[power]}`;
}

function digits(value) {
  if (value >= 100) return value.toFixed(0);
  if (value >= 10) return value.toFixed(1);
  return value.toFixed(2);
}

/// How weights of a kind of sample are written.
export class Measure {
  constructor(kind) {
    this.kind = kind;
  }

  /// Whether a weight is a time.
  get timed() {
    return this.kind.unit === UNIT.nanoseconds || (this.kind.unit === UNIT.count && this.kind.period > 1);
  }

  /// Microseconds that a weight stands for, of a kind that is timed.
  time(weight) {
    return (this.kind.unit === UNIT.nanoseconds ? weight : weight * this.kind.period) / 1e3;
  }

  /// A weight as the table shows it.
  short(weight) {
    if (this.kind.unit === UNIT.bytes) return formatBytes(weight);
    return this.timed ? formatTime(this.time(weight)) : formatCount(weight);
  }

  /// A weight in full: a count of samples, and the time they stand for.
  long(weight) {
    if (this.kind.unit !== UNIT.count) return this.short(weight);
    const samples = `${formatCount(weight)} ${weight === 1 ? "sample" : "samples"}`;
    return this.timed ? `${samples}, ${formatTime(this.time(weight))}` : samples;
  }
}

/// The part of a path after the last slash; of one of Windows, after the last backslash, too.
export function baseName(path) {
  const ofWindows = /^([A-Za-z]:[\\/]|\\)/.test(path);
  const last = path.lastIndexOf("/");
  return path.slice((ofWindows ? Math.max(last, path.lastIndexOf("\\")) : last) + 1);
}
