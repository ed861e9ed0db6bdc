# A Perfetto trace, decoded by Perfetto's own messages, as its trace processor takes it: by the rules that
# protos/perfetto/trace/trace_packet.proto and docs/reference/synthetic-track-event.md of google/perfetto give. Writes what it
# tells as JSON.

import json
import os
import sys
from collections import defaultdict

sys.path.insert(0, os.path.dirname(__file__))

import protobuf_rules
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb

CLEARED = pb.TracePacket.SEQ_INCREMENTAL_STATE_CLEARED
NEEDED = pb.TracePacket.SEQ_NEEDS_INCREMENTAL_STATE
TABLES = [field.name for field in pb.InternedData.DESCRIPTOR.fields]


class Sequence:
    def __init__(self, packet):
        assert packet.sequence_flags & CLEARED, "a sequence that begins in the middle"
        assert packet.first_packet_on_sequence
        self.defaults = packet.trace_packet_defaults
        self.interned = defaultdict(dict)
        self.counts = defaultdict(int)

    def add(self, packet):
        assert packet.sequence_flags & NEEDED
        for table in TABLES:
            for entry in getattr(packet.interned_data, table):
                assert entry.iid > 0
                assert entry.iid not in self.interned[table], f"{table}: {entry.iid} is told twice"
                self.interned[table][entry.iid] = entry

    def text(self, table, iid):
        entry = self.interned[table][iid]
        return entry.name if hasattr(entry, "name") else entry.str.decode()

    def frame(self, iid):
        frame = self.interned["frames"][iid]
        mapping = self.interned["mappings"][frame.mapping_id]
        assert frame.HasField("rel_pc")
        build_id = self.interned["build_ids"][mapping.build_id].str.hex() if mapping.build_id else ""
        source = self.text("source_paths", frame.source_path_iid) if frame.source_path_iid else ""
        return {
            "function": self.text("function_names", frame.function_name_id),
            "address": frame.rel_pc,
            "path": "/".join(self.text("mapping_paths", path) for path in mapping.path_string_ids),
            "build_id": build_id,
            "range": [mapping.start, mapping.end, mapping.exact_offset, mapping.load_bias],
            "line": f"{source}:{frame.line_number}" if source else "",
            "kind": pb.Frame.Kind.Name(frame.kind),
        }

    # The innermost frame first, as profiles of other tools have it.
    def stack(self, iid):
        if iid == 0:
            return []
        return [self.frame(frame) for frame in reversed(self.interned["callstacks"][iid].frame_ids)]


def read(trace):
    told = defaultdict(list)
    sequences, events, tracks = {}, [], {}
    clock, since_boot, of_cpus = None, [], []
    for order, packet in enumerate(trace.packet):
        number = packet.trusted_packet_sequence_id
        assert number > 0, "a packet of no sequence"
        sequence = sequences.get(number)
        if sequence is None:
            sequence = sequences[number] = Sequence(packet)
        else:
            assert not packet.sequence_flags & CLEARED and not packet.first_packet_on_sequence
        sequence.add(packet)
        if packet.HasField("clock_snapshot"):
            snapshot = packet.clock_snapshot
            clock = snapshot.primary_trace_clock
            clocks = {one.clock_id: one.timestamp for one in snapshot.clocks}
            told["clocks"].append({pb.BuiltinClock.Name(one): time for one, time in clocks.items()})
            if pb.BUILTIN_CLOCK_BOOTTIME in clocks:
                since_boot.append((clocks[pb.BUILTIN_CLOCK_BOOTTIME], clocks[pb.BUILTIN_CLOCK_MONOTONIC]))
            continue
        if packet.HasField("ftrace_events"):
            assert not packet.HasField("timestamp")
            of_cpus.append(packet.ftrace_events)
            continue
        assert packet.HasField("timestamp")
        # No clock is converted.
        assert sequence.defaults.timestamp_clock_id == clock == pb.BUILTIN_CLOCK_MONOTONIC
        if packet.HasField("track_descriptor"):
            track = packet.track_descriptor
            assert track.uuid > 0 and track.uuid not in tracks
            tracks[track.uuid] = track
        events.append((packet.timestamp, order, packet, sequence))
    assert all(track.parent_uuid in tracks or track.parent_uuid == 0 for track in tracks.values())
    events.sort(key=lambda event: event[:2])
    replay(events, tracks, told)
    scheduling(of_cpus, since_boot, told)
    return told


