//! Events of .NET's runtime, its rundown and its private provider, from the manifest `ClrEtwAll.man`. The first name of each is
//! as PerfView prints it, the second as the manifest has it.

mod collect;
mod compile;
mod method;
mod names;
mod pool;

pub use collect::{
    Bulk, ClrStack, ContentionStart, ContentionStop, Exception, ExceptionHandling, GcAllocationTick,
    GcCreateSegment, GcDestroyHandle, GcFinalizeObject, GcFinalizersStop, GcFreeSegment, GcGenerationRange,
    GcHeapHistory, GcHeapStats, GcHistory, GcJoin, GcMark, GcMarkWithType, GcPinObject, GcSampledAllocation,
    GcSetHandle, GcSettings, GcStart, GcStaticRoots, GcStop, GcSuspend, GcSuspendV0, GcTriggered,
    IndexedBulk, Instance, MemoryPressure, MemoryPressureGone, NoFields, RuntimeStart, RuntimeThread,
    ThreadCreated, ThreadInDomain,
};
pub use compile::{
    InliningSucceeded, JitMemory, MethodDetails, ReadyToRunEntry, ReadyToRunLookup, TieredJitStart,
    TieredJitStop, TieredResume, TieredSettings, TypeLoadStart, TypeLoadStop,
};
pub use method::{
    AppDomain, Assembly, AssemblyLoadStart, AssemblyLoadStop, Binding, DomainModule, FusionMessage,
    IlToNativeMap, JittingStarted, KnownPathProbed, Method, Module, NamedMethod, NgenBind,
};
pub use names::name_without_layout;
pub use pool::{
    PoolAdjustment, PoolCount, PoolIo, PoolIoEnqueue, PoolStatistics, PoolThreads, PoolThroughput, PoolWork,
};

