//! Providers are enabled for a session.

#![cfg_attr(
    test,
    allow(clippy::missing_const_for_thread_local, reason = "it is; for Windows that is not seen")
)]

use std::time::Duration;

use windows_sys::Win32::System::Diagnostics::Etw::{
    ENABLE_TRACE_PARAMETERS, ENABLE_TRACE_PARAMETERS_VERSION_2, EVENT_CONTROL_CODE_CAPTURE_STATE,
    EVENT_CONTROL_CODE_ENABLE_PROVIDER, EVENT_ENABLE_PROPERTY_STACK_TRACE, EVENT_FILTER_DESCRIPTOR,
    EVENT_FILTER_TYPE_EVENT_ID, EVENT_FILTER_TYPE_PID, EVENT_FILTER_TYPE_STACKWALK, EnableTraceEx2,
};

use super::control::Handle;
use super::to_windows;
use crate::plan::{EventIds, ProviderPlan, Stacks};
use crate::session::Win32Error;

/// In which providers are to have done what they are told.
pub(in crate::session) const PATIENCE: Duration = Duration::from_secs(10);

#[cfg(test)]
thread_local! {
    static TOLD: std::cell::RefCell<Vec<Told>> = const { std::cell::RefCell::new(Vec::new()) };
    static ANSWER: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
    static STATE: std::cell::Cell<Option<u32>> = const { std::cell::Cell::new(None) };
}

/// What providers answer this thread from now on, in place of Windows' own answer, unless that is an error.
#[cfg(test)]
pub(in crate::session) fn let_providers_answer(code: u32) {
    ANSWER.set(code);
}

/// The same of those that are asked how things stand, where that is another answer.
#[cfg(test)]
pub(in crate::session) fn let_states_be_answered(code: Option<u32>) {
    STATE.set(code);
}

/// What a provider was told.
#[cfg(test)]
#[derive(Debug, PartialEq, Eq)]
pub(in crate::session) struct Told {
    pub(in crate::session) provider: String,
    pub(in crate::session) what: Enable,
    /// Keywords.
    pub(in crate::session) any: u64,
    /// What a filter by process has; none where there is no such filter.
    pub(in crate::session) pids: Option<Vec<u32>>,
}

#[cfg(test)]
impl Told {
    fn of(provider: &ProviderPlan, what: Enable, filters: &[Filter]) -> Self {
        let data = filters.iter().find(|(kind, _)| *kind == EVENT_FILTER_TYPE_PID).map(|(_, data)| data);
        let pids = data.map(|data| data.as_chunks().0.iter().map(|pid| u32::from_le_bytes(*pid)).collect());
        Self { provider: provider.name.clone(), what, any: provider.any, pids }
    }
}

/// What this thread has told providers since it was asked the last time.
#[cfg(test)]
pub(in crate::session) fn told_providers() -> Vec<Told> {
    TOLD.take()
}

/// How many of them it has.
#[cfg(test)]
pub(super) fn count_told() -> usize {
    TOLD.with_borrow(Vec::len)
}

/// What a provider is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::session) enum Enable {
    /// To tell its events.
    On,
    /// To tell how things stand.
    CaptureState,
}

/// The data of a filter, and its kind.
type Filter = (u32, Vec<u8>);

