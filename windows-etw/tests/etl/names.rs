//! Names that `PerfView` has for events, by provider and number: as in `ClrEtwAll.man`, in the manifests of Windows, in
//! the `EventSource`s of .NET and `PerfView`, and in Microsoft's list of the kernel's classes.

use windows_etw::record::{EtwRecord, Schema};

/// A provider or class with its events, by id or opcode.
struct Provider {
    guid: &'static str,
    name: &'static str,
    events: &'static [(u16, &'static str)],
}

/// By id.
const MANIFESTS: [Provider; 12] = [
    Provider {
        guid: "e13c0d23-ccbc-4e12-931b-d9cc2eee27e4",
        name: "Microsoft-Windows-DotNETRuntime",
        events: &[
            (1, "GC/Start"),
            (2, "GC/Stop"),
            (3, "GC/RestartEEStop"),
            (4, "GC/HeapStats"),
            (5, "GC/CreateSegment"),
            (7, "GC/RestartEEStart"),
            (8, "GC/SuspendEEStop"),
            (9, "GC/SuspendEEStart"),
            (10, "GC/AllocationTick"),
            (12, "GC/TerminateConcurrentThread"),
            (13, "GC/FinalizersStop"),
            (14, "GC/FinalizersStart"),
            (15, "Type/BulkType"),
            (21, "GC/BulkSurvivingObjectRanges"),
            (22, "GC/BulkMovedObjectRanges"),
            (23, "GC/GenerationRange"),
            (25, "GC/MarkStackRoots"),
            (26, "GC/MarkFinalizeQueueRoots"),
            (27, "GC/MarkHandles"),
            (28, "GC/MarkCards"),
            (29, "GC/FinalizeObject"),
            (33, "GC/PinObjectAtGCTime"),
            (35, "GC/Triggered"),
            (50, "ThreadPoolWorkerThread/Start"),
            (80, "Exception/Start"),
            (85, "AppDomainResourceManagement/ThreadCreated"),
            (143, "Method/LoadVerbose"),
            (144, "Method/UnloadVerbose"),
            (145, "Method/JittingStarted"),
            (151, "Loader/DomainModuleLoad"),
            (152, "Loader/ModuleLoad"),
            (153, "Loader/ModuleUnload"),
            (154, "Loader/AssemblyLoad"),
            (155, "Loader/AssemblyUnload"),
            (156, "Loader/AppDomainLoad"),
            (157, "Loader/AppDomainUnload"),
            (187, "Runtime/Start"),
            (200, "GarbageCollection/IncreaseMemoryPressure"),
            (202, "GC/MarkWithType"),
            (204, "GC/PerHeapHistory"),
            (205, "GC/GlobalHeapHistory"),
            (208, "GC/LOHCompact"),
            (209, "GC/FitBucketInfo"),
        ],
    },
    Provider {
        guid: "763fd754-7086-4dfe-95eb-c01a46faf4ca",
        name: "Microsoft-Windows-DotNETRuntimePrivate",
        events: &[
            (2, "GC/Settings"),
            (4, "GC/PerHeapHistory"),
            (5, "GC/GlobalHeapHistory"),
            (7, "GC/MarkStackRoots"),
            (8, "GC/MarkFinalizeQueueRoots"),
            (9, "GC/MarkHandles"),
            (10, "GC/MarkCards"),
            (161, "Binding/NgenPhaseStart"),
            (162, "Binding/NgenPhaseStop"),
            (165, "Binding/LoaderPhaseStart"),
            (166, "Binding/LoaderPhaseStop"),
            (171, "Binding/LoaderAssemblyInitPhaseStart"),
            (172, "Binding/LoaderAssemblyInitPhaseStop"),
            (173, "Binding/LoaderMappingPhaseStart"),
            (174, "Binding/LoaderMappingPhaseStop"),
            (175, "Binding/LoaderDeliverEventPhaseStart"),
            (176, "Binding/LoaderDeliverEventsPhaseStop"),
            (188, "NgenBinder/NgenBind"),
            (196, "Binding/FusionMessage"),
        ],
    },
    Provider {
        guid: "a669021c-c450-4609-a035-5af59af4df18",
        name: "Microsoft-Windows-DotNETRuntimeRundown",
        events: &[
            (146, "Method/DCStopComplete"),
            (148, "Method/DCStopInit"),
            (152, "Loader/DomainModuleDCStop"),
            (154, "Loader/ModuleDCStop"),
            (156, "Loader/AssemblyDCStop"),
            (158, "Loader/AppDomainDCStop"),
            (187, "Runtime/Start"),
        ],
    },
    Provider {
        guid: "1c95126e-7eea-49a9-a3fe-a378b03ddb4d",
        name: "Microsoft-Windows-DNS-Client",
        events: &[(1001, "DnsServerForInterface")],
    },
    Provider {
        guid: "315a8872-923e-4ea2-9889-33cd4754bf64",
        name: "Microsoft-Windows-Immersive-Shell",
        events: &[
            (147, "ImmersiveShellAppManagerSetActiveProcess/Start"),
            (148, "ImmersiveShellAppManagerSetActiveProcess/Stop"),
            (191, "ImmersiveShellAppManagerOnShellHookMessage/Start"),
            (192, "ImmersiveShellAppManagerOnShellHookMessage/Stop"),
        ],
    },
    Provider {
        guid: "b675ec37-bdb6-4648-bc92-f3fdc74d3ca2",
        name: "Microsoft-Windows-Kernel-EventTracing",
        events: &[
            (8, "ETW_TASK_PROVIDER/ETW_OPCODE_REGISTER"),
            (9, "ETW_TASK_PROVIDER/ETW_OPCODE_UNREGISTER"),
            (14, "ETW_TASK_PROVIDER/ETW_OPCODE_ENABLE"),
        ],
    },
    Provider {
        guid: "edd08927-9cc4-4e65-b970-c2560fb5c289",
        name: "Microsoft-Windows-Kernel-File",
        events: &[(12, "Create")],
    },
    Provider {
        guid: "22fb2cd6-0e7b-422b-a0c7-2fad1fd0e716",
        name: "Microsoft-Windows-Kernel-Process",
        events: &[(1, "ProcessStart/Start"), (2, "ProcessStop/Stop")],
    },
    Provider {
        guid: "a8a71ac1-040f-54a2-07ca-00a89b5ab761",
        name: "PerfView",
        events: &[
            (2, "Tracing/Start"),
            (3, "Tracing/Stop"),
            (4, "Rundown/Start"),
            (5, "Rundown/Stop"),
            (6, "WaitForIdle"),
            (10, "CommandLineParameters"),
            (11, "SessionParameters"),
            (12, "KernelEnableParameters"),
            (13, "ClrEnableParameters"),
            (14, "ProviderEnableParameters"),
            (15, "StartAndStopTimes"),
            (19, "StopReason"),
            (22, "PerfViewLog"),
            (65534, "ManifestData"),
        ],
    },
    Provider {
        guid: "8e9f5090-2d75-4d03-8a81-e5afbf85daf1",
        name: "System.Diagnostics.Eventing.FrameworkEventSource",
        events: &[(30, "ThreadPoolEnqueueWork"), (31, "ThreadPoolDequeueWork"), (65534, "ManifestData")],
    },
    Provider {
        guid: "2e5dba47-a3d2-4d16-8ee0-6671ffdcd7b5",
        name: "System.Threading.Tasks.TplEventSource",
        events: &[
            (7, "TaskScheduled/Send"),
            (8, "TaskExecute/Start"),
            (9, "TaskExecute/Stop"),
            (65534, "ManifestData"),
        ],
    },
    Provider {
        guid: "d3dd3dd4-aac2-4e2a-8dd4-a8fb61b77615",
        name: "solar_system",
        events: &[(0, "PrimitiveTypesTest")],
    },
];

