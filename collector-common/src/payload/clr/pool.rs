//! The pool of threads: layouts of `ThreadPool*` in `ClrEtwAll.man`.

use crate::layout;
use crate::payload::{Bool32, Pointer};

layout! {
    /// Threads of a pool.
    PoolThreads {
        active: u32 = "ActiveWorkerThreadCount";
        retired: u32 = "RetiredWorkerThreadCount";
        runtime: u16 = "ClrInstanceID";
    }

    /// What is done in a second, as it is measured to find how many threads are best.
    PoolThroughput {
        throughput: f64 = "Throughput";
        runtime: u16 = "ClrInstanceID";
    }

    /// The number of threads is another.
    PoolAdjustment {
        throughput: f64 = "AverageThroughput";
        threads: u32 = "NewWorkerThreadCount";
        reason: u32 = "Reason";
        runtime: u16 = "ClrInstanceID";
    }

    /// What led to that number.
    PoolStatistics {
        duration: f64 = "Duration";
        throughput: f64 = "Throughput";
        thread_wave: f64 = "ThreadWave";
        throughput_wave: f64 = "ThroughputWave";
        error: f64 = "ThroughputErrorEstimate";
        average_error: f64 = "AverageThroughputErrorEstimate";
        ratio: f64 = "ThroughputRatio";
        confidence: f64 = "Confidence";
        control: f64 = "NewControlSetting";
        magnitude: u16 = "NewThreadWaveMagnitude";
        runtime: u16 = "ClrInstanceID";
    }

    /// How many threads work.
    PoolCount {
        count: u32 = "Count";
        runtime: u16 = "ClrInstanceID";
    }

    /// Work is put into the queue, or taken out.
    PoolWork {
        work: Pointer = "WorkID";
        runtime: u16 = "ClrInstanceID";
    }

    /// An operation of input or output is taken out of the queue, or made.
    PoolIo {
        native: Pointer = "NativeOverlapped";
        overlapped: Pointer = "Overlapped";
        runtime: u16 = "ClrInstanceID";
    }

    /// An operation of input or output is put into the queue.
    PoolIoEnqueue {
        native: Pointer = "NativeOverlapped";
        overlapped: Pointer = "Overlapped";
        several: Bool32 = "MultiDequeues";
        runtime: u16 = "ClrInstanceID";
    }
}