# Rows of CPUs and states of threads, as src/trace_processor/importers/ftrace and common/thread_state_tracker.cc make them.
def scheduling(bundles, since_boot, told):
    events, last = [], {}
    for bundle in bundles:
        assert bundle.HasField("cpu") and bundle.cpu < 1024 and bundle.event
        # The clock of the tracer, unless it says otherwise.
        assert not bundle.HasField("ftrace_clock")
        for event in bundle.event:
            assert event.timestamp >= last.get(bundle.cpu, 0), "a CPU's events are in the order of their times"
            last[bundle.cpu] = event.timestamp
            before = [pair for pair in since_boot if pair[0] <= event.timestamp] or since_boot[:1]
            events.append((event.timestamp - before[-1][0] + before[-1][1], bundle.cpu, event))
        if bundle.lost_events:
            told["gaps"].append(bundle.cpu)
    events.sort(key=lambda event: event[0])
    running, states = {}, {}

    def state(time, tid, name, cpu=None, waker=None):
        if tid == 0:
            return
        if tid in states:
            states[tid]["lasted"] = time - states[tid]["time"]
        states[tid] = {"tid": tid, "time": time, "state": name, "cpu": cpu, "waker": waker, "lasted": None}
        told["states"].append(states[tid])

    for time, cpu, event in events:
        kind = event.WhichOneof("event")
        data = getattr(event, kind)
        fields = {field.name: value for field, value in data.ListFields()}
        told["scheduler"].append({"time": time, "cpu": cpu, "tid": event.pid, "event": kind, "fields": fields})
        if kind == "sched_switch":
            assert event.pid == data.prev_pid
            for name in ["prev_pid", "prev_state", "next_pid"]:
                assert data.HasField(name)
            if cpu in running and running[cpu]["tid"] == data.prev_pid:
                running[cpu]["lasted"] = time - running[cpu]["time"]
            running[cpu] = {"cpu": cpu, "tid": data.next_pid, "name": data.next_comm, "time": time, "lasted": None}
            told["cpus"].append(running[cpu])
            letters = {0: "R", 1: "S", 2: "D", 4: "T", 8: "t", 16: "X", 32: "Z", 64: "P", 128: "I"}
            state(time, data.prev_pid, "R" if data.prev_state & 0x100 else letters[data.prev_state & 0xff])
            state(time, data.next_pid, "Running", cpu)
        elif kind == "sched_waking" and states.get(data.pid, {"state": "S"})["state"] not in ["R", "Running"]:
            state(time, data.pid, "R", waker=event.pid)


