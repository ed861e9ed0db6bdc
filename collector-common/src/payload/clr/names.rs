//! Names in `ClrEtwAll.man` of events whose layouts are not in the table.

use super::{RUNDOWN, RUNTIME};
use crate::event::Guid;

/// By number, of the runtime's own provider. What a trace of ETW says of their fields is in the trace.
const OF_RUNTIME: [(u16, &str); 44] = [
    (39, "GCDynamicEvent"),
    (40, "WorkerThreadCreate"),
    (41, "WorkerThreadTerminate"),
    (42, "WorkerThreadRetire"),
    (43, "WorkerThreadUnretire"),
    (44, "IOThreadCreate"),
    (45, "IOThreadTerminate"),
    (46, "IOThreadRetire"),
    (47, "IOThreadUnretire"),
    (48, "ThreadpoolSuspensionSuspendThread"),
    (49, "ThreadpoolSuspensionResumeThread"),
    (58, "InitializeYieldProcessorNormalizedInfo"),
    (83, "AppDomainMemAllocated"),
    (84, "AppDomainMemSurvived"),
    (88, "ILStubGenerated"),
    (89, "ILStubCacheHit"),
    (135, "DCStartCompleteV2"),
    (136, "DCEndCompleteV2"),
    (137, "MethodDCStartV2"),
    (138, "MethodDCEndV2"),
    (139, "MethodDCStartVerboseV2"),
    (140, "MethodDCEndVerboseV2"),
    (149, "ModuleDCStartV2"),
    (150, "ModuleDCEndV2"),
    (158, "ModuleRangeLoad"),
    (181, "StrongNameVerificationStart"),
    (182, "StrongNameVerificationStop"),
    (183, "AuthenticodeVerificationStart"),
    (184, "AuthenticodeVerificationStop"),
    (186, "MethodJitInliningFailedAnsi"),
    (188, "MethodJitTailCallSucceeded"),
    (189, "MethodJitTailCallFailedAnsi"),
    (191, "MethodJitTailCallFailed"),
    (192, "MethodJitInliningFailed"),
    (206, "GenAwareBegin"),
    (207, "GenAwareEnd"),
    (260, "CodeSymbols"),
    (270, "EventSource"),
    (292, "ResolutionAttempted"),
    (293, "AssemblyLoadContextResolvingHandlerInvoked"),
    (294, "AppDomainAssemblyResolveHandlerInvoked"),
    (295, "AssemblyLoadFromResolveHandlerInvoked"),
    (297, "JitInstrumentationData"),
    (298, "JitInstrumentationDataVerbose"),
];

/// The same of what it tells when a session begins or ends.
const OF_RUNDOWN: [(u16, &str); 2] = [(160, "ModuleRangeDCStart"), (161, "ModuleRangeDCEnd")];

/// The name of an event that is not in the table; none where it is not known here, either.
pub fn name_without_layout(provider: Guid, id: u16) -> Option<&'static str> {
    let names: &[(u16, &'static str)] = match provider {
        RUNTIME => &OF_RUNTIME,
        RUNDOWN => &OF_RUNDOWN,
        _ => &[],
    };
    names.iter().find(|(known, _)| *known == id).map(|(_, name)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::EventKey;
    use crate::payload::clr::ClrEvent;

    /// Of each event there is one name, and each of the runtime's own has one.
    #[test]
    fn names_are_those_of_no_other_event() {
        let mut names: Vec<&str> = OF_RUNTIME.iter().chain(&OF_RUNDOWN).map(|(_, name)| *name).collect();
        for spec in ClrEvent::SPECS {
            let EventKey::Id(id) = spec.key else { panic!("{}", spec.name) };
            assert_eq!(name_without_layout(spec.provider, id), None, "{}", spec.name);
            if spec.since == 0 && [RUNTIME, RUNDOWN].contains(&spec.provider) {
                assert!(!spec.manifest_name.is_empty(), "{}", spec.name);
                names.push(spec.manifest_name);
            }
        }
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
