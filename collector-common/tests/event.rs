//! Events through their public interface: formats and getters, dispatch, filters, and both written forms.

#![allow(clippy::unwrap_used, reason = "a failed step of a test should stop it")]

#[path = "event/dispatch.rs"]
mod dispatch;
#[path = "event/encode.rs"]
mod encode;
#[path = "event/fields.rs"]
mod fields;
#[path = "event/filters.rs"]
mod filters;
#[path = "event/hostile.rs"]
mod hostile;
#[path = "event/kernel_filters.rs"]
mod kernel_filters;
#[path = "event/written.rs"]
mod written;
