//! The types of a file: what constants and events are made of. Types of events of samples are in `kinds`.

use std::borrow::Cow;

/// What a type is, beside its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Super {
    None,
    /// Readers show it as its only field.
    Simple,
    Event,
    Annotation,
    /// An annotation that says what a field's number means, for readers that know how to show it.
    ContentType,
}

/// A type.
#[derive(Clone, Debug)]
pub(super) struct Class {
    pub(super) id: u64,
    pub(super) name: Cow<'static, str>,
    pub(super) super_type: Super,
    pub(super) label: Cow<'static, str>,
    pub(super) category: &'static [&'static str],
    pub(super) fields: Vec<Field>,
    /// Names and labels of further ones, each a number of 64 bits.
    pub(super) numbers: Vec<(String, String)>,
}

/// How a field's value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Inline,
    /// As the number of a constant.
    Constant,
    /// As a count, and so many values.
    List,
}

/// What a number means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    Plain,
    Unsigned,
    /// A time, in ticks.
    Time,
    UnixMilliseconds,
    /// A duration, in ticks.
    Ticks,
    Nanoseconds,
    Milliseconds,
    Bytes,
    Address,
}

/// A field.
#[derive(Clone, Copy, Debug)]
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) label: &'static str,
    pub(super) class: u64,
    pub(super) shape: Shape,
    pub(super) content: Content,
}

/// Numbers of types. What is not an event has those below 100.
pub(super) mod id {
    pub(in super::super) const CHECKPOINT: u64 = 1;
    pub(in super::super) const BOOLEAN: u64 = 4;
    pub(in super::super) const INT: u64 = 5;
    pub(in super::super) const LONG: u64 = 6;
    pub(in super::super) const STRING: u64 = 20;
    pub(in super::super) const CLASS: u64 = 21;
    pub(in super::super) const THREAD: u64 = 22;
    pub(in super::super) const CLASS_LOADER: u64 = 23;
    pub(in super::super) const FRAME_TYPE: u64 = 24;
    pub(in super::super) const THREAD_STATE: u64 = 25;
    pub(in super::super) const STACK_TRACE: u64 = 26;
    pub(in super::super) const STACK_FRAME: u64 = 27;
    pub(in super::super) const METHOD: u64 = 28;
    pub(in super::super) const PACKAGE: u64 = 29;
    pub(in super::super) const SYMBOL: u64 = 30;
    pub(in super::super) const THREAD_GROUP: u64 = 31;
    pub(in super::super) const LABEL: u64 = 40;
    pub(in super::super) const CATEGORY: u64 = 41;
    pub(in super::super) const TIMESTAMP: u64 = 42;
    pub(in super::super) const TIMESPAN: u64 = 43;
    pub(in super::super) const DATA_AMOUNT: u64 = 44;
    pub(in super::super) const MEMORY_ADDRESS: u64 = 45;
    pub(in super::super) const UNSIGNED: u64 = 46;
    pub(in super::super) const CONTENT_TYPE: u64 = 47;
    pub(in super::super) const ACTIVE_RECORDING: u64 = 101;
    pub(in super::super) const ACTIVE_SETTING: u64 = 102;
    pub(in super::super) const CPU_INFORMATION: u64 = 103;
    pub(in super::super) const OS_INFORMATION: u64 = 104;
    pub(in super::super) const JVM_INFORMATION: u64 = 105;
    pub(in super::super) const NATIVE_LIBRARY: u64 = 106;
    pub(in super::super) const RECORDING: u64 = 107;
    pub(in super::super) const NOTE: u64 = 108;
    pub(in super::super) const PROCESS: u64 = 109;
    pub(in super::super) const PROGRAM: u64 = 110;
    pub(in super::super) const SPAN: u64 = 111;
    /// The type of the first kind of samples; those of others follow.
    pub(in super::super) const FIRST_KIND: u64 = 200;
}

impl Field {
    pub(super) const fn new(name: &'static str, label: &'static str, class: u64) -> Self {
        Self { name, label, class, shape: Shape::Inline, content: Content::Plain }
    }