use super::opaque::Opaque;
use super::table::guid;
use crate::event::Guid;
use crate::events;

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
            1 => "GC/Start" ("GCStart") GcStart(GcStart);
            2 => "GC/Stop" ("GCEnd") GcStop(GcStop);
            3 => "GC/RestartEEStop" ("GCRestartEEEnd") GcRestartStop(Instance);
            4 => "GC/HeapStats" ("GCHeapStats") GcHeapStats(GcHeapStats);
            5 => "GC/CreateSegment" ("GCCreateSegment") GcCreateSegment(GcCreateSegment);
            6 => "GC/FreeSegment" ("GCFreeSegment") GcFreeSegment(GcFreeSegment);
            7 => "GC/RestartEEStart" ("GCRestartEEBegin") GcRestartStart(Instance);
            8 => "GC/SuspendEEStop" ("GCSuspendEEEnd") GcSuspendStop(Instance);
            9 [0..=0] => "GC/SuspendEEStart" ("GCSuspendEEBegin") GcSuspendStartV0(GcSuspendV0);
            9 [1..=255] => "GC/SuspendEEStart" ("GCSuspendEEBegin") GcSuspendStart(GcSuspend);
            10 => "GC/AllocationTick" ("GCAllocationTick") GcAllocationTick(GcAllocationTick<'a>);
            11 => "GC/CreateConcurrentThread" ("GCCreateConcurrentThread") GcCreateConcurrentThread(Instance);
            12 => "GC/TerminateConcurrentThread" ("GCTerminateConcurrentThread") GcTerminateConcurrentThread(Instance);
            13 => "GC/FinalizersStop" ("GCFinalizersEnd") GcFinalizersStop(GcFinalizersStop);
            14 => "GC/FinalizersStart" ("GCFinalizersBegin") GcFinalizersStart(Instance);
            15 => "Type/BulkType" ("BulkType") BulkType(Bulk<'a>);
            16 => "GC/BulkRootEdge" ("GCBulkRootEdge") GcBulkRootEdge(IndexedBulk<'a>);
            17 => "GC/BulkRootConditionalWeakTableElementEdge" ("GCBulkRootConditionalWeakTableElementEdge") GcBulkWeakTableEdge(IndexedBulk<'a>);
            18 => "GC/BulkNode" ("GCBulkNode") GcBulkNode(IndexedBulk<'a>);
            19 => "GC/BulkEdge" ("GCBulkEdge") GcBulkEdge(IndexedBulk<'a>);
            20 => "GC/SampledObjectAllocation" ("GCSampledObjectAllocationHigh") GcSampledAllocationHigh(GcSampledAllocation);
            21 => "GC/BulkSurvivingObjectRanges" ("GCBulkSurvivingObjectRanges") GcBulkSurviving(IndexedBulk<'a>);
            22 => "GC/BulkMovedObjectRanges" ("GCBulkMovedObjectRanges") GcBulkMoved(IndexedBulk<'a>);
            23 => "GC/GenerationRange" ("GCGenerationRange") GcGenerationRange(GcGenerationRange);
            25 => "GC/MarkStackRoots" ("GCMarkStackRoots") GcMarkStackRoots(GcMark);
            26 => "GC/MarkFinalizeQueueRoots" ("GCMarkFinalizeQueueRoots") GcMarkFinalizeQueueRoots(GcMark);
            27 => "GC/MarkHandles" ("GCMarkHandles") GcMarkHandles(GcMark);
            28 => "GC/MarkCards" ("GCMarkOlderGenerationRoots") GcMarkCards(GcMark);
            29 => "GC/FinalizeObject" ("FinalizeObject") GcFinalizeObject(GcFinalizeObject);
            30 => "GC/SetGCHandle" ("SetGCHandle") GcSetHandle(GcSetHandle);
            31 => "GC/DestoryGCHandle" ("DestroyGCHandle") GcDestroyHandle(GcDestroyHandle);
            32 => "GC/SampledObjectAllocation" ("GCSampledObjectAllocationLow") GcSampledAllocationLow(GcSampledAllocation);
            33 => "GC/PinObjectAtGCTime" ("PinObjectAtGCTime") GcPinObject(GcPinObject<'a>);
            35 => "GC/Triggered" ("GCTriggered") GcTriggered(GcTriggered);
            36 => "GC/BulkRootCCW" ("GCBulkRootCCW") GcBulkRootCcw(Bulk<'a>);
            37 => "GC/BulkRCW" ("GCBulkRCW") GcBulkRcw(Bulk<'a>);
            38 => "GC/BulkRootStaticVar" ("GCBulkRootStaticVar") GcBulkStaticRoots(GcStaticRoots<'a>);
            50 => "ThreadPoolWorkerThread/Start" ("ThreadPoolWorkerThreadStart") PoolThreadStart(PoolThreads);
            51 => "ThreadPoolWorkerThread/Stop" ("ThreadPoolWorkerThreadStop") PoolThreadStop(PoolThreads);
            52 => "ThreadPoolWorkerThreadRetirement/Start" ("ThreadPoolWorkerThreadRetirementStart") PoolRetirementStart(PoolThreads);
            53 => "ThreadPoolWorkerThreadRetirement/Stop" ("ThreadPoolWorkerThreadRetirementStop") PoolRetirementStop(PoolThreads);
            54 => "ThreadPoolWorkerThreadAdjustment/Sample" ("ThreadPoolWorkerThreadAdjustmentSample") PoolThroughput(PoolThroughput);
            55 => "ThreadPoolWorkerThreadAdjustment/Adjustment" ("ThreadPoolWorkerThreadAdjustmentAdjustment") PoolAdjustment(PoolAdjustment);
            56 => "ThreadPoolWorkerThreadAdjustment/Stats" ("ThreadPoolWorkerThreadAdjustmentStats") PoolStatistics(PoolStatistics);
            57 => "ThreadPoolWorkerThread/Wait" ("ThreadPoolWorkerThreadWait") PoolThreadWait(PoolThreads);
            60 => "ThreadPoolWorkingThreadCount/Start" ("ThreadPoolWorkingThreadCount") PoolCount(PoolCount);
            61 => "ThreadPool/Enqueue" ("ThreadPoolEnqueue") PoolEnqueue(PoolWork);
            62 => "ThreadPool/Dequeue" ("ThreadPoolDequeue") PoolDequeue(PoolWork);
            63 => "ThreadPool/IOEnqueue" ("ThreadPoolIOEnqueue") PoolIoEnqueue(PoolIoEnqueue);
            64 => "ThreadPool/IODequeue" ("ThreadPoolIODequeue") PoolIoDequeue(PoolIo);
            65 => "ThreadPool/IOPack" ("ThreadPoolIOPack") PoolIoPack(PoolIo);
            70 => "Thread/Creating" ("ThreadCreating") ThreadCreating(RuntimeThread);
            71 => "Thread/Running" ("ThreadRunning") ThreadRunning(RuntimeThread);
            72 => "Method/MethodDetails" ("MethodDetails") MethodDetails(MethodDetails<'a>);
            73 => "TypeLoad/Start" ("TypeLoadStart") TypeLoadStart(TypeLoadStart);
            74 => "TypeLoad/Stop" ("TypeLoadStop") TypeLoadStop(TypeLoadStop<'a>);
            80 => "Exception/Start" ("ExceptionThrown") Exception(Exception<'a>);
            81 => "Contention/Start" ("ContentionStart") ContentionStart(ContentionStart);
            82 => "ClrStack/Walk" ("CLRStackWalk") Stack(ClrStack<'a>);
            85 => "AppDomainResourceManagement/ThreadCreated" ("ThreadCreated") ThreadCreated(ThreadCreated);
            86 => "AppDomainResourceManagement/ThreadTerminated" ("ThreadTerminated") ThreadTerminated(ThreadInDomain);
            87 => "AppDomainResourceManagement/DomainEnter" ("ThreadDomainEnter") ThreadDomainEnter(ThreadInDomain);
            91 => "Contention/Stop" ("ContentionStop") ContentionStop(ContentionStop);
            141 => "Method/Load" ("MethodLoad") MethodLoad(Method);
            142 => "Method/Unload" ("MethodUnload") MethodUnload(Method);
            143 => "Method/LoadVerbose" ("MethodLoadVerbose") NamedMethodLoad(NamedMethod<'a>);
            144 => "Method/UnloadVerbose" ("MethodUnloadVerbose") NamedMethodUnload(NamedMethod<'a>);
            145 => "Method/JittingStarted" ("MethodJittingStarted") JittingStarted(JittingStarted<'a>);
            146 => "Method/MemoryAllocatedForJitCode" ("MethodJitMemoryAllocatedForCode") JitMemory(JitMemory);
            151 => "Loader/DomainModuleLoad" ("DomainModuleLoad") DomainModuleLoad(DomainModule<'a>);
            152 => "Loader/ModuleLoad" ("ModuleLoad") ModuleLoad(Module<'a>);
            153 => "Loader/ModuleUnload" ("ModuleUnload") ModuleUnload(Module<'a>);
            154 => "Loader/AssemblyLoad" ("AssemblyLoad") AssemblyLoad(Assembly<'a>);
            155 => "Loader/AssemblyUnload" ("AssemblyUnload") AssemblyUnload(Assembly<'a>);
            156 => "Loader/AppDomainLoad" ("AppDomainLoad") AppDomainLoad(AppDomain<'a>);
            157 => "Loader/AppDomainUnload" ("AppDomainUnload") AppDomainUnload(AppDomain<'a>);
            159 => "Method/R2RGetEntryPoint" ("R2RGetEntryPoint") ReadyToRunEntry(ReadyToRunEntry<'a>);
            160 => "Method/R2RGetEntryPointStart" ("R2RGetEntryPointStart") ReadyToRunLookup(ReadyToRunLookup);
            185 => "Method/InliningSucceeded" ("MethodJitInliningSucceeded") InliningSucceeded(InliningSucceeded<'a>);
            187 => "Runtime/Start" ("RuntimeInformationStart") RuntimeStart(RuntimeStart<'a>);
            190 => "Method/ILToNativeMap" ("MethodILToNativeMap") IlToNativeMap(IlToNativeMap<'a>);
            200 => "GarbageCollection/IncreaseMemoryPressure" ("IncreaseMemoryPressure") IncreaseMemoryPressure(MemoryPressure);
            201 => "GarbageCollection/DecreaseMemoryPressure" ("DecreaseMemoryPressure") DecreaseMemoryPressure(MemoryPressureGone);
            202 => "GC/MarkWithType" ("GCMarkWithType") GcMarkWithType(GcMarkWithType);
            203 [2..=255] => "GC/Join" ("GCJoin") GcJoin(GcJoin);
            204 [0..=2] => "GC/PerHeapHistory" ("GCPerHeapHistory") GcPerHeapHistoryV0(Opaque<'a>);
            204 [3..=255] => "GC/PerHeapHistory" ("GCPerHeapHistory") GcPerHeapHistory(GcHeapHistory<'a>);
            205 [0..=1] => "GC/GlobalHeapHistory" ("GCGlobalHeapHistory") GcGlobalHeapHistoryV0(Opaque<'a>);
            205 [2..=255] => "GC/GlobalHeapHistory" ("GCGlobalHeapHistory") GcGlobalHeapHistory(GcHistory);
            208 => "GC/LOHCompact" ("GCLOHCompact") GcLargeHeapCompact(Opaque<'a>);
            209 => "GC/FitBucketInfo" ("GCFitBucketInfo") GcFitBuckets(Opaque<'a>);
            250 => "ExceptionCatch/Start" ("ExceptionCatchStart") ExceptionCatchStart(ExceptionHandling<'a>);
            251 => "ExceptionCatch/Stop" ("ExceptionCatchStop") ExceptionCatchStop(NoFields);
            252 => "ExceptionFinally/Start" ("ExceptionFinallyStart") ExceptionFinallyStart(ExceptionHandling<'a>);
            253 => "ExceptionFinally/Stop" ("ExceptionFinallyStop") ExceptionFinallyStop(NoFields);
            254 => "ExceptionFilter/Start" ("ExceptionFilterStart") ExceptionFilterStart(ExceptionHandling<'a>);
            255 => "ExceptionFilter/Stop" ("ExceptionFilterStop") ExceptionFilterStop(NoFields);
            256 => "Exception/Stop" ("ExceptionThrownStop") ExceptionStop(NoFields);
            280 => "TieredCompilation/Settings" ("TieredCompilationSettings") TieredSettings(TieredSettings);
            281 => "TieredCompilation/Pause" ("TieredCompilationPause") TieredPause(Instance);
            282 => "TieredCompilation/Resume" ("TieredCompilationResume") TieredResume(TieredResume);
            283 => "TieredCompilation/BackgroundJitStart" ("TieredCompilationBackgroundJitStart") TieredJitStart(TieredJitStart);
            284 => "TieredCompilation/BackgroundJitStop" ("TieredCompilationBackgroundJitStop") TieredJitStop(TieredJitStop);
            290 => "AssemblyLoader/Start" ("AssemblyLoadStart") AssemblyLoadStart(AssemblyLoadStart<'a>);
            291 => "AssemblyLoader/Stop" ("AssemblyLoadStop") AssemblyLoadStop(AssemblyLoadStop<'a>);
            296 => "AssemblyLoader/KnownPathProbed" ("KnownPathProbed") KnownPathProbed(KnownPathProbed<'a>);
        }
        RUNDOWN {
            0 => "ClrStack/Walk" ("CLRStackWalkDCStart") RundownStack(ClrStack<'a>);
            141 => "Method/DCStart" ("MethodDCStart") MethodDcStart(Method);
            142 => "Method/DCStop" ("MethodDCEnd") MethodDcStop(Method);
            143 => "Method/DCStartVerbose" ("MethodDCStartVerbose") NamedMethodDcStart(NamedMethod<'a>);
            144 => "Method/DCStopVerbose" ("MethodDCEndVerbose") NamedMethodDcStop(NamedMethod<'a>);
            145 => "Method/DCStartComplete" ("DCStartComplete") DcStartComplete(Instance);
            146 => "Method/DCStopComplete" ("DCEndComplete") DcStopComplete(Instance);
            147 => "Method/DCStartInit" ("DCStartInit") DcStartInit(Instance);
            148 => "Method/DCStopInit" ("DCEndInit") DcStopInit(Instance);
            149 => "Method/ILToNativeMapDCStart" ("MethodDCStartILToNativeMap") IlToNativeMapDcStart(IlToNativeMap<'a>);
            150 => "Method/ILToNativeMapDCStop" ("MethodDCEndILToNativeMap") IlToNativeMapDcStop(IlToNativeMap<'a>);
            151 => "Loader/DomainModuleDCStart" ("DomainModuleDCStart") DomainModuleDcStart(DomainModule<'a>);
            152 => "Loader/DomainModuleDCStop" ("DomainModuleDCEnd") DomainModuleDcStop(DomainModule<'a>);
            153 => "Loader/ModuleDCStart" ("ModuleDCStart") ModuleDcStart(Module<'a>);
            154 => "Loader/ModuleDCStop" ("ModuleDCEnd") ModuleDcStop(Module<'a>);
            155 => "Loader/AssemblyDCStart" ("AssemblyDCStart") AssemblyDcStart(Assembly<'a>);
            156 => "Loader/AssemblyDCStop" ("AssemblyDCEnd") AssemblyDcStop(Assembly<'a>);
            157 => "Loader/AppDomainDCStart" ("AppDomainDCStart") AppDomainDcStart(AppDomain<'a>);
            158 => "Loader/AppDomainDCStop" ("AppDomainDCEnd") AppDomainDcStop(AppDomain<'a>);
            159 => "Loader/ThreadDCStop" ("ThreadDC") ThreadDcStop(ThreadCreated);
            187 => "Runtime/Start" ("RuntimeInformationDCStart") RuntimeDcStart(RuntimeStart<'a>);
            280 => "TieredCompilation/SettingsDCStart" ("TieredCompilationSettingsDCStart") TieredSettingsDcStart(TieredSettings);
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

/// The provider of a name; none where it is none of the three.
pub fn provider_of(name: &str) -> Option<Guid> {
    [RUNTIME, RUNDOWN, PRIVATE].into_iter().find(|provider| provider_name(*provider) == Some(name))
}