# What is there by pid at a time: the reader has no other way to tell who is meant.
def replay(events, tracks, told):
    processes, threads, owners, open_slices = {}, {}, {}, defaultdict(list)
    for time, _, packet, sequence in events:
        kind = packet.WhichOneof("data")
        data = getattr(packet, kind)
        if kind == "track_descriptor" and data.HasField("process"):
            assert data.process.HasField("pid")
            process = {"pid": data.process.pid, "name": data.process.process_name, "from": time}
            process |= {"start": data.process.start_timestamp_ns, "parent": None, "end": None, "uid": None}
            process["cmdline"] = list(data.process.cmdline)
            processes[process["pid"]] = owners[data.uuid] = process
            told["processes"].append(process)
        elif kind == "track_descriptor" and data.HasField("thread"):
            assert data.thread.HasField("pid") and data.thread.HasField("tid")
            process = processes[data.thread.pid]
            thread = {"process": process["name"], "pid": data.thread.pid}
            thread |= {"tid": data.thread.tid, "name": data.thread.thread_name}
            threads[data.thread.tid] = owners[data.uuid] = thread
            told["threads"].append(thread)
        elif kind == "track_descriptor":
            owners[data.uuid] = owners.get(data.parent_uuid)
        elif kind == "process_tree":
            for one in data.processes:
                processes[one.pid]["parent"] = processes[one.ppid]["name"]
                processes[one.pid]["uid"] = one.uid if one.HasField("uid") else None
                assert list(one.cmdline) == [processes[one.pid]["name"]]
        elif kind == "generic_kernel_task_state_event":
            assert data.state == pb.GenericKernelTaskStateEvent.TASK_STATE_DEAD
            process = processes.pop(data.tid)
            assert data.comm == process["name"]
            process["end"] = time
        elif kind == "system_info":
            name = data.utsname
            told["system"] = [name.sysname, name.release, name.machine, data.machine_name, data.num_cpus]
        elif kind == "perf_sample" and data.HasField("kernel_records_lost"):
            assert data.pid == 0
            told["lost"].append([data.kernel_records_lost, time])
        elif kind == "perf_sample":
            timebase = sequence.defaults.perf_sample_defaults.timebase
            assert timebase.timestamp_clock == pb.PerfEvents.PERF_CLOCK_MONOTONIC
            grown = data.timebase_count - sequence.counts[data.cpu]
            sequence.counts[data.cpu] = data.timebase_count
            error = pb.Profiling.StackUnwindError.Name(data.unwind_error) if data.HasField("unwind_error") else ""
            told["samples"].append({
                "kind": timebase.name,
                "period": timebase.period,
                "event": timebase.WhichOneof("event"),
                "time": time,
                "cpu": data.cpu,
                "process": processes[data.pid]["name"],
                "pid": data.pid,
                "tid": data.tid,
                "thread": threads[data.tid]["name"],
                "grown": grown,
                "mode": pb.Profiling.CpuMode.Name(data.cpu_mode),
                "error": error,
                "stack": sequence.stack(data.callstack_iid),
            })
        elif kind == "track_event":
            event(time, data, sequence, tracks, owners, open_slices, told)
        else:
            raise AssertionError(kind)
    assert all(slice["weight"] is None for left in open_slices.values() for slice in left), "samples that do not end"


def event(time, data, sequence, tracks, owners, open_slices, told):
    track = tracks[data.track_uuid]
    owner = owners.get(data.track_uuid) or {}
    where = {"track": track.name, "owner": owner.get("name"), "time": time}
    where |= {"process": owner.get("process"), "pid": owner.get("pid"), "tid": owner.get("tid")}
    if data.type == pb.TrackEvent.TYPE_COUNTER:
        assert track.counter.unit == pb.CounterDescriptor.UNIT_SIZE_BYTES
        told["counters"].append(where | {"value": data.counter_value})
    elif data.type == pb.TrackEvent.TYPE_SLICE_END:
        begun = open_slices[data.track_uuid].pop()
        begun["lasted"] = time - begun["time"]
    else:
        notes = {
            sequence.text("debug_annotation_names", note.name_iid):
                note.int_value
                if note.HasField("int_value")
                else sequence.text("debug_annotation_string_values", note.string_value_iid)
            for note in data.debug_annotations
        }
        begun = where | {
            "name": data.name or sequence.text("event_names", data.name_iid),
            "weight": data.callstack_weight if data.HasField("callstack_weight") else None,
            "stack": [frame["function"] for frame in sequence.stack(data.callstack_iid)],
            "notes": notes,
            "within": open_slices[data.track_uuid][-1]["name"] if open_slices[data.track_uuid] else None,
            "lasted": None,
        }
        told["events"].append(begun)
        if data.type == pb.TrackEvent.TYPE_SLICE_BEGIN:
            # One below another would be shown as called by it, which a sample is not.
            assert not open_slices[data.track_uuid] or not data.HasField("callstack_weight")
            open_slices[data.track_uuid].append(begun)
        else:
            assert data.type == pb.TrackEvent.TYPE_INSTANT


with open(sys.argv[1], "rb") as file:
    trace = pb.Trace.FromString(file.read())
protobuf_rules.check(trace)
json.dump(read(trace), sys.stdout)