    /// A number of 64 bits.
    pub(super) const fn long(name: &'static str, label: &'static str, content: Content) -> Self {
        Self { content, ..Self::new(name, label, id::LONG) }
    }

    pub(super) const fn int(name: &'static str, label: &'static str) -> Self {
        Self { content: Content::Unsigned, ..Self::new(name, label, id::INT) }
    }

    pub(super) const fn text(name: &'static str, label: &'static str) -> Self {
        Self::new(name, label, id::STRING)
    }

    pub(super) const fn constant(name: &'static str, label: &'static str, class: u64) -> Self {
        Self { shape: Shape::Constant, ..Self::new(name, label, class) }
    }

    /// What each event begins with.
    pub(super) const START: Self = Self::long("startTime", "Start Time", Content::Time);
    pub(super) const DURATION: Self = Self::long("duration", "Duration", Content::Ticks);
    pub(super) const EVENT_THREAD: Self = Self::constant("eventThread", "Event Thread", id::THREAD);
    pub(super) const SAMPLED_THREAD: Self = Self::constant("sampledThread", "Thread", id::THREAD);
    pub(super) const STACK_TRACE: Self = Self::constant("stackTrace", "Stack Trace", id::STACK_TRACE);
    pub(super) const STATE: Self = Self::constant("state", "Thread State", id::THREAD_STATE);
}

/// A type that is no event.
fn plain(id: u64, name: &'static str, super_type: Super, fields: Vec<Field>) -> Class {
    Class { id, name: name.into(), super_type, label: Cow::default(), category: &[], fields, numbers: vec![] }
}

/// A type of events.
pub(super) fn event(
    id: u64,
    name: impl Into<Cow<'static, str>>,
    label: impl Into<Cow<'static, str>>,
    category: &'static [&'static str],
    fields: &[Field],
) -> Class {
    let fields = [&[Field::START], fields].concat();
    Class {
        id,
        name: name.into(),
        super_type: Super::Event,
        label: label.into(),
        category,
        fields,
        numbers: vec![],
    }
}

/// All types but those of events of samples.
pub(super) fn fixed() -> Vec<Class> {
    let mut classes = values();
    classes.extend(annotations());
    classes.extend(known_events());
    classes.extend(own_events());
    classes
}

fn values() -> Vec<Class> {
    let frames = Field { shape: Shape::List, ..Field::new("frames", "Stack Frames", id::STACK_FRAME) };
    vec![
        plain(id::BOOLEAN, "boolean", Super::None, vec![]),
        plain(id::INT, "int", Super::None, vec![]),
        plain(id::LONG, "long", Super::None, vec![]),
        plain(id::STRING, "java.lang.String", Super::None, vec![]),
        plain(
            id::CLASS,
            "java.lang.Class",
            Super::None,
            vec![
                Field::constant("classLoader", "Class Loader", id::CLASS_LOADER),
                Field::constant("name", "Name", id::SYMBOL),
                Field::constant("package", "Package", id::PACKAGE),
                Field::new("modifiers", "Access Modifiers", id::INT),
            ],
        ),
        plain(
            id::THREAD,
            "java.lang.Thread",
            Super::None,
            vec![
                Field::text("osName", "OS Thread Name"),
                Field::long("osThreadId", "OS Thread Id", Content::Plain),
                Field::text("javaName", "Java Thread Name"),
                Field::long("javaThreadId", "Java Thread Id", Content::Plain),
                Field::constant("group", "Java Thread Group", id::THREAD_GROUP),
                Field::long("processId", "Process Id", Content::Plain),
            ],
        ),
        plain(
            id::THREAD_GROUP,
            "jdk.types.ThreadGroup",
            Super::None,
            vec![Field::constant("parent", "Parent", id::THREAD_GROUP), Field::text("name", "Name")],
        ),
        plain(
            id::CLASS_LOADER,
            "jdk.types.ClassLoader",
            Super::None,
            vec![Field::constant("type", "Type", id::CLASS), Field::constant("name", "Name", id::SYMBOL)],
        ),
        plain(id::FRAME_TYPE, "jdk.types.FrameType", Super::Simple, vec![Field::text("description", "")]),
        plain(id::THREAD_STATE, "jdk.types.ThreadState", Super::Simple, vec![Field::text("name", "")]),
        plain(
            id::STACK_TRACE,
            "jdk.types.StackTrace",
            Super::None,
            vec![Field::new("truncated", "Truncated", id::BOOLEAN), frames],
        ),
        plain(
            id::STACK_FRAME,
            "jdk.types.StackFrame",
            Super::None,
            vec![
                Field::constant("method", "Java Method", id::METHOD),
                Field::new("lineNumber", "Line Number", id::INT),
                Field::new("bytecodeIndex", "Bytecode Index", id::INT),
                Field::constant("type", "Frame Type", id::FRAME_TYPE),
            ],
        ),
        plain(
            id::METHOD,
            "jdk.types.Method",
            Super::None,
            vec![
                Field::constant("type", "Type", id::CLASS),
                Field::constant("name", "Name", id::SYMBOL),
                Field::constant("descriptor", "Descriptor", id::SYMBOL),
                Field::new("modifiers", "Access Modifiers", id::INT),
                Field::new("hidden", "Hidden", id::BOOLEAN),
            ],
        ),
        plain(
            id::PACKAGE,
            "jdk.types.Package",
            Super::None,
            vec![Field::constant("name", "Name", id::SYMBOL)],
        ),
        plain(id::SYMBOL, "jdk.types.Symbol", Super::Simple, vec![Field::text("string", "")]),
    ]
}

