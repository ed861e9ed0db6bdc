//! Records through the crates `linux-perf-event-reader` 0.10 and `perf-event-data` 0.1, and through ours: the same fields under
//! the same names, so that they can be compared. What a peer has no field for is not among its fields.

use std::collections::BTreeMap;
use std::fmt::Debug;

use byteorder::LittleEndian;
use collector_common::perf::{
    Attr, AttrFlags, BranchStack, ByteOrder, CpuMode, MappedFile, Misc, OwnedRecord, ParseConfig, Parsed,
    ReadValues, Record, Registers, Sample,
};
use linux_perf_event_reader::{
    ContextSwitchRecord, Endianness, EventRecord, ForkOrExitRecord, Mmap2FileId, PerfEventAttr, RawData,
    RawEventRecord, RecordParseInfo, RecordType, SampleRecord, TaskWasPreempted,
};
use perf_event_data::endian::{Big, Endian, Little};
use perf_event_data::parse::{ParseConfig as DataConfig, Parser};
use perf_event_data::{DataSource, ReadGroup, ReadValue, Registers as DataRegisters, SwitchCpuWide};
use perf_event_open_sys::bindings::perf_event_attr;

/// A peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Peer {
    /// `linux-perf-event-reader`
    Reader,
    /// `perf-event-data`
    Data,
}

/// What is read of a record: values by the names of the kernel's header, or by our own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fields(pub(crate) BTreeMap<&'static str, String>);

impl Fields {
    fn put(&mut self, name: &'static str, value: impl Debug) {
        self.0.insert(name, format!("{value:?}"));
    }

