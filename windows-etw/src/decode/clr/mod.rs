//! Events of .NET's runtime, its rundown and its private provider, from the manifest `ClrEtwAll.man`. Names are as PerfView prints
//! them.

mod collect;
mod method;

pub use collect::{
    Bulk, ClrStack, ContentionStart, ContentionStop, Exception, GcAllocationTick, GcCreateSegment,
    GcDestroyHandle, GcFinalizeObject, GcFinalizersStop, GcFreeSegment, GcGenerationRange, GcHeapStats,
    GcMark, GcMarkWithType, GcPinObject, GcSampledAllocation, GcSetHandle, GcSettings, GcStart, GcStop,
    GcSuspend, GcSuspendV0, GcTriggered, IndexedBulk, Instance, MemoryPressure, PoolThreads, RuntimeStart,
    RuntimeThread, ThreadCreated, ThreadInDomain,
};
pub use method::{
    AppDomain, Assembly, Binding, DomainModule, FusionMessage, IlToNativeMap, JittingStarted, Method, Module,
    NamedMethod, NgenBind,
};

use collector_common::event::Guid;

use super::kernel::Opaque;
use super::table::{events, guid};

/// `Microsoft-Windows-DotNETRuntime`.
pub const RUNTIME: Guid = guid(0xe13c_0d23_ccbc_4e12_931b_d9cc_2eee_27e4);
/// `Microsoft-Windows-DotNETRuntimeRundown`.
pub const RUNDOWN: Guid = guid(0xa669_021c_c450_4609_a035_5af5_9af4_df18);
/// `Microsoft-Windows-DotNETRuntimePrivate`.
pub const PRIVATE: Guid = guid(0x763f_d754_7086_4dfe_95eb_c01a_46fa_f4ca);