fn annotations() -> Vec<Class> {
    let value = || vec![Field::text("value", "")];
    let values = Field { shape: Shape::List, ..Field::text("value", "") };
    vec![
        plain(id::LABEL, "jdk.jfr.Label", Super::Annotation, value()),
        plain(id::CATEGORY, "jdk.jfr.Category", Super::Annotation, vec![values]),
        plain(id::CONTENT_TYPE, "jdk.jfr.ContentType", Super::Annotation, vec![]),
        plain(id::TIMESTAMP, "jdk.jfr.Timestamp", Super::ContentType, value()),
        plain(id::TIMESPAN, "jdk.jfr.Timespan", Super::ContentType, value()),
        plain(id::DATA_AMOUNT, "jdk.jfr.DataAmount", Super::ContentType, value()),
        plain(id::MEMORY_ADDRESS, "jdk.jfr.MemoryAddress", Super::ContentType, vec![]),
        plain(id::UNSIGNED, "jdk.jfr.Unsigned", Super::ContentType, vec![]),
    ]
}

/// Events that readers look for.
fn known_events() -> Vec<Class> {
    const SYSTEM: &[&str] = &["Operating System"];
    const RECORDER: &[&str] = &["Flight Recorder"];
    vec![
        event(
            id::ACTIVE_RECORDING,
            "jdk.ActiveRecording",
            "Recording",
            RECORDER,
            &[
                Field::long("id", "Id", Content::Plain),
                Field::text("name", "Name"),
                Field::text("destination", "Destination"),
                Field::long("maxAge", "Max Age", Content::Milliseconds),
                Field::long("maxSize", "Max Size", Content::Bytes),
                Field::long("recordingStart", "Start Time", Content::UnixMilliseconds),
                Field::long("recordingDuration", "Recording Duration", Content::Milliseconds),
            ],
        ),
        event(
            id::ACTIVE_SETTING,
            "jdk.ActiveSetting",
            "Recording Setting",
            RECORDER,
            &[
                Field::long("id", "Event Id", Content::Plain),
                Field::text("name", "Setting Name"),
                Field::text("value", "Setting Value"),
            ],
        ),
        event(
            id::CPU_INFORMATION,
            "jdk.CPUInformation",
            "CPU Information",
            &["Operating System", "Processor"],
            &[
                Field::text("cpu", "Type"),
                Field::text("description", "Description"),
                Field::int("sockets", "Sockets"),
                Field::int("cores", "Cores"),
                Field::int("hwThreads", "Hardware Threads"),
            ],
        ),
        event(
            id::OS_INFORMATION,
            "jdk.OSInformation",
            "OS Information",
            SYSTEM,
            &[Field::text("osVersion", "OS Version")],
        ),
        event(
            id::JVM_INFORMATION,
            "jdk.JVMInformation",
            "JVM Information",
            &["Java Virtual Machine"],
            &[
                Field::text("jvmName", "JVM Name"),
                Field::text("jvmVersion", "JVM Version"),
                Field::text("jvmArguments", "JVM Command Line Arguments"),
                Field::text("jvmFlags", "JVM Settings File Arguments"),
                Field::text("javaArguments", "Java Application Arguments"),
                Field::long("jvmStartTime", "JVM Start Time", Content::UnixMilliseconds),
                Field::long("pid", "Process Identifier", Content::Plain),
            ],
        ),
        event(
            id::NATIVE_LIBRARY,
            "jdk.NativeLibrary",
            "Native Library",
            &["Java Virtual Machine", "Runtime"],
            &[
                Field::text("name", "Name"),
                Field::long("baseAddress", "Base Address", Content::Address),
                Field::long("topAddress", "Top Address", Content::Address),
                Field::long("processId", "Process Id", Content::Plain),
                Field::text("buildId", "Build Id"),
                Field::long("fileOffset", "Offset in the File", Content::Plain),
                // An address in the process, less the one that the file is linked for.
                Field::long("loadBias", "Load Bias", Content::Address),
            ],
        ),
    ]
}

