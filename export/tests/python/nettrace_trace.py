# A nettrace file of version 6, read strictly by what NetTraceFormat.md and UniversalProviders.md of microsoft/perfview say: whatever they
# do not allow, or leave to later versions, is an error. Writes what the file tells as JSON. Nothing but Python's own library is used.

import datetime
import json
import struct
import sys
import uuid
from collections import defaultdict

END, TRACE, EVENT, METADATA, SEQUENCE_POINT, STACK, THREAD, REMOVE_THREAD, LABEL_LIST = range(9)

# The fields of Universal.System, of which those of ExistingProcess are ProcessCreate's. The document's ProcessId of ProcessMapping is not
# there: its text says that the process is that of the event, and so PerfView reads it.
TEXT, NUMBER = (19, 23), (21,)
LIFE = [("NamespaceId", NUMBER), ("Name", TEXT), ("NamespaceName", TEXT)]
SYSTEM = {
    "ExistingProcess": LIFE,
    "ProcessCreate": LIFE,
    "ProcessExit": [],
    "ProcessMapping": [
        ("Id", NUMBER),
        ("StartAddress", NUMBER),
        ("EndAddress", NUMBER),
        ("FileOffset", NUMBER),
        ("FileName", TEXT),
        ("MetadataId", NUMBER),
    ],
    "ProcessSymbol": [
        ("Id", NUMBER),
        ("MappingId", NUMBER),
        ("StartAddress", NUMBER),
        ("EndAddress", NUMBER),
        ("Name", TEXT),
    ],
    "ProcessMappingMetadata": [("Id", NUMBER), ("SymbolMetadata", TEXT), ("VersionMetadata", TEXT)],
}

# Numbers of one width, by the code of their type.
FIXED = {5: "b", 6: "B", 7: "h", 8: "H", 9: "i", 10: "I", 11: "q", 12: "Q", 13: "f", 14: "d"}


class Bytes:
    def __init__(self, data):
        self.data = data
        self.at = 0

    def take(self, count):
        assert self.at + count <= len(self.data), f"{count} bytes at {self.at} of {len(self.data)}"
        self.at += count
        return self.data[self.at - count : self.at]

    def fixed(self, layout):
        values = struct.unpack("<" + layout, self.take(struct.calcsize("<" + layout)))
        return values if len(values) > 1 else values[0]

    def varuint(self, bits=64):
        value = 0
        for shift in range(0, 70, 7):
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                assert value < 1 << bits, f"{value} has more than {bits} bits"
                return value
        raise AssertionError("a number without an end")

    def varint(self):
        value = self.varuint()
        return value >> 1 ^ -(value & 1)

    def text(self):
        return self.take(self.varuint(32)).decode("utf-8")

    # What is told with its size before it.
    def row(self):
        return Bytes(self.take(self.fixed("H")))

    def is_at_end(self):
        return self.at == len(self.data)

    def end(self):
        assert self.is_at_end(), f"{len(self.data) - self.at} bytes too many"


# A type as the codes that describe it.
def type_of(row):
    code = row.fixed("B")
    assert code in FIXED or code in (3, 4, 17, 18, 19, 20, 21, 23), f"no type of this reader: {code}"
    return (code, *type_of(row)) if code == 19 else (code,)


def value_of(payload, of):
    code, *element = of
    if code in FIXED:
        return payload.fixed(FIXED[code])
    if code == 3:
        value = payload.fixed("I")
        assert value in (0, 1)
        return value == 1
    if code == 17:
        return str(uuid.UUID(bytes_le=payload.take(16)))
    if code == 18:
        units = iter(lambda: payload.take(2), b"\0\0")
        return b"".join(units).decode("utf-16-le")
    if code == 20:
        return payload.varint()
    if code == 21:
        return payload.varuint()
    assert code == 19, f"a character without text: {code}"
    count = payload.fixed("H")
    if element == [23]:
        return payload.take(count).decode("utf-8")
    if element == [4]:
        return payload.take(2 * count).decode("utf-16-le")
    return [value_of(payload, element) for _ in range(count)]