    fn put_all<const N: usize>(&mut self, numbers: [(&'static str, Option<u64>); N]) {
        for (name, number) in numbers {
            self.put(name, number);
        }
    }

    /// Of parts that are there.
    fn some<const N: usize>(&mut self, numbers: [(&'static str, u64); N]) {
        self.put_all(numbers.map(|(name, number)| (name, Some(number))));
    }
}

/// What a peer reads of a record; none where it can't.
pub(crate) fn theirs(peer: Peer, record: &OwnedRecord, config: &ParseConfig) -> Option<Fields> {
    match (peer, config.byte_order) {
        (Peer::Reader, _) => by_reader(record, config),
        (Peer::Data, ByteOrder::Little) => by_data::<Little>(record, config),
        (Peer::Data, ByteOrder::Big) => by_data::<Big>(record, config),
    }
}

/// What we read of it.
pub(crate) fn ours(parsed: &Parsed<'_>, record: &OwnedRecord, config: &ParseConfig) -> Fields {
    let mut fields = Fields::default();
    let id = parsed.sample_id;
    fields.put("misc", parsed.misc.0);
    fields.put("cpu_mode", mode_of(parsed.misc));
    fields.put_all([
        ("sample_id.pid", id.pid.map(|pid| pid.0.into())),
        ("sample_id.tid", id.tid.map(|tid| tid.0.into())),
        ("sample_id.time", id.time.map(|time| time.0)),
        // The header: the one duplicates the other, so that either is right.
        ("sample_id.identifier or id", id.identifier.or(id.id)),
        ("sample_id.id or identifier", id.id.or(id.identifier)),
        ("sample_id.stream_id", id.stream_id),
        ("sample_id.cpu", id.cpu.map(u64::from)),
    ]);
    let body = &record.body;
    let own = if matches!(parsed.record, Record::Sample(_)) { 0 } else { config.sample_id_size() };
    fields.put("body", body);
    fields.put("body without sample_id", &body[..body.len() - own]);
    of_ours(parsed, &mut fields);
    fields
}

fn of_ours(parsed: &Parsed<'_>, fields: &mut Fields) {
    let has = |bit| parsed.misc.contains(bit);
    match &parsed.record {
        Record::Mmap(mmap) => {
            fields.some([("pid", mmap.pid.0.into()), ("tid", mmap.tid.0.into())]);
            fields.some([("addr", mmap.start.0), ("len", mmap.len), ("pgoff", mmap.file_offset.0)]);
            fields.put("filename", mmap.path.bytes().to_cow());
            fields.put("is_executable", !has(Misc::MMAP_DATA));
        }
        Record::Mmap2(mmap) => {
            fields.some([("pid", mmap.pid.0.into()), ("tid", mmap.tid.0.into())]);
            fields.some([("addr", mmap.start.0), ("len", mmap.len), ("pgoff", mmap.file_offset.0)]);
            fields.some([("prot", mmap.protection.into()), ("flags", mmap.flags.into())]);
            fields.put("filename", mmap.path.bytes().to_cow());
            match mmap.file {
                MappedFile::Inode { major, minor, inode, generation } => {
                    fields.put("file", (major, minor, inode, generation));
                }
                MappedFile::BuildId(id) => {
                    fields.put("file", id.as_ref().map_or(&[][..], |id| id.as_bytes()));
                }
            }
        }
        Record::Comm(comm) => {
            fields.some([("pid", comm.pid.0.into()), ("tid", comm.tid.0.into())]);
            fields.put("comm", comm.name.bytes().to_cow());
            fields.put("is_exec", has(Misc::COMM_EXEC));
        }
        Record::Fork(task) | Record::Exit(task) => {
            fields.some([("pid", task.pid.0.into()), ("ppid", task.parent_pid.0.into())]);
            fields.some([("tid", task.tid.0.into()), ("ptid", task.parent_tid.0.into())]);
            fields.some([("time", task.time.0)]);
        }
        Record::Throttle(throttling) | Record::Unthrottle(throttling) => {
            fields.some([("time", throttling.time.0), ("id", throttling.id)]);
            fields.some([("stream_id", throttling.stream_id)]);
        }
        Record::Lost(lost) => fields.some([("id", lost.id), ("lost", lost.count)]),
        Record::LostSamples(lost) => fields.some([("lost", lost.count)]),
        Record::Read(read) => {
            fields.some([("pid", read.pid.0.into()), ("tid", read.tid.0.into())]);
            values_of_ours(&read.values, fields);
        }
        Record::Aux(aux) => {
            fields.some([("aux_offset", aux.offset), ("aux_size", aux.size), ("flags", aux.flags.0)]);
        }
        Record::ItraceStart(start) => {
            fields.some([("pid", start.pid.0.into()), ("tid", start.tid.0.into())]);
        }
        Record::Switch(_) => switch(has(Misc::SWITCH_OUT), has(Misc::SWITCH_OUT_PREEMPT), None, fields),
        Record::SwitchCpuWide(other) => {
            let other = Some((other.other_pid.0, other.other_tid.0));
            switch(has(Misc::SWITCH_OUT), has(Misc::SWITCH_OUT_PREEMPT), other, fields);
        }
        Record::Namespaces(namespaces) => {
            fields.some([("pid", namespaces.pid.0.into()), ("tid", namespaces.tid.0.into())]);
            let each = namespaces.iter().map(|namespace| (namespace.device, namespace.inode));
            fields.put("namespaces", each.collect::<Vec<_>>());
        }
        Record::Ksymbol(symbol) => {
            fields.some([("addr", symbol.start.0), ("len", symbol.len.into())]);
            fields.some([("ksym_type", symbol.kind.into()), ("flags", symbol.flags.0.into())]);
            fields.put("name", symbol.name.bytes().to_cow());
        }
        Record::BpfEvent(event) => {
            fields.some([("type", event.kind.into()), ("flags", event.flags.into())]);
            fields.some([("id", event.id.into())]);
            fields.put("tag", event.tag);
        }
        Record::Cgroup(cgroup) => {
            fields.some([("id", cgroup.id)]);
            fields.put("path", cgroup.path.bytes().to_cow());
        }
        Record::TextPoke(poke) => {
            fields.some([("addr", poke.address.0)]);
            fields.put("old", poke.old.to_cow());
            fields.put("new", poke.new.to_cow());
        }
        Record::AuxOutputHwId(output) => fields.some([("hw_id", output.hw_id)]),
        Record::Sample(sample) => sample_of_ours(sample, fields),
        _ => {}
    }
}

/// The reader has one name for the modes that have none.
fn mode_of(misc: Misc) -> CpuMode {
    match misc.cpu_mode() {
        CpuMode::Reserved(_) => CpuMode::Unknown,
        mode => mode,
    }
}

/// `other`: the process and thread before or behind.
fn switch(is_out: bool, is_preempted: bool, other: Option<(u32, u32)>, fields: &mut Fields) {
    fields.put("is_out", is_out);
    fields.put("is_preempted", is_out && is_preempted);
    fields.put("next_prev", other);
}

fn values_of_ours(values: &ReadValues<'_>, fields: &mut Fields) {
    fields.put_all([("time_enabled", values.time_enabled), ("time_running", values.time_running)]);
    let each = values.iter().map(|value| (value.value, value.id, value.lost));
    fields.put("values", each.collect::<Vec<_>>());
}

fn sample_of_ours(sample: &Sample<'_>, fields: &mut Fields) {
    fields.put_all([
        ("ip", sample.ip.map(|ip| ip.0)),
        ("addr", sample.addr.map(|addr| addr.0)),
        ("period", sample.period),
        ("weight", sample.weight.map(|weight| weight.0)),
        ("transaction", sample.transaction.map(|transaction| transaction.0)),
        ("abort_code", sample.transaction.map(|transaction| transaction.abort_code().into())),
        ("phys_addr", sample.phys_addr),
        ("cgroup", sample.cgroup),
        ("data_page_size", sample.data_page_size),
        ("code_page_size", sample.code_page_size),
    ]);
    if let Some(values) = &sample.read {
        values_of_ours(values, fields);
    }
    fields.put("ips", sample.callchain.map(|chain| chain.words.iter().collect::<Vec<_>>()));
    fields.put("raw", sample.raw.map(|raw| raw.to_cow()));
    if let Some(branches) = &sample.branch_stack {
        branches_of_ours(branches, fields);
    }
    fields.put("regs_user", sample.user_registers.as_ref().map(registers_of_ours));
    fields.put("regs_intr", sample.interrupted_registers.as_ref().map(registers_of_ours));
    fields.put("stack", sample.user_stack.map(|stack| stack.data.to_cow()));
    fields.put("dyn_size", sample.user_stack.map(|stack| stack.dyn_size));
    fields.put("copied stack", sample.user_stack.map(|stack| stack.copied().to_cow()));
    if let Some(source) = sample.data_source {
        let snoop = u64::from(source.snoop()) << 19 | u64::from(source.snoop_more()) << 38;
        fields.some([
            ("mem_op", source.operation().into()),
            ("mem_lvl", source.level().into()),
            ("mem_snoop", snoop),
            ("mem_lock", source.lock().into()),
            ("mem_dtlb", source.tlb().into()),
            ("mem_lvl_num", source.level_number().into()),
            ("mem_remote", source.is_remote().into()),
            ("mem_blk", source.blocked().into()),
            ("mem_hops", source.hops().into()),
        ]);
    }
    fields.put("aux", sample.aux.map(|aux| aux.to_cow()));
}

fn branches_of_ours(branches: &BranchStack<'_>, fields: &mut Fields) {
    fields.put("hw_idx", branches.hw_index);
    let each = branches.iter().map(|branch| (branch.from.0, branch.to.0));
    fields.put("branches", each.collect::<Vec<_>>());
    let flags = branches.iter().map(|branch| {
        let flags = branch.flags;
        let bits =
            [flags.is_mispredicted(), flags.is_predicted(), flags.is_in_transaction(), flags.is_abort()];
        (bits, flags.cycles(), flags.kind())
    });
    fields.put("branch flags", flags.collect::<Vec<_>>());
}

/// By their numbers.
fn registers_of_ours(registers: &Registers<'_>) -> Vec<Option<u64>> {
    (0..64).map(|number| registers.get(number)).collect()
}

fn attr(config: &ParseConfig) -> Attr {
    let mut flags = AttrFlags::default();
    if config.sample_id_all {
        flags = flags | AttrFlags::SAMPLE_ID_ALL;
    }
    Attr {
        // `PERF_TYPE_SOFTWARE`; the reader wants one that it knows.
        kind: 1,
        sample_type: config.sample_type,
        read_format: config.read_format,
        branch_sample_type: config.branch_sample_type,
        sample_regs_user: config.sample_regs_user,
        sample_regs_intr: config.sample_regs_intr,
        flags,
        ..Attr::default()
    }
}

fn by_reader(record: &OwnedRecord, config: &ParseConfig) -> Option<Fields> {
    // Of which machine its attributes were is a matter of their own.
    let mut bytes = Vec::new();
    attr(config).write(ByteOrder::Little, &mut bytes);
    let (attr, _) = PerfEventAttr::parse::<_, LittleEndian>(bytes.as_slice()).unwrap();
    let order = match config.byte_order {
        ByteOrder::Little => Endianness::LittleEndian,
        ByteOrder::Big => Endianness::BigEndian,
    };
    let info = RecordParseInfo::new(&attr, order);
    let data = RawData::from(record.body.as_slice());
    let raw = RawEventRecord::new(RecordType(record.kind.0), record.misc.0, data, info);
    let common = raw.common_data().ok()?;
    let mut fields = Fields::default();
    let unsigned = |id: Option<i32>| id.map(|id| u64::from(id as u32));
    fields.put_all([
        ("sample_id.pid", unsigned(common.pid)),
        ("sample_id.tid", unsigned(common.tid)),
        ("sample_id.time", common.timestamp),
        ("sample_id.identifier or id", common.id),
        ("sample_id.stream_id", common.stream_id),
        ("sample_id.cpu", common.cpu.map(u64::from)),
    ]);
    let two = |fields: &mut Fields, pid: i32, tid: i32| {
        fields.put_all([("pid", unsigned(Some(pid))), ("tid", unsigned(Some(tid)))]);
    };
    match raw.parse().ok()? {
        EventRecord::Sample(sample) => sample_of_reader(&sample, &mut fields),
        EventRecord::Comm(comm) => {
            two(&mut fields, comm.pid, comm.tid);
            fields.put("comm", comm.name.as_slice());
            fields.put("is_exec", comm.is_execve);
        }
        EventRecord::Exit(task) | EventRecord::Fork(task) => {
            let ForkOrExitRecord { pid, ppid, tid, ptid, timestamp } = task;
            two(&mut fields, pid, tid);
            fields.put_all([("ppid", unsigned(Some(ppid))), ("ptid", unsigned(Some(ptid)))]);
            fields.some([("time", timestamp)]);
        }
        EventRecord::Mmap(mmap) => {
            two(&mut fields, mmap.pid, mmap.tid);
            fields.some([("addr", mmap.address), ("len", mmap.length), ("pgoff", mmap.page_offset)]);
            fields.put("filename", mmap.path.as_slice());
            fields.put("is_executable", mmap.is_executable);
            fields.put("cpu_mode", mmap.cpu_mode);
        }
        EventRecord::Mmap2(mmap) => {
            two(&mut fields, mmap.pid, mmap.tid);
            fields.some([("addr", mmap.address), ("len", mmap.length), ("pgoff", mmap.page_offset)]);
            fields.some([("prot", mmap.protection.into()), ("flags", mmap.flags.into())]);
            fields.put("filename", mmap.path.as_slice());
            fields.put("cpu_mode", mmap.cpu_mode);
            match mmap.file_id {
                Mmap2FileId::InodeAndVersion(file) => {
                    fields.put("file", (file.major, file.minor, file.inode, file.inode_generation));
                }
                Mmap2FileId::BuildId(id) => fields.put("file", id),
            }
        }
        EventRecord::Lost(lost) => fields.some([("id", lost.id), ("lost", lost.count)]),
        EventRecord::Throttle(throttle) | EventRecord::Unthrottle(throttle) => {
            fields.some([("time", throttle.timestamp), ("id", throttle.id)]);
        }
        EventRecord::ContextSwitch(context) => {
            let other = |pid: Option<i32>, tid: Option<i32>| Some((pid? as u32, tid? as u32));
            match context {
                ContextSwitchRecord::In { prev_pid, prev_tid } => {
                    switch(false, false, other(prev_pid, prev_tid), &mut fields);
                }
                ContextSwitchRecord::Out { next_pid, next_tid, preempted } => {
                    let is_preempted = preempted == TaskWasPreempted::Yes;
                    switch(true, is_preempted, other(next_pid, next_tid), &mut fields);
                }
            }
        }
        EventRecord::Raw(raw) => {
            fields.put("misc", raw.misc);
            fields.put("body", raw.data.as_slice());
        }
        other => panic!("{other:?}"),
    }
    Some(fields)
}

fn sample_of_reader(sample: &SampleRecord<'_>, fields: &mut Fields) {
    let unsigned = |id: Option<i32>| id.map(|id| u64::from(id as u32));
    fields.put("cpu_mode", sample.cpu_mode);
    fields.put_all([
        ("sample_id.identifier or id", sample.id),
        ("ip", sample.ip),
        ("sample_id.pid", unsigned(sample.pid)),
        ("sample_id.tid", unsigned(sample.tid)),
        ("sample_id.time", sample.timestamp),
        ("addr", sample.addr),
        ("sample_id.stream_id", sample.stream_id),
        ("sample_id.cpu", sample.cpu.map(u64::from)),
        ("period", sample.period),
        ("phys_addr", sample.phys_addr),
        ("data_page_size", sample.data_page_size),
        ("code_page_size", sample.code_page_size),
    ]);
    let chain =
        sample.callchain.map(|chain| (0..chain.len()).map(|at| chain.get(at).unwrap()).collect::<Vec<_>>());
    fields.put("ips", chain);
    fields.put("raw", sample.raw.map(|raw| raw.as_slice()));
    // It does not tell registers that were not recorded from those that were not asked for.
    for (name, of) in [("regs_user", &sample.user_regs), ("regs_intr", &sample.intr_regs)] {
        if let Some(registers) = of {
            fields.put(name, Some((0..64).map(|number| registers.get(number)).collect::<Vec<_>>()));
        }
    }
    fields.put("stack", sample.user_stack.map(|(data, _)| data.as_slice()));
    fields.put("dyn_size", sample.user_stack.map(|(_, size)| size));
}

fn by_data<E: Endian + Default>(record: &OwnedRecord, config: &ParseConfig) -> Option<Fields> {
    use perf_event_data::Record as Data;

    let mut whole = Vec::new();
    record.as_raw().write(config.byte_order, &mut whole).unwrap();
    let mut attr = perf_event_attr::default();
    attr.sample_type = config.sample_type.0;
    attr.read_format = config.read_format.0;
    attr.branch_sample_type = config.branch_sample_type.0;
    attr.sample_regs_user = config.sample_regs_user;
    attr.sample_regs_intr = config.sample_regs_intr;
    attr.set_sample_id_all(config.sample_id_all.into());
    let parser = || Parser::new(&whole[..], DataConfig::<E>::from(attr));
    let mut fields = Fields::default();
    let mut head = parser();
    let (_, metadata) = head.parse_metadata().ok()?;
    fields.put("misc", metadata.misc());
    let id = metadata.sample_id();
    let is_sample = record.kind == collector_common::perf::RecordKind::SAMPLE;
    if !is_sample {
        sample_id_of_data(id, &mut fields);
    }
    match parser().parse().ok()? {
        Data::Mmap(mmap) => {
            fields.some([("pid", mmap.pid.into()), ("tid", mmap.tid.into())]);
            fields.some([("addr", mmap.addr), ("len", mmap.len), ("pgoff", mmap.pgoff)]);
            fields.put("filename", mmap.filename);
        }
        Data::Mmap2(mmap) => {
            fields.some([("pid", mmap.pid.into()), ("tid", mmap.tid.into())]);
            fields.some([("addr", mmap.addr), ("len", mmap.len), ("pgoff", mmap.pgoff)]);
            fields.some([("prot", mmap.prot.into()), ("flags", mmap.flags.into())]);
            if let Some(id) = mmap.build_id() {
                fields.put("file", id);
            } else {
                let inode = || Some((mmap.maj()?, mmap.min()?, mmap.ino()?, mmap.ino_generation()?));
                fields.put("file", inode().unwrap());
            }
            fields.put("filename", mmap.filename);
        }
        Data::Comm(comm) => {
            fields.some([("pid", comm.pid.into()), ("tid", comm.tid.into())]);
            fields.put("comm", comm.comm);
        }
        Data::Exit(task) | Data::Fork(task) => {
            fields.some([("pid", task.pid.into()), ("ppid", task.ppid.into())]);
            fields.some([("tid", task.tid.into()), ("ptid", task.ptid.into()), ("time", task.time)]);
        }
        Data::Throttle(throttle) | Data::Unthrottle(throttle) => {
            fields.some([("time", throttle.time), ("id", throttle.id), ("stream_id", throttle.stream_id)]);
        }
        Data::Lost(lost) => fields.some([("id", lost.id), ("lost", lost.lost)]),
        Data::LostSamples(lost) => fields.some([("lost", lost.lost)]),
        Data::Read(read) => {
            fields.some([("pid", read.pid.into()), ("tid", read.tid.into())]);
            value_of_data(&read.values, &mut fields);
        }
        Data::Aux(aux) => {
            fields.some([("aux_offset", aux.aux_offset), ("aux_size", aux.aux_size)]);
            fields.some([("flags", aux.flags.bits())]);
        }
        Data::ITraceStart(start) => fields.some([("pid", start.pid.into()), ("tid", start.tid.into())]),
        Data::SwitchCpuWide(other) => {
            fields.put("is_out", matches!(other, SwitchCpuWide::Out { .. }));
            fields.put("next_prev", Some((other.pid(), other.tid())));
        }
        Data::Namespaces(namespaces) => {
            fields.some([("pid", namespaces.pid.into()), ("tid", namespaces.tid.into())]);
            let each = namespaces.namespaces.iter().map(|namespace| (namespace.dev, namespace.inode));
            fields.put("namespaces", each.collect::<Vec<_>>());
        }
        Data::KSymbol(symbol) => {
            fields.some([("addr", symbol.addr), ("len", symbol.len.into())]);
            fields.some([("ksym_type", symbol.ksym_type.0.into()), ("flags", symbol.flags.bits().into())]);
            fields.put("name", symbol.name);
        }
        Data::BpfEvent(event) => {
            fields.some([("type", event.ty.0.into()), ("flags", event.flags.into())]);
            fields.some([("id", event.id.into())]);
            fields.put("tag", event.tag);
        }
        Data::CGroup(cgroup) => {
            fields.some([("id", cgroup.id)]);
            fields.put("path", cgroup.path);
        }
        Data::TextPoke(poke) => {
            fields.some([("addr", poke.addr)]);
            fields.put("old", poke.old_bytes);
            fields.put("new", poke.new_bytes);
        }
        Data::AuxOutputHwId(output) => fields.some([("hw_id", output.hw_id)]),
        Data::Sample(sample) => sample_of_data(&sample, &mut fields),
        Data::Unknown { ty, data } => {
            assert_eq!(ty, record.kind.0);
            fields.put("body without sample_id", data);
        }
        other => panic!("{other:?}"),
    }
    Some(fields)
}

fn sample_id_of_data(id: &perf_event_data::SampleId, fields: &mut Fields) {
    fields.put_all([
        ("sample_id.pid", id.pid().map(u64::from)),
        ("sample_id.tid", id.tid().map(u64::from)),
        ("sample_id.time", id.time()),
        ("sample_id.id or identifier", id.id()),
        ("sample_id.stream_id", id.stream_id()),
        ("sample_id.cpu", id.cpu().map(u64::from)),
    ]);
}

fn value_of_data(value: &ReadValue, fields: &mut Fields) {
    fields.put_all([("time_enabled", value.time_enabled()), ("time_running", value.time_running())]);
    fields.put("values", [(value.value(), value.id(), value.lost())]);
}

fn group_of_data(group: &ReadGroup<'_>, fields: &mut Fields) {
    fields.put_all([("time_enabled", group.time_enabled()), ("time_running", group.time_running())]);
    let each = group.entries().map(|entry| (entry.value(), entry.id(), entry.lost()));
    fields.put("values", each.collect::<Vec<_>>());
}

fn sample_of_data(sample: &perf_event_data::Sample<'_>, fields: &mut Fields) {
    sample_id_of_data(&perf_event_data::SampleId::from_sample(sample), fields);
    fields.put_all([
        ("ip", sample.ip()),
        ("addr", sample.addr()),
        ("period", sample.period()),
        ("weight", sample.weight()),
        ("transaction", sample.transaction().map(|transaction| transaction.bits())),
        ("abort_code", sample.transaction().map(|transaction| transaction.abort().into())),
        ("phys_addr", sample.phys_addr()),
        ("cgroup", sample.cgroup()),
        ("data_page_size", sample.data_page_size()),
        ("code_page_size", sample.code_page_size()),
    ]);
    if let Some(group) = sample.values() {
        group_of_data(group, fields);
    }
    fields.put("ips", sample.callchain());
    fields.put("raw", sample.raw());
    if let Some(branches) = sample.lbr() {
        fields.put("hw_idx", sample.lbr_hw_index());
        let each = branches.iter().map(|branch| (branch.from(), branch.to()));
        fields.put("branches", each.collect::<Vec<_>>());
        let flags = branches.iter().map(|branch| {
            let bits = [branch.mispred(), branch.predicted(), branch.in_tx(), branch.abort()];
            (bits, branch.cycles(), branch.ty().0)
        });
        fields.put("branch flags", flags.collect::<Vec<_>>());
    }
    fields.put("regs_user", sample.regs_user().map(registers_of_data));
    fields.put("regs_intr", sample.regs_intr().map(registers_of_data));
    fields.put("copied stack", sample.stack_user());
    if let Some(source) = sample.data_src() {
        source_of_data(source, fields);
    }
    fields.put("aux", sample.aux());
}

fn registers_of_data(registers: &DataRegisters<'_>) -> Vec<Option<u64>> {
    let mut values = registers.regs.iter().copied();
    (0..64).map(|number| (registers.mask >> number & 1 != 0).then(|| values.next().unwrap())).collect()
}

fn source_of_data(source: DataSource, fields: &mut Fields) {
    fields.some([
        ("mem_op", source.mem_op().bits()),
        ("mem_lvl", source.mem_lvl().bits()),
        ("mem_snoop", source.mem_snoop().bits()),
        ("mem_lock", source.mem_lock().bits()),
        ("mem_dtlb", source.mem_dtlb().bits()),
        ("mem_lvl_num", source.mem_lvl_num().0.into()),
        ("mem_remote", source.mem_remote().into()),
        ("mem_blk", source.mem_blk().bits()),
        ("mem_hops", source.mem_hops().into()),
    ]);
}