/// The category of our own events.
pub(super) const OWN: &[&str] = &["Collector"];

fn own_events() -> Vec<Class> {
    vec![
        event(
            id::RECORDING,
            "collector.Recording",
            "Recording of a Machine",
            OWN,
            &[
                Field::DURATION,
                Field::text("host", "Host"),
                Field::text("kernel", "Kernel"),
                Field::text("architecture", "Architecture"),
                Field::int("cpus", "CPUs"),
                Field::text("command", "Command"),
                Field::long("lostSamples", "Lost Samples, or -1 Where Not Known", Content::Plain),
            ],
        ),
        event(id::NOTE, "collector.Note", "Account of the Recording", OWN, &[Field::text("text", "Text")]),
        event(
            id::PROCESS,
            "collector.Process",
            "Process",
            OWN,
            &[
                Field::DURATION,
                Field::long("processId", "Process Id", Content::Plain),
                Field::text("name", "Name"),
                Field::long("parentId", "Parent Process Id", Content::Plain),
                Field::new("startSeen", "Start Was Seen", id::BOOLEAN),
                Field::new("endSeen", "End Was Seen", id::BOOLEAN),
                Field::text("commandLine", "Command Line"),
                Field::text("userName", "User"),
                // Below 0 where it is not known.
                Field::long("userId", "User Id", Content::Plain),
                Field::long("namespaceProcessId", "Process Id in Its Namespace", Content::Plain),
                Field::text("container", "Container"),
                Field::text("cgroup", "Control Group"),
                // Below 0 where it is not known, or did not end so.
                Field::long("exitStatus", "Exit Status", Content::Plain),
                Field::long("exitSignal", "Ended by Signal", Content::Plain),
            ],
        ),
        event(
            id::PROGRAM,
            "collector.Program",
            "Program Executed",
            OWN,
            &[
                Field::long("processId", "Process Id", Content::Plain),
                Field::text("name", "Name"),
                // One text: a list of anything but frames stops `jfr print` of JDK 17 and 25.
                Field::text("arguments", "Arguments"),
                Field::new("argumentsCut", "There Were More Arguments", id::BOOLEAN),
            ],
        ),
        event(
            id::SPAN,
            "collector.Span",
            "Span",
            OWN,
            &[
                Field::DURATION,
                Field::EVENT_THREAD,
                Field::text("name", "Name"),
                Field::text("timeline", "Timeline"),
                Field::long("processId", "Process Id", Content::Plain),
                Field::text("process", "Process"),
                Field::new("endSeen", "End Was Seen", id::BOOLEAN),
                Field::text("attributes", "Attributes"),
            ],
        ),
    ]
}
