//! Methods, and what is loaded: layouts of `MethodLoad*`, `MethodJit*`, `ModuleLoad*`, `AssemblyLoad*`, `AppDomainLoad*` and of the
//! rundown, which are the same, in `ClrEtwAll.man`.

use crate::event::{Guid, Utf16Text};

use crate::layout;
use crate::payload::Bool32;

layout! {
    /// Code of a method is made, given up, or there when a session begins or ends.
    Method {
        method: u64 = "MethodID";
        module: u64 = "ModuleID";
        start: u64 = "MethodStartAddress";
        size: u32 = "MethodSize";
        token: u32 = "MethodToken";
        flags: u32 = "MethodFlags";
        runtime: u16 = "ClrInstanceID" [1..=255];
        rejit: u64 = "ReJITID" [2..=255];
    }

    /// The same, with its name.
    NamedMethod<'a> {
        method: u64 = "MethodID";
        module: u64 = "ModuleID";
        start: u64 = "MethodStartAddress";
        size: u32 = "MethodSize";
        token: u32 = "MethodToken";
        flags: u32 = "MethodFlags";
        namespace: Utf16Text<'a> = "MethodNamespace";
        name: Utf16Text<'a> = "MethodName";
        signature: Utf16Text<'a> = "MethodSignature";
        runtime: u16 = "ClrInstanceID" [1..=255];
        rejit: u64 = "ReJITID" [2..=255];
    }

    /// A method is about to be compiled.
    JittingStarted<'a> {
        method: u64 = "MethodID";
        module: u64 = "ModuleID";
        token: u32 = "MethodToken";
        il_size: u32 = "MethodILSize";
        namespace: Utf16Text<'a> = "MethodNamespace";
        name: Utf16Text<'a> = "MethodName";
        signature: Utf16Text<'a> = "MethodSignature";
        runtime: u16 = "ClrInstanceID" [1..=255];
    }

    /// Which instruction is which of the intermediate language. Behind the count are as many offsets (u32) in that, as many in the code, and the runtime's number
    /// (u16).
    IlToNativeMap<'a> {
        method: u64 = "MethodID";
        rejit: u64 = "ReJITID";
        extent: u8 = "MethodExtent";
        entries: u16 = "CountOfMapEntries";
        offsets: &'a [u8] = "Offsets";
    }

    /// A module is loaded, unloaded, or there when a session begins or ends, with what symbols it has.
    Module<'a> {
        module: u64 = "ModuleID";
        assembly: u64 = "AssemblyID";
        flags: u32 = "ModuleFlags";
        reserved: u32 = "Reserved1";
        il_path: Utf16Text<'a> = "ModuleILPath";
        native_path: Utf16Text<'a> = "ModuleNativePath";
        runtime: u16 = "ClrInstanceID" [1..=255];
        managed_pdb: Guid = "ManagedPdbSignature" [2..=255];
        managed_pdb_age: u32 = "ManagedPdbAge" [2..=255];
        managed_pdb_path: Utf16Text<'a> = "ManagedPdbBuildPath" [2..=255];
        native_pdb: Guid = "NativePdbSignature" [2..=255];
        native_pdb_age: u32 = "NativePdbAge" [2..=255];
        native_pdb_path: Utf16Text<'a> = "NativePdbBuildPath" [2..=255];
    }

    /// A module in an application domain.
    DomainModule<'a> {
        module: u64 = "ModuleID";
        assembly: u64 = "AssemblyID";
        domain: u64 = "AppDomainID";
        flags: u32 = "ModuleFlags";
        reserved: u32 = "Reserved1";
        il_path: Utf16Text<'a> = "ModuleILPath";
        native_path: Utf16Text<'a> = "ModuleNativePath";
        runtime: u16 = "ClrInstanceID" [1..=255];
    }

    /// An assembly.
    Assembly<'a> {
        assembly: u64 = "AssemblyID";
        domain: u64 = "AppDomainID";
        binding: u64 = "BindingID" [1..=255];
        flags: u32 = "AssemblyFlags";
        name: Utf16Text<'a> = "FullyQualifiedAssemblyName";
        runtime: u16 = "ClrInstanceID" [1..=255];
    }

    /// An application domain.
    AppDomain<'a> {
        domain: u64 = "AppDomainID";
        flags: u32 = "AppDomainFlags";
        name: Utf16Text<'a> = "AppDomainName";
        index: u32 = "AppDomainIndex" [1..=255];
        runtime: u16 = "ClrInstanceID" [1..=255];
    }

    /// Names of what the runtime binds, of its private provider.
    Binding<'a> {
        domain: u32 = "AppDomainID";
        context: u32 = "LoadContextID";
        from_cache: u32 = "FromLoaderCache";
        dynamic: u32 = "DynamicLoad";
        code_base: Utf16Text<'a> = "AssemblyCodebase";
        name: Utf16Text<'a> = "AssemblyName";
        runtime: u16 = "ClrInstanceID";
    }

    /// A line of the binder's log, of the private provider.
    FusionMessage<'a> {
        runtime: u16 = "ClrInstanceID";
        prepend: Bool32 = "Prepend";
        message: Utf16Text<'a> = "Message";
    }

    /// Which native image was bound, of the private provider.
    NgenBind<'a> {
        runtime: u16 = "ClrInstanceID";
        binding: u64 = "BindingID";
        reason: u32 = "ReasonCode";
        name: Utf16Text<'a> = "AssemblyName";
    }

    /// An assembly is about to be found.
    AssemblyLoadStart<'a> {
        runtime: u16 = "ClrInstanceID";
        name: Utf16Text<'a> = "AssemblyName";
        path: Utf16Text<'a> = "AssemblyPath";
        requesting: Utf16Text<'a> = "RequestingAssembly";
        context: Utf16Text<'a> = "AssemblyLoadContext";
        requesting_context: Utf16Text<'a> = "RequestingAssemblyLoadContext";
    }

    /// An assembly was found, or not.
    AssemblyLoadStop<'a> {
        runtime: u16 = "ClrInstanceID";
        name: Utf16Text<'a> = "AssemblyName";
        path: Utf16Text<'a> = "AssemblyPath";
        requesting: Utf16Text<'a> = "RequestingAssembly";
        context: Utf16Text<'a> = "AssemblyLoadContext";
        requesting_context: Utf16Text<'a> = "RequestingAssemblyLoadContext";
        is_found: Bool32 = "Success";
        found_name: Utf16Text<'a> = "ResultAssemblyName";
        found_path: Utf16Text<'a> = "ResultAssemblyPath";
        is_cached: Bool32 = "Cached";
    }

    /// A path was tried.
    KnownPathProbed<'a> {
        runtime: u16 = "ClrInstanceID";
        path: Utf16Text<'a> = "FilePath";
        source: u16 = "Source";
        result: i32 = "Result";
    }
}