events! {
    /// An event of .NET's runtime, decoded.
    ClrEvent by id(Id) {
        RUNTIME {
            1 => "GC/Start" GcStart(GcStart);
            2 => "GC/Stop" GcStop(GcStop);
            3 => "GC/RestartEEStop" GcRestartStop(Instance);
            4 => "GC/HeapStats" GcHeapStats(GcHeapStats);
            5 => "GC/CreateSegment" GcCreateSegment(GcCreateSegment);
            6 => "GC/FreeSegment" GcFreeSegment(GcFreeSegment);
            7 => "GC/RestartEEStart" GcRestartStart(Instance);
            8 => "GC/SuspendEEStop" GcSuspendStop(Instance);
            9 [0..=0] => "GC/SuspendEEStart" GcSuspendStartV0(GcSuspendV0);
            9 [1..=255] => "GC/SuspendEEStart" GcSuspendStart(GcSuspend);
            10 => "GC/AllocationTick" GcAllocationTick(GcAllocationTick<'a>);
            11 => "GC/CreateConcurrentThread" GcCreateConcurrentThread(Instance);
            12 => "GC/TerminateConcurrentThread" GcTerminateConcurrentThread(Instance);
            13 => "GC/FinalizersStop" GcFinalizersStop(GcFinalizersStop);
            14 => "GC/FinalizersStart" GcFinalizersStart(Instance);
            15 => "Type/BulkType" BulkType(Bulk<'a>);
            16 => "GC/BulkRootEdge" GcBulkRootEdge(IndexedBulk<'a>);
            17 => "GC/BulkRootConditionalWeakTableElementEdge" GcBulkWeakTableEdge(IndexedBulk<'a>);
            18 => "GC/BulkNode" GcBulkNode(IndexedBulk<'a>);
            19 => "GC/BulkEdge" GcBulkEdge(IndexedBulk<'a>);
            20 => "GC/SampledObjectAllocation" GcSampledAllocationHigh(GcSampledAllocation);
            21 => "GC/BulkSurvivingObjectRanges" GcBulkSurviving(IndexedBulk<'a>);
            22 => "GC/BulkMovedObjectRanges" GcBulkMoved(IndexedBulk<'a>);
            23 => "GC/GenerationRange" GcGenerationRange(GcGenerationRange);
            25 => "GC/MarkStackRoots" GcMarkStackRoots(GcMark);
            26 => "GC/MarkFinalizeQueueRoots" GcMarkFinalizeQueueRoots(GcMark);
            27 => "GC/MarkHandles" GcMarkHandles(GcMark);
            28 => "GC/MarkCards" GcMarkCards(GcMark);
            29 => "GC/FinalizeObject" GcFinalizeObject(GcFinalizeObject);
            30 => "GC/SetGCHandle" GcSetHandle(GcSetHandle);
            31 => "GC/DestoryGCHandle" GcDestroyHandle(GcDestroyHandle);
            32 => "GC/SampledObjectAllocation" GcSampledAllocationLow(GcSampledAllocation);
            33 => "GC/PinObjectAtGCTime" GcPinObject(GcPinObject<'a>);
            35 => "GC/Triggered" GcTriggered(GcTriggered);
            36 => "GC/BulkRootCCW" GcBulkRootCcw(Bulk<'a>);
            37 => "GC/BulkRCW" GcBulkRcw(Bulk<'a>);
            50 => "ThreadPoolWorkerThread/Start" PoolThreadStart(PoolThreads);
            51 => "ThreadPoolWorkerThread/Stop" PoolThreadStop(PoolThreads);
            52 => "ThreadPoolWorkerThreadRetirement/Start" PoolRetirementStart(PoolThreads);
            53 => "ThreadPoolWorkerThreadRetirement/Stop" PoolRetirementStop(PoolThreads);
            57 => "ThreadPoolWorkerThread/Wait" PoolThreadWait(PoolThreads);
            70 => "Thread/Creating" ThreadCreating(RuntimeThread);
            71 => "Thread/Running" ThreadRunning(RuntimeThread);
            80 => "Exception/Start" Exception(Exception<'a>);
            81 => "Contention/Start" ContentionStart(ContentionStart);
            82 => "ClrStack/Walk" Stack(ClrStack<'a>);
            85 => "AppDomainResourceManagement/ThreadCreated" ThreadCreated(ThreadCreated);
            86 => "AppDomainResourceManagement/ThreadTerminated" ThreadTerminated(ThreadInDomain);
            87 => "AppDomainResourceManagement/DomainEnter" ThreadDomainEnter(ThreadInDomain);
            91 => "Contention/Stop" ContentionStop(ContentionStop);
            141 => "Method/Load" MethodLoad(Method);
            142 => "Method/Unload" MethodUnload(Method);
            143 => "Method/LoadVerbose" NamedMethodLoad(NamedMethod<'a>);
            144 => "Method/UnloadVerbose" NamedMethodUnload(NamedMethod<'a>);
            145 => "Method/JittingStarted" JittingStarted(JittingStarted<'a>);
            151 => "Loader/DomainModuleLoad" DomainModuleLoad(DomainModule<'a>);
            152 => "Loader/ModuleLoad" ModuleLoad(Module<'a>);
            153 => "Loader/ModuleUnload" ModuleUnload(Module<'a>);
            154 => "Loader/AssemblyLoad" AssemblyLoad(Assembly<'a>);
            155 => "Loader/AssemblyUnload" AssemblyUnload(Assembly<'a>);
            156 => "Loader/AppDomainLoad" AppDomainLoad(AppDomain<'a>);
            157 => "Loader/AppDomainUnload" AppDomainUnload(AppDomain<'a>);
            187 => "Runtime/Start" RuntimeStart(RuntimeStart<'a>);
            190 => "Method/ILToNativeMap" IlToNativeMap(IlToNativeMap<'a>);
            200 => "GarbageCollection/IncreaseMemoryPressure" IncreaseMemoryPressure(MemoryPressure);
            201 => "GarbageCollection/DecreaseMemoryPressure" DecreaseMemoryPressure(MemoryPressure);
            202 => "GC/MarkWithType" GcMarkWithType(GcMarkWithType);
            204 => "GC/PerHeapHistory" GcPerHeapHistory(Opaque<'a>);
            205 => "GC/GlobalHeapHistory" GcGlobalHeapHistory(Opaque<'a>);
            208 => "GC/LOHCompact" GcLargeHeapCompact(Opaque<'a>);
            209 => "GC/FitBucketInfo" GcFitBuckets(Opaque<'a>);
        }
        RUNDOWN {
            0 => "ClrStack/Walk" RundownStack(ClrStack<'a>);
            141 => "Method/DCStart" MethodDcStart(Method);
            142 => "Method/DCStop" MethodDcStop(Method);
            143 => "Method/DCStartVerbose" NamedMethodDcStart(NamedMethod<'a>);
            144 => "Method/DCStopVerbose" NamedMethodDcStop(NamedMethod<'a>);
            145 => "Method/DCStartComplete" DcStartComplete(Instance);
            146 => "Method/DCStopComplete" DcStopComplete(Instance);
            147 => "Method/DCStartInit" DcStartInit(Instance);
            148 => "Method/DCStopInit" DcStopInit(Instance);
            149 => "Method/ILToNativeMapDCStart" IlToNativeMapDcStart(IlToNativeMap<'a>);
            150 => "Method/ILToNativeMapDCStop" IlToNativeMapDcStop(IlToNativeMap<'a>);
            151 => "Loader/DomainModuleDCStart" DomainModuleDcStart(DomainModule<'a>);
            152 => "Loader/DomainModuleDCStop" DomainModuleDcStop(DomainModule<'a>);
            153 => "Loader/ModuleDCStart" ModuleDcStart(Module<'a>);
            154 => "Loader/ModuleDCStop" ModuleDcStop(Module<'a>);
            155 => "Loader/AssemblyDCStart" AssemblyDcStart(Assembly<'a>);
            156 => "Loader/AssemblyDCStop" AssemblyDcStop(Assembly<'a>);
            157 => "Loader/AppDomainDCStart" AppDomainDcStart(AppDomain<'a>);
            158 => "Loader/AppDomainDCStop" AppDomainDcStop(AppDomain<'a>);
            159 => "Loader/ThreadDCStop" ThreadDcStop(ThreadCreated);
            187 => "Runtime/Start" RuntimeDcStart(RuntimeStart<'a>);
        }
        PRIVATE {
            2 => "GC/Settings" GcSettings(GcSettings);
            4 => "GC/PerHeapHistory" PrivatePerHeapHistory(Opaque<'a>);
            5 => "GC/GlobalHeapHistory" PrivateGlobalHeapHistory(Opaque<'a>);
            7 => "GC/MarkStackRoots" PrivateMarkStackRoots(Opaque<'a>);
            8 => "GC/MarkFinalizeQueueRoots" PrivateMarkFinalizeQueueRoots(Opaque<'a>);
            9 => "GC/MarkHandles" PrivateMarkHandles(Opaque<'a>);
            10 => "GC/MarkCards" PrivateMarkCards(Opaque<'a>);
            159 => "Binding/PolicyPhaseStart" PolicyPhaseStart(Binding<'a>);
            160 => "Binding/PolicyPhaseStop" PolicyPhaseStop(Binding<'a>);
            161 => "Binding/NgenPhaseStart" NgenPhaseStart(Binding<'a>);
            162 => "Binding/NgenPhaseStop" NgenPhaseStop(Binding<'a>);
            163 => "Binding/LoopupAndProbingPhaseStart" LookupPhaseStart(Binding<'a>);
            164 => "Binding/LookupAndProbingPhaseStop" LookupPhaseStop(Binding<'a>);
            165 => "Binding/LoaderPhaseStart" LoaderPhaseStart(Binding<'a>);
            166 => "Binding/LoaderPhaseStop" LoaderPhaseStop(Binding<'a>);
            167 => "Binding/PhaseStart" BindingPhaseStart(Binding<'a>);
            168 => "Binding/PhaseStop" BindingPhaseStop(Binding<'a>);
            169 => "Binding/DownloadPhaseStart" DownloadPhaseStart(Binding<'a>);
            170 => "Binding/DownloadPhaseStop" DownloadPhaseStop(Binding<'a>);
            171 => "Binding/LoaderAssemblyInitPhaseStart" AssemblyInitPhaseStart(Binding<'a>);
            172 => "Binding/LoaderAssemblyInitPhaseStop" AssemblyInitPhaseStop(Binding<'a>);
            173 => "Binding/LoaderMappingPhaseStart" MappingPhaseStart(Binding<'a>);
            174 => "Binding/LoaderMappingPhaseStop" MappingPhaseStop(Binding<'a>);
            175 => "Binding/LoaderDeliverEventPhaseStart" DeliverEventsPhaseStart(Binding<'a>);
            176 => "Binding/LoaderDeliverEventsPhaseStop" DeliverEventsPhaseStop(Binding<'a>);
            188 => "NgenBinder/NgenBind" NgenBind(NgenBind<'a>);
            196 => "Binding/FusionMessage" FusionMessage(FusionMessage<'a>);
        }
    }
}

/// The name of a provider; none where it is none of the three.
pub fn provider_name(provider: Guid) -> Option<&'static str> {
    Some(match provider {
        RUNTIME => "Microsoft-Windows-DotNETRuntime",
        RUNDOWN => "Microsoft-Windows-DotNETRuntimeRundown",
        PRIVATE => "Microsoft-Windows-DotNETRuntimePrivate",
        _ => return None,
    })
}
