//! Tests of the crate from outside, mostly against readers and tools that are not ours.
//!
//! A tool that is missing makes its test print `SKIPPED`, or fail where the environment says `CI=true`.

#![allow(clippy::unwrap_used, reason = "what a test can't do is its failure")]

mod counted;
mod cut;
mod damaged;
mod dotnet;
mod early;
mod firefox;
mod flamegraph;
mod folded;
mod graph;
mod hops;
mod hostile;
mod import_firefox;
mod import_folded;
mod import_jfr;
mod import_large;
mod import_nettrace;
mod import_pprof;
mod import_samply;
mod jfr;
mod jfr_events;
mod jfr_facts;
mod jfr_made;
mod jfr_versions;
mod jsonl;
mod large_sums;
mod lines;
mod made;
mod many_kinds;
mod nettrace;
mod nettrace_events;
mod nettrace_foreign;
mod nettrace_old;
mod nettrace_runtime;
mod odd;
mod otlp;
mod parallel;
mod parquet;
mod parquet_made;
mod perfetto;
mod perfview;
mod pprof;
mod process_ends;
mod random;
mod raw_events;
mod several;
mod short_names;
mod sizeless;
mod snapshots;
mod spans;
mod speedscope;
mod spilled;
mod streaming;
mod symbols;
mod table;
mod tools;
mod weight;
mod windows;
