//! The self-contained HTML page: one file with the profile and its viewer, which needs no network.
//!
//! - `encode`: the profile as compact columns; the layout is described there.
//! - `columns`, `tables`: numbers and names for it; `form`: what a sample is on its thread's lane.
//! - `bundle`: the viewer's ES modules (`viewer/*.js`) as one script.
//! - `page`: puts template, style, script and profile together.

mod bundle;
mod columns;
mod encode;
mod form;
mod page;
mod tables;

pub use page::Html;
