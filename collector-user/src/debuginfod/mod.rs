//! Debug files from servers (debuginfod, of elfutils), by build id, when a recording is named and never while it is made.
//!
//! ```text
//! module without a debug file here ─► cache ─ no ─► servers, in turn ─► build id as asked? ─► cache ─► symbols and DWARF
//!                                       └─ yes ──────────────────────────────────────────────┘
//! ```
//!
//! Nothing is asked unless `DEBUGINFOD_URLS` names servers. The cache is that of elfutils' client, in either direction.

mod cache;
mod client;
mod fetched;
mod http;
mod settings;

pub(crate) use fetched::{Servers, WithServers};