class Reader:
    def __init__(self, data):
        self.file = Bytes(data)
        self.metadata = {}
        self.threads = {}
        self.stacks = {}
        self.labels = {}
        # The last sequence number of each thread that captures, and its last time.
        self.sequence = defaultdict(int)
        self.captured = defaultdict(int)
        self.lost = 0
        # Times of the last sequence point, of the last event that says that all before it are there, and of the latest event.
        self.point = 0
        self.sorted = 0
        self.latest = 0
        self.events = []

    def read(self):
        assert self.file.take(8) == b"Nettrace"
        assert self.file.fixed("III") == (0, 6, 0)
        kind, block = self.block()
        assert kind == TRACE, "the trace's block is not the first"
        self.trace(block)
        readers = {
            EVENT: self.event_block,
            METADATA: self.metadata_block,
            SEQUENCE_POINT: self.sequence_point,
            STACK: self.stack_block,
            THREAD: self.thread_block,
            REMOVE_THREAD: self.remove_threads,
            LABEL_LIST: self.label_block,
        }
        while True:
            kind, block = self.block()
            if kind == END:
                break
            readers[kind](block)
            block.end()
        block.end()
        self.file.end()

    def block(self):
        header = self.file.fixed("I")
        return header >> 24, Bytes(self.file.take(header & 0xFFFFFF))

    def trace(self, block):
        year, month, weekday, day, hour, minute, second, millisecond = block.fixed("8h")
        utc = datetime.datetime(year, month, day, hour, minute, second, millisecond * 1000, datetime.timezone.utc)
        assert utc.isoweekday() % 7 == weekday, f"{utc} is not day {weekday} of the week"
        self.utc = utc.isoformat(timespec="milliseconds")
        self.ticks, self.frequency, self.pointer, count = block.fixed("qqii")
        assert self.frequency > 0 and self.pointer in (4, 8)
        pairs = [(block.text(), block.text()) for _ in range(count)]
        self.pairs = dict(pairs)
        assert len(self.pairs) == count, "a key is told twice"
        block.end()

    def metadata_block(self, block):
        block.take(block.fixed("H"))
        while not block.is_at_end():
            row = block.row()
            number, provider, event, name = row.varuint(32), row.text(), row.varuint(32), row.text()
            fields = []
            for _ in range(row.fixed("H")):
                field = row.row()
                fields.append((field.text(), type_of(field)))
                field.end()
            optional = self.optional(row.row())
            row.end()
            assert number > 0 and number not in self.metadata
            if provider == "Universal.System":
                assert fields == SYSTEM[name], f"{name}: {fields}"
            elif provider == "Universal.Events":
                assert fields in ([("Value", (20,))], [("Value", (21,))]), f"{name}: {fields}"
            self.metadata[number] = (provider, event, name, fields, optional)

    def optional(self, row):
        said = {}
        while not row.is_at_end():
            kind = row.fixed("B")
            if kind in (1, 8, 9):
                said[{1: "opcode", 8: "level", 9: "version"}[kind]] = row.fixed("B")
            elif kind == 3:
                said["keywords"] = row.fixed("Q")
            elif kind in (4, 5):
                said[{4: "template", 5: "description"}[kind]] = row.text()
            elif kind == 6:
                key = row.text()
                said[key] = row.text()
            else:
                assert kind == 7, f"no sort of metadata: {kind}"
                said["provider"] = str(uuid.UUID(bytes_le=row.take(16)))
        return said

    def thread_block(self, block):
        while not block.is_at_end():
            row = block.row()
            index = row.varuint()
            assert index not in self.threads, f"thread {index} is told twice"
            thread = {"name": "", "pid": None, "tid": None}
            while not row.is_at_end():
                kind = row.fixed("B")
                if kind == 1:
                    thread["name"] = row.text()
                else:
                    thread[{2: "pid", 3: "tid"}[kind]] = row.varuint()
            self.threads[index] = thread

    def remove_threads(self, block):
        while not block.is_at_end():
            index, number = block.varuint(), block.varuint(32)
            self.skipped(index, number)
            del self.threads[index]

    def stack_block(self, block):
        first, count = block.fixed("II")
        assert first > 0
        for number in range(first, first + count):
            assert number not in self.stacks, f"stack {number} is told twice"
            data = block.take(block.fixed("I"))
            layout = "I" if self.pointer == 4 else "Q"
            self.stacks[number] = [address for (address,) in struct.iter_unpack("<" + layout, data)]

    def label_block(self, block):
        first, count = block.fixed("II")
        assert first > 0
        for number in range(first, first + count):
            assert number not in self.labels, f"list {number} of labels is told twice"
            self.labels[number] = []
            kind = 0
            while kind < 0x80:
                kind = block.fixed("B")
                assert kind & 0x7F in (5, 6), f"no label with a name: {kind}"
                key = block.text()
                self.labels[number].append((key, block.text() if kind & 0x7F == 5 else block.varint()))

    def sequence_point(self, block):
        time, flags, count = block.fixed("QII")
        assert flags < 4
        assert time >= self.latest, "an event is later than the sequence point behind it"
        for _ in range(count):
            index, number = block.varuint(), block.varuint(32)
            self.skipped(index, number)
        self.point = time
        self.stacks, self.labels = {}, {}
        if flags & 1:
            self.threads = {}
        if flags & 2:
            self.metadata = {}

    # A thread has numbered this many events, which may be more than are there.
    def skipped(self, thread, number):
        assert number >= self.sequence[thread], f"thread {thread} goes back to event {number}"
        self.lost += number - self.sequence[thread]
        self.sequence[thread] = number

    def event_block(self, block):
        size, flags, earliest, latest = block.fixed("hhqq")
        assert flags in (0, 1)
        block.take(size - 20)
        times = []
        # Of the event before: metadata, sequence number, capture thread, CPU, thread, stack, time, labels, bytes.
        last = [0] * 9
        while not block.is_at_end():
            last = self.compressed(block, last) if flags == 1 else self.plain(block)
            times.append(self.event(last, Bytes(block.take(last[8]))))
        assert (min(times), max(times)) == (earliest, latest), "the block's times are not those of its events"

    def compressed(self, block, last):
        metadata, sequence, capture, cpu, thread, stack, time, labels, size = last
        flags = block.fixed("B")
        assert flags & 32 == 0
        if flags & 1:
            metadata = block.varuint(32)
        if flags & 2:
            sequence = sequence + block.varuint(32) & 0xFFFFFFFF
            capture, cpu = block.varuint(), block.varuint(32)
        sequence = sequence + 1 & 0xFFFFFFFF
        if flags & 4:
            thread = block.varuint()
        if flags & 8:
            stack = block.varuint(32)
        time += block.varuint()
        if flags & 16:
            labels = block.varuint(32)
        if flags & 128:
            size = block.varuint(32)
        self.is_sorted = flags & 64 != 0
        return [metadata, sequence, capture, cpu, thread, stack, time, labels, size]

    def plain(self, block):
        whole, metadata, sequence, thread, capture, cpu, stack, time, labels, size = block.fixed("IIIQQIIQII")
        assert whole == 48 + size
        self.is_sorted = metadata >> 31 == 1
        return [metadata & 0x7FFFFFFF, sequence, capture, cpu, thread, stack, time, labels, size]

    def event(self, header, payload):
        metadata, sequence, capture, cpu, thread, stack, time, labels, _ = header
        self.skipped(capture, sequence - 1)
        self.sequence[capture] = sequence
        assert capture in self.threads, f"thread {capture} is not told"
        assert time >= self.captured[capture], "a thread's events are out of order"
        assert time >= self.point, "an event is earlier than the sequence point before it"
        assert time >= self.sorted, "an event is earlier than one that says that all are there"
        self.captured[capture] = time
        self.latest = max(self.latest, time)
        if self.is_sorted:
            self.sorted = time
        provider, number, name, fields, optional = self.metadata[metadata]
        values = [(field, value_of(payload, of)) for field, of in fields]
        payload.end()
        self.events.append(
            {
                "time": time,
                "provider": provider,
                "id": number,
                "name": name,
                "about": optional,
                "fields": values,
                "cpu": cpu,
                "stack": self.stacks[stack] if stack else [],
                "labels": self.labels[labels] if labels else [],
                **{f"thread_{key}" if key == "name" else key: value for key, value in self.threads[thread].items()},
            }
        )
        return time


