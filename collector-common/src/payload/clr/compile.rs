//! What is compiled, and what was: layouts of `R2R*`, `TieredCompilation*`, `MethodJit*`, `MethodDetails` and `TypeLoad*` in
//! `ClrEtwAll.man`.

use crate::event::Utf16Text;
use crate::layout;

layout! {
    /// Code of a method was asked for that was compiled ahead. Where there is none, the address is 0.
    ReadyToRunEntry<'a> {
        method: u64 = "MethodID";
        namespace: Utf16Text<'a> = "MethodNamespace";
        name: Utf16Text<'a> = "MethodName";
        signature: Utf16Text<'a> = "MethodSignature";
        entry: u64 = "EntryPoint";
        runtime: u16 = "ClrInstanceID";
    }

    /// Code of a method is looked for that was compiled ahead.
    ReadyToRunLookup {
        method: u64 = "MethodID";
        runtime: u16 = "ClrInstanceID";
    }

    /// How methods are compiled that are called often.
    TieredSettings {
        runtime: u16 = "ClrInstanceID";
        flags: u32 = "Flags";
    }

    /// Methods that are called often are compiled again.
    TieredResume {
        runtime: u16 = "ClrInstanceID";
        methods: u32 = "NewMethodCount";
    }

    /// They are about to be compiled in the background.
    TieredJitStart {
        runtime: u16 = "ClrInstanceID";
        pending: u32 = "PendingMethodCount";
    }

    /// Some of them were.
    TieredJitStop {
        runtime: u16 = "ClrInstanceID";
        pending: u32 = "PendingMethodCount";
        compiled: u32 = "JittedMethodCount";
    }

    /// Memory for a method's code.
    JitMemory {
        method: u64 = "MethodID";
        module: u64 = "ModuleID";
        code: u64 = "JitHotCodeRequestSize";
        data: u64 = "JitRODataRequestSize";
        allocated: u64 = "AllocatedSizeForJitCode";
        flags: u32 = "JitAllocFlag";
        runtime: u16 = "ClrInstanceID";
    }

    /// A method was put into another one.
    InliningSucceeded<'a> {
        namespace: Utf16Text<'a> = "MethodBeingCompiledNamespace";
        name: Utf16Text<'a> = "MethodBeingCompiledName";
        signature: Utf16Text<'a> = "MethodBeingCompiledNameSignature";
        inliner_namespace: Utf16Text<'a> = "InlinerNamespace";
        inliner_name: Utf16Text<'a> = "InlinerName";
        inliner_signature: Utf16Text<'a> = "InlinerNameSignature";
        inlinee_namespace: Utf16Text<'a> = "InlineeNamespace";
        inlinee_name: Utf16Text<'a> = "InlineeName";
        inlinee_signature: Utf16Text<'a> = "InlineeNameSignature";
        runtime: u16 = "ClrInstanceID";
    }

    /// What a method is of.
    MethodDetails<'a> {
        method: u64 = "MethodID";
        type_id: u64 = "TypeID";
        token: u32 = "MethodToken";
        parameters: u32 = "TypeParameterCount";
        module: u64 = "LoaderModuleID";
        types: &'a [u8] = "TypeParameters";
    }

    /// A type is about to be loaded.
    TypeLoadStart {
        load: u32 = "TypeLoadStartID";
        runtime: u16 = "ClrInstanceID";
    }

    /// A type was loaded.
    TypeLoadStop<'a> {
        load: u32 = "TypeLoadStartID";
        runtime: u16 = "ClrInstanceID";
        level: u16 = "LoadLevel";
        type_id: u64 = "TypeID";
        name: Utf16Text<'a> = "TypeName";
    }
}