/// Tells a provider. [`Win32Error::TIMEOUT`] is that it has not done it in time, and does so later.
pub(in crate::session) fn enable(
    handle: Handle,
    provider: &ProviderPlan,
    what: Enable,
) -> Result<(), Win32Error> {
    let filters = filters(provider);
    #[cfg(test)]
    TOLD.with_borrow_mut(|told| told.push(Told::of(provider, what, &filters)));
    let mut descriptors: Vec<EVENT_FILTER_DESCRIPTOR> = filters
        .iter()
        .map(|(kind, data)| EVENT_FILTER_DESCRIPTOR {
            // Windows gets it as a number.
            Ptr: data.as_ptr().expose_provenance() as u64,
            Size: data.len() as u32,
            Type: *kind,
        })
        .collect();
    let parameters = ENABLE_TRACE_PARAMETERS {
        Version: ENABLE_TRACE_PARAMETERS_VERSION_2,
        EnableProperty: if provider.stacks == Stacks::None { 0 } else { EVENT_ENABLE_PROPERTY_STACK_TRACE },
        // Of no descriptors that is no address.
        EnableFilterDesc: if descriptors.is_empty() {
            std::ptr::null_mut()
        } else {
            descriptors.as_mut_ptr()
        },
        FilterDescCount: descriptors.len() as u32,
        ..ENABLE_TRACE_PARAMETERS::default()
    };
    let (control, parameters) = match what {
        Enable::On => (EVENT_CONTROL_CODE_ENABLE_PROVIDER, &raw const parameters),
        Enable::CaptureState => (EVENT_CONTROL_CODE_CAPTURE_STATE, std::ptr::null()),
    };
    let guid = to_windows(provider.guid);
    // SAFETY: the GUID, the parameters, the descriptors that they point to, and the data that those point to outlive the call, and
    // are as long as they say; a wrong handle is an error.
    let code = unsafe {
        EnableTraceEx2(
            handle.windows(),
            &raw const guid,
            control,
            provider.level.number(),
            provider.any,
            provider.all,
            PATIENCE.as_millis() as u32,
            parameters,
        )
    };
    #[cfg(test)]
    let code = match (code, what) {
        (0, Enable::CaptureState) => STATE.get().unwrap_or(ANSWER.get()),
        (0, Enable::On) => ANSWER.get(),
        _ => code,
    };
    Win32Error::check(code)
}

fn filters(provider: &ProviderPlan) -> Vec<Filter> {
    let mut filters = Vec::new();
    if let EventIds::Only(ids) = &provider.ids {
        filters.push((EVENT_FILTER_TYPE_EVENT_ID, ids_filter(ids)));
    }
    if let Stacks::Only(ids) = &provider.stacks {
        filters.push((EVENT_FILTER_TYPE_STACKWALK, ids_filter(ids)));
    }
    if !provider.pids.is_empty() {
        let pids = provider.pids.iter().flat_map(|pid| pid.0.to_le_bytes());
        filters.push((EVENT_FILTER_TYPE_PID, pids.collect()));
    }
    filters
}

/// `EVENT_FILTER_EVENT_ID`: u8 whether these are the ones that pass, u8 nothing, u16 how many, u16 each.
fn ids_filter<'a>(ids: impl IntoIterator<Item = &'a u16>) -> Vec<u8> {
    let ids: Vec<u8> = ids.into_iter().flat_map(|id| id.to_le_bytes()).collect();
    let count = (ids.len() / 2) as u16;
    let mut data = vec![1, 0];
    data.extend(count.to_le_bytes());
    data.extend(ids);
    data
}

#[cfg(test)]
mod tests {
    use collector_common::ids::Pid;

    use super::*;
    use crate::plan::{Scenario, Scope};

    #[test]
    fn filters_have_the_layout_of_evntprov_h() {
        let scope = Scope { frequency_hz: 1000, pids: vec![Pid(0x1234), Pid(7)] };
        let plan = Scenario::by_name("dotnet_contention").unwrap().plan(&scope);
        let filters = filters(&plan.providers[0]);
        // 0x80000200 by event, 0x80001000 stacks by event, 0x80000004 by process.
        assert_eq!(
            filters.iter().map(|filter| filter.0).collect::<Vec<_>>(),
            [0x8000_0200, 0x8000_1000, 0x8000_0004]
        );
        assert_eq!(filters[0].1[..8], [1, 0, 14, 0, 81, 0, 91, 0]);
        assert_eq!(filters[0].1.len(), 4 + 2 * 14);
        assert_eq!(filters[1].1, [1, 0, 1, 0, 81, 0]);
        assert_eq!(filters[2].1, [7, 0, 0, 0, 0x34, 0x12, 0, 0]);
    }
}
