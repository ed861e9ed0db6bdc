# OTLP profiles, decoded by OpenTelemetry's own messages, by the rules that
# opentelemetry/proto/profiles/v1development/profiles.proto of open-telemetry/opentelemetry-proto gives. Writes what they tell as
# JSON.

import json
import os
import sys

sys.path.insert(0, os.path.dirname(__file__))

import protobuf_rules
from opentelemetry.proto.collector.profiles.v1development import profiles_service_pb2 as service
from opentelemetry.proto.profiles.v1development import profiles_pb2 as pb


def value(any_value):
    kind = any_value.WhichOneof("value")
    if kind == "array_value":
        return [value(one) for one in any_value.array_value.values]
    return getattr(any_value, kind)


class Dictionary:
    def __init__(self, tables):
        self.tables = tables
        self.used = {field.name: {0} for field in pb.ProfilesDictionary.DESCRIPTOR.fields}
        for field, used in self.used.items():
            table = getattr(tables, field)
            assert len(table) > 0, f"{field} is empty"
            first = table[0]
            assert first == "" if isinstance(first, str) else first == type(first)(), f"{field} does not begin with nothing"
            entries = [entry if isinstance(entry, str) else entry.SerializeToString(deterministic=True) for entry in table]
            assert len(set(entries)) == len(entries), f"{field} has entries twice"

    def get(self, table, index):
        assert index >= 0
        self.used[table].add(index)
        return getattr(self.tables, table)[index]

    def string(self, index):
        return self.get("string_table", index)

    def attributes(self, message):
        found = {}
        for index in message.attribute_indices:
            attribute = self.get("attribute_table", index)
            key = self.string(attribute.key_strindex)
            assert key not in found, f"{key} is there twice"
            found[key] = value(attribute.value)
        return found

    def frame(self, index):
        location = self.get("location_table", index)
        mapping = self.get("mapping_table", location.mapping_index)
        lines = []
        for line in location.lines:
            function = self.get("function_table", line.function_index)
            name, file = self.string(function.name_strindex), self.string(function.filename_strindex)
            self.string(function.system_name_strindex)
            lines.append(f"{name} {file}:{line.line}" if file else name)
        return {
            "lines": lines,
            "address": location.address,
            "attributes": self.attributes(location),
            "path": self.string(mapping.filename_strindex),
            "range": [mapping.memory_start, mapping.memory_limit, mapping.file_offset],
            "of_file": self.attributes(mapping),
        }

    def stack(self, index):
        return [self.frame(location) for location in self.get("stack_table", index).location_indices]

    def type(self, value_type):
        return [self.string(value_type.type_strindex), self.string(value_type.unit_strindex)]

    def check_use(self):
        for field, used in self.used.items():
            unused = set(range(len(getattr(self.tables, field)))) - used
            assert not unused, f"{field}: nothing refers to {unused}"


def read_profile(profile, dictionary):
    begin, end = profile.time_unix_nano, profile.time_unix_nano + profile.duration_nano
    samples = []
    for sample in profile.samples:
        times, values = list(sample.timestamps_unix_nano), list(sample.values)
        assert times or values
        assert not times or not values or len(times) == len(values)
        assert all(begin <= time < end for time in times)
        assert sample.link_index == 0
        samples.append({
            "stack": dictionary.stack(sample.stack_index),
            "attributes": dictionary.attributes(sample),
            "times": times,
            "values": values,
        })
    assert len({(bool(sample["times"]), bool(sample["values"])) for sample in samples}) == 1, "samples of several shapes"
    return {
        "type": dictionary.type(profile.sample_type),
        "period_type": dictionary.type(profile.period_type),
        "period": profile.period,
        "time": begin,
        "duration": profile.duration_nano,
        "attributes": dictionary.attributes(profile),
        "samples": samples,
    }


with open(sys.argv[1], "rb") as file:
    data = file.read()
profiles = pb.ProfilesData.FromString(data)
protobuf_rules.check(profiles)
# What is sent and what is kept are the same bytes.
assert service.ExportProfilesServiceRequest.FromString(data).SerializeToString() == profiles.SerializeToString()
dictionary = Dictionary(profiles.dictionary)
told = []
for resource in profiles.resource_profiles:
    [scope] = resource.scope_profiles
    assert scope.scope.name == "collector" and scope.scope.version
    keys = [attribute.key for attribute in resource.resource.attributes]
    assert len(set(keys)) == len(keys)
    told.append({
        "resource": {attribute.key: value(attribute.value) for attribute in resource.resource.attributes},
        "profiles": [read_profile(profile, dictionary) for profile in scope.profiles],
    })
dictionary.check_use()
json.dump(told, sys.stdout)