/// By opcode.
const CLASSES: [Provider; 13] = [
    Provider {
        guid: "b3e675d7-2554-4f18-830b-2762732560de",
        name: "KernelTraceControl/ImageID",
        events: &[(0, ""), (32, "None"), (36, "DbgID_RSDS"), (37, "DbgID_ILRSDS"), (64, "FileVersion")],
    },
    Provider {
        guid: "bbccf6c1-6cd1-48c4-80ff-839482e37671",
        name: "KernelTraceControl/MetaData",
        events: &[(32, "EventInfo"), (33, "EventMapInfo")],
    },
    Provider {
        guid: "9b79ee91-b5fd-41c0-a243-4248e266e9d0",
        name: "Windows Kernel/SysConfig",
        events: &[
            (32, "BuildInfo"),
            (33, "SystemPaths"),
            (34, "UnknownVolume"),
            (35, "VolumeMapping"),
            (37, "Opcode(37)"),
        ],
    },
    Provider {
        guid: "68fdd900-4a3e-11d1-84f4-0000f80464e3",
        name: "Windows Kernel/EventTrace",
        events: &[(0, ""), (5, "Extension"), (8, "RundownComplete"), (32, "EndExtension")],
    },
    Provider {
        guid: "3d6fa8d4-fe05-11d0-9dda-00c04fd7ba7c",
        name: "Windows Kernel/DiskIO",
        events: &[
            (10, "Read"),
            (11, "Write"),
            (12, "ReadInit"),
            (13, "WriteInit"),
            (14, "FlushBuffers"),
            (15, "FlushInit"),
        ],
    },
    Provider {
        guid: "2cb15d1d-5fc1-11d2-abe1-00a0c911f518",
        name: "Windows Kernel/Image",
        events: &[(2, "Unload"), (3, "DCStart"), (4, "DCStop"), (10, "Load")],
    },
    Provider {
        guid: "3d6fa8d3-fe05-11d0-9dda-00c04fd7ba7c",
        name: "Windows Kernel/Memory",
        events: &[(32, "HardFault")],
    },
    Provider {
        guid: "ce1dbfb4-137e-4da6-87b0-3f59aa102cbc",
        name: "Windows Kernel/PerfInfo",
        events: &[(46, "Sample"), (73, "CollectionStart"), (74, "CollectionEnd")],
    },
    Provider {
        guid: "3d6fa8d0-fe05-11d0-9dda-00c04fd7ba7c",
        name: "Windows Kernel/Process",
        events: &[
            (1, "Start"),
            (2, "Stop"),
            (3, "DCStart"),
            (4, "DCStop"),
            (32, "PerfCtr"),
            (33, "PerfCtrRundown"),
            (39, "Defunct"),
        ],
    },
    Provider {
        guid: "01853a65-418f-4f36-aefc-dc0f1d2fd235",
        name: "Windows Kernel/SystemConfig",
        events: &[
            (10, "CPU"),
            (11, "PhyDisk"),
            (12, "LogDisk"),
            (13, "NIC"),
            (15, "Services"),
            (16, "Power"),
            (17, "Network"),
            (22, "PnP"),
            (23, "IDEChannel"),
        ],
    },
    Provider {
        guid: "9a280ac0-c8e0-11d1-84e2-00c04fb998a2",
        name: "Windows Kernel/TcpIp",
        events: &[(26, "SendIPV6"), (27, "RecvIPV6")],
    },
    Provider {
        guid: "3d6fa8d1-fe05-11d0-9dda-00c04fd7ba7c",
        name: "Windows Kernel/Thread",
        events: &[(1, "Start"), (2, "Stop")],
    },
    Provider {
        guid: "bf3a50c5-a9c9-4988-a005-2df0b7c80f80",
        name: "Windows Kernel/UdpIp",
        events: &[(10, "Send"), (11, "Recv"), (26, "SendIPV6"), (27, "RecvIPV6")],
    },
];

/// The name that `PerfView` has for a record; none for one that is not in its lists.
pub(crate) fn name(record: &EtwRecord<'_>) -> Option<String> {
    let guid = record.provider.to_string();
    let is_classic = record.schema == Schema::Classic;
    match (is_classic, &*guid, record.descriptor.opcode) {
        (true, "2cb15d1d-5fc1-11d2-abe1-00a0c911f518", 33) => {
            return Some("MSNT_SystemTrace/Image/KernelBase".into());
        }
        (true, "01853a65-418f-4f36-aefc-dc0f1d2fd235", 25) => {
            return Some("MSNT_SystemTrace/SystemConfig/Platform".into());
        }
        _ => {}
    }
    let providers = if is_classic { &CLASSES[..] } else { &MANIFESTS[..] };
    let number = if is_classic { u16::from(record.descriptor.opcode) } else { record.descriptor.id };
    let provider = providers.iter().find(|provider| provider.guid == guid)?;
    let (_, event) = provider.events.iter().find(|(id, _)| *id == number)?;
    Some(if event.is_empty() { provider.name.to_owned() } else { format!("{}/{event}", provider.name) })
}
