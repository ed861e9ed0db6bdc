//! Files from servers (debuginfod, of elfutils), by build id, and never while a recording is made: debug files when it is named, and when
//! one of another machine is read the programs that it is unwound by.
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
