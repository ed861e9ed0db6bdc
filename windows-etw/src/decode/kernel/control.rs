//! What `KernelTraceControl.dll` adds when a trace is merged: classes `b3e675d7-…` (`ImageID`, what a debugger needs to find an
//! image's symbols) and `bbccf6c1-…` (`MetaData`, how events of manifests lie). Layouts are as PerfView reads them.

use collector_common::event::{Guid, Text, Utf16Text};
use collector_common::ids::Pid;

use collector_common::layout;
use collector_common::payload::Pointer;

layout! {
    /// An image by size and time, as symbol servers know it.
    ImageId<'a> {
        base: Pointer = "ImageBase";
        size: Pointer = "ImageSize";
        pid: Pid = "ProcessId";
        timestamp: u32 = "TimeDateStamp";
        name: Utf16Text<'a> = "OriginalFileName";
    }

    /// The PDB of an image: signature, age and path as the linker wrote them.
    DebugId<'a> {
        base: Pointer = "ImageBase";
        pid: Pid = "ProcessId";
        signature: Guid = "GuidSig";
        age: u32 = "Age";
        path: Text<'a> = "PdbFileName";
    }

    /// An image without a PDB.
    NoDebugId {
        base: Pointer = "ImageBase";
        pid: Pid = "ProcessId";
    }

    /// What an image says of itself.
    FileVersion<'a> {
        size: u32 = "ImageSize";
        timestamp: u32 = "TimeDateStamp";
        original_name: Utf16Text<'a> = "OrigFileName";
        description: Utf16Text<'a> = "FileDescription";
        version: Utf16Text<'a> = "FileVersion";
        binary_version: Utf16Text<'a> = "BinFileVersion";
        language: Utf16Text<'a> = "VerLanguage";
        product: Utf16Text<'a> = "ProductName";
        company: Utf16Text<'a> = "CompanyName";
        product_version: Utf16Text<'a> = "ProductVersion";
        file_id: Utf16Text<'a> = "FileId";
        program_id: Utf16Text<'a> = "ProgramId";
    }
}