class System:
    def __init__(self, events):
        self.processes = []
        # How often a pid was given.
        self.lives = defaultdict(int)
        # By number. What several processes share, as the kernel, is told of each, by one number.
        self.mappings = {}
        self.symbols = {}
        self.files = {}
        # When the lives of a pid began; by pid the mappings, and by the number of one its symbols.
        self.began = defaultdict(list)
        self.by_pid = defaultdict(list)
        self.by_mapping = defaultdict(list)
        for event in sorted(events, key=lambda event: event["time"]):
            if event["provider"] == "Universal.System":
                self.add(event, dict(event["fields"]))
        for told in self.mappings.values():
            for mapping in told:
                self.by_pid[mapping["pid"]].append(mapping)
        for symbol in self.symbols.values():
            self.by_mapping[symbol["MappingId"]].append(symbol)
            mapping = self.mappings[symbol["MappingId"]][0]
            assert mapping["StartAddress"] <= symbol["StartAddress"] <= symbol["EndAddress"] <= mapping["EndAddress"]

    def add(self, event, fields):
        name = event["name"]
        of = {"time": event["time"], "pid": event["pid"], "life": self.lives[event["pid"]]}
        number = fields.pop("Id", None)
        if name == "ProcessMapping":
            assert number > 0 and fields["StartAddress"] < fields["EndAddress"]
            told = self.mappings.setdefault(number, [])
            whose = [(other["pid"], other["life"]) for other in told]
            assert (of["pid"], of["life"]) not in whose, f"mapping {number} is told twice"
            # What is told of a file comes before its mapping.
            about = self.files[fields["MetadataId"]] if fields["MetadataId"] else None
            told.append({**of, "number": number, **fields, "about": about})
            assert len({tuple(list(other.values())[3:-1]) for other in told}) == 1, f"mapping {number} differs"
        elif name == "ProcessSymbol":
            assert number not in self.symbols, f"symbol {number} is told twice"
            self.symbols[number] = fields
        elif name == "ProcessMappingMetadata":
            assert number > 0 and number not in self.files, f"metadata {number} is told twice"
            texts = [fields["SymbolMetadata"], fields["VersionMetadata"]]
            self.files[number] = [json.loads(text) if text else None for text in texts]
        else:
            if name != "ProcessExit":
                self.lives[of["pid"]] += 1
                self.began[of["pid"]].append(of["time"])
            inner = fields.get("NamespaceId")
            self.processes.append({**of, "event": name, "name": fields.get("Name"), "namespace_pid": inner})

    # A name and a path, of what was mapped there last by then in that life of the pid, and bytes from the beginning of that. A symbol's
    # last address belongs to it, as PerfView takes it, and may be where the mapping ends; code that no symbol covers has no name. What was
    # made at run time may be named by the mapping that it was met in first. The kernel is where nothing else is.
    def frame(self, pid, time, address):
        life = sum(began <= time for began in self.began[pid])
        begun = [of for of in self.by_pid[pid] if of["time"] <= time and of["life"] == life]
        holds = lambda of, end: of["StartAddress"] <= address < of["EndAddress"] + end
        rank = lambda of: (of["FileName"] != "vmlinux", of["time"], of["number"])
        around = sorted((of for of in begun if holds(of, 0)), key=rank, reverse=True)
        ending = sorted((of for of in begun if holds(of, 1) and of not in around), key=rank, reverse=True)
        top = (around + ending)[:1]
        alike = [of for of in around[1:] if "/" not in of["FileName"] and of["FileName"] == top[0]["FileName"]]
        for of in top + alike + ending:
            names = {
                symbol["Name"]
                for symbol in self.by_mapping[of["number"]]
                if symbol["StartAddress"] <= address <= symbol["EndAddress"]
            }
            assert len(names) <= 1, f"{address:#x} of {pid} has several names: {names}"
            if names:
                return names.pop(), *self.place(of, address)
        return ("", *self.place(around[0], address)) if around else None

    def place(self, mapping, address):
        return mapping["FileName"], address - mapping["StartAddress"]


with open(sys.argv[1], "rb") as file:
    reader = Reader(file.read())
reader.read()
system = System(reader.events)
events = []
for event in reader.events:
    if event["provider"] != "Universal.System":
        event["stack"] = [system.frame(event["pid"], event["time"], address) for address in event["stack"]]
        events.append(event)
told = {
    "utc": reader.utc,
    "ticks": reader.ticks,
    "frequency": reader.frequency,
    "pairs": reader.pairs,
    "lost": reader.lost,
    "processes": system.processes,
    "mappings": [mapping for told in system.mappings.values() for mapping in told],
    "events": events,
}
json.dump(told, sys.stdout)
