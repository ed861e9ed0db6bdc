//! OTLP profiles against recordings of known truth, as two readers take them: OpenTelemetry's crate for the receiving end, and its
//! messages for Python (`tests/python/otlp_profiles.py`), which checks the rules of the format besides.

use collector_common::ids::Nanos;
use collector_common::record::{AttributeValue, ClockAnchor, Exit, ExportMachine, ProcessId, Sample, Unit};
use export::format::otlp::{Otlp, Refusal, Request, Requests, Response};
use export::format::{ExportFormat, Profile};
use export::symbolize::Symbols;
use opentelemetry_proto::tonic::collector::profiles::v1development::{
    ExportProfilesPartialSuccess, ExportProfilesServiceRequest, ExportProfilesServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::{AnyValue, any_value};
use opentelemetry_proto::tonic::profiles::v1development::{
    Profile as ReceivedProfile, ProfilesDictionary, ValueType,
};
use proptest::prelude::*;
use prost::Message as _;
use serde_json::{Map, Value, json};

use crate::made::{CONTAINER, Made, PERIOD};
use crate::several::{MS, REALTIME, Several};
use crate::{random, tools};

fn written(machine: &ExportMachine, symbols: &Symbols) -> Vec<u8> {
    let mut out = Vec::new();
    Otlp.write(Profile { machine, symbols }, &mut out).unwrap();
    out
}

fn read(machine: &ExportMachine, symbols: &Symbols) -> Value {
    told(&written(machine, symbols))
}

/// What profiles are taken for: each by the crate and, where it is there, by the other reader, which agree.
pub(crate) fn told(bytes: &[u8]) -> Value {
    let request = ExportProfilesServiceRequest::decode(bytes).unwrap();
    // It would leave out fields that it does not know.
    assert_eq!(request.encoded_len(), bytes.len());
    let told = Received(request.dictionary.as_ref().unwrap()).all(&request);
    if let Some(mut reader) = tools::python("otlp_profiles.py") {
        let file = tools::file(bytes, ".otlp");
        let by_python: Value = serde_json::from_str(&tools::output(reader.arg(&*file))).unwrap();
        assert_eq!(by_python, told);
    }
    told
}

/// The tables that a request's profiles refer to.
struct Received<'a>(&'a ProfilesDictionary);

impl Received<'_> {
    fn all(&self, request: &ExportProfilesServiceRequest) -> Value {
        let resources = request.resource_profiles.iter().map(|resource| {
            let attributes = &resource.resource.as_ref().unwrap().attributes;
            let attributes = attributes.iter().map(|one| (one.key.clone(), value(one.value.as_ref())));
            let profiles = resource.scope_profiles.iter().flat_map(|scope| &scope.profiles);
            json!({
                "resource": attributes.collect::<Map<_, _>>(),
                "profiles": profiles.map(|profile| self.profile(profile)).collect::<Vec<_>>(),
            })
        });
        resources.collect()
    }

    fn profile(&self, profile: &ReceivedProfile) -> Value {
        let samples = profile.samples.iter().map(|sample| {
            let stack = &self.0.stack_table[sample.stack_index as usize];
            json!({
                "stack": stack.location_indices.iter().map(|&frame| self.frame(frame)).collect::<Vec<_>>(),
                "attributes": self.attributes(&sample.attribute_indices),
                "times": sample.timestamps_unix_nano,
                "values": sample.values,
            })
        });
        json!({
            "type": self.value_type(profile.sample_type),
            "period_type": self.value_type(profile.period_type),
            "period": profile.period,
            "time": profile.time_unix_nano,
            "duration": profile.duration_nano,
            "attributes": self.attributes(&profile.attribute_indices),
            "samples": samples.collect::<Vec<_>>(),
        })
    }

    fn frame(&self, location: i32) -> Value {
        let location = &self.0.location_table[location as usize];
        let mapping = &self.0.mapping_table[location.mapping_index as usize];
        let lines = location.lines.iter().map(|line| {
            let function = self.0.function_table[line.function_index as usize];
            match (self.string(function.name_strindex), self.string(function.filename_strindex)) {
                (name, "") => name.to_owned(),
                (name, file) => format!("{name} {file}:{}", line.line),
            }
        });
        json!({
            "lines": lines.collect::<Vec<_>>(),
            "address": location.address,
            "attributes": self.attributes(&location.attribute_indices),
            "path": self.string(mapping.filename_strindex),
            "range": [mapping.memory_start, mapping.memory_limit, mapping.file_offset],
            "of_file": self.attributes(&mapping.attribute_indices),
        })
    }

    fn attributes(&self, indices: &[i32]) -> Value {
        let attributes = indices.iter().map(|&index| {
            let attribute = &self.0.attribute_table[index as usize];
            (self.string(attribute.key_strindex).to_owned(), value(attribute.value.as_ref()))
        });
        let attributes: Map<_, _> = attributes.collect();
        assert_eq!(attributes.len(), indices.len(), "each key once: {attributes:?}");
        Value::Object(attributes)
    }

    fn value_type(&self, value_type: Option<ValueType>) -> Value {
        let value_type = value_type.unwrap();
        json!([self.string(value_type.type_strindex), self.string(value_type.unit_strindex)])
    }

    fn string(&self, index: i32) -> &str {
        &self.0.string_table[index as usize]
    }
}

fn value(any: Option<&AnyValue>) -> Value {
    match any.unwrap().value.as_ref().unwrap() {
        any_value::Value::StringValue(text) => json!(text),
        any_value::Value::IntValue(number) => json!(number),
        any_value::Value::ArrayValue(list) => list.values.iter().map(|one| value(Some(one))).collect(),
        other => panic!("{other:?}"),
    }
}

fn several() -> Value {
    let several = Several::new();
    read(&several.machine, &several.symbols)
}

/// What is the same for each sample of a thread on a CPU.
fn thread(tid: u32, name: &str, cpu: u32) -> Value {
    json!({ "thread.id": tid, "thread.name": name, "cpu.logical_number": cpu })
}

fn with(mut attributes: Value, name: &str, value: impl Into<Value>) -> Value {
    attributes[name] = value.into();
    attributes
}

/// The time of day, milliseconds after the start.
fn day(ms: u64) -> u64 {
    REALTIME + ms * MS
}

/// Attributes, times and values of each sample of a profile, by the first time.
fn samples(profile: &Value) -> Value {
    let mut rows = profile["samples"].as_array().unwrap().clone();
    rows.sort_by_key(|row| row["times"][0].as_u64());
    rows.iter().map(|row| json!([row["attributes"], row["times"], row["values"]])).collect()
}

/// `ProfilesDictionary.attribute_table`: what refers to attributes maintains "the key uniqueness requirement".
#[test]
fn a_sample_has_each_key_once() {
    let Several { mut machine, symbols, .. } = Several::new();
    let [lock, tid] = ["lock", "thread.id"].map(|name| machine.intern_string(name));
    let texts = ["a", "b", "of another tool"].map(|text| machine.intern_string(text).into());
    let list = machine.attributes_mut().intern::<AttributeValue>(&[
        (lock, texts[0]),
        (lock, texts[1]),
        (tid, texts[2]),
    ]);
    let sample = machine.samples().at(0);
    machine.add_sample(&Sample { attributes: list, ..sample });
    let told = read(&machine, &symbols).to_string();
    assert!(told.contains(r#""lock":"a","lock_2":"b""#), "{told}");
    assert!(told.contains(r#""thread.id_2":"of another tool""#), "{told}");
}

#[test]
fn processes_are_resources_with_a_profile_for_each_kind() {
    let told = several();
    let machine = |process: Value| {
        let mut all = json!({
            "host.name": "build-07",
            "host.arch": "amd64",
            "os.type": "linux",
            "os.version": "6.18.0",
        });
        let process = process.as_object().unwrap().clone();
        all.as_object_mut().unwrap().extend(process);
        all
    };
    let resources: Vec<&Value> = told.as_array().unwrap().iter().map(|one| &one["resource"]).collect();
    let expected = [
        machine(json!({ "process.executable.name": "app", "process.pid": 300 })),
        machine(json!({
            "process.executable.name": "child",
            "process.pid": 400,
            "process.parent_pid": 300,
            "process.creation.time": "2025-06-15T15:06:40.010000000Z",
            "process.exit.time": "2025-06-15T15:06:40.020000000Z",
        })),
        machine(json!({
            "process.executable.name": "again",
            "process.pid": 400,
            "process.creation.time": "2025-06-15T15:06:40.030000000Z",
        })),
    ];
    assert_eq!(resources, expected.iter().collect::<Vec<_>>());
    let kinds = |resource: usize| {
        let profiles = told[resource]["profiles"].as_array().unwrap().iter();
        profiles.map(|one| json!([one["type"], one["period_type"], one["period"]])).collect::<Value>()
    };
    let cpu = json!([["samples", "count"], ["cpu", "nanoseconds"], MS]);
    let own = |name: &str, unit: &str| json!([[name, unit], [name, unit], 1]);
    let (off_cpu, space) = (own("off_cpu", "nanoseconds"), own("alloc_space", "bytes"));
    assert_eq!(kinds(0), json!([cpu, off_cpu, space]));
    assert_eq!(kinds(1), json!([cpu, own("sched:sched_process_exec", "count")]));
    assert_eq!(kinds(2), json!([cpu]));
    let profiles = told.as_array().unwrap().iter().flat_map(|one| one["profiles"].as_array().unwrap());
    let comments = json!(["command: app --all", "5 lost (ring_full 5)", "queue: 7.5 requests"]);
    for profile in profiles {
        assert_eq!(profile["attributes"], json!({ "pprof.profile.comment": comments }));
        assert_eq!(profile["time"], day(0));
        assert_eq!(profile["duration"], 40 * MS + 1);
    }
}

#[test]
fn processes_are_told_of_by_the_conventions() {
    let mut made = Made::new();
    let second = ProcessId(1);
    let program = made.machine.add_program(second, Nanos(10), "prog");
    made.machine.set_arguments(program, b"prog\0a b\0", true);
    made.machine.process_mut(second).unwrap().exit = Some(Exit::Code(3));
    let told = read(&made.machine, &made.symbols);
    let of = |pid: u32| {
        let resource = told.as_array().unwrap().iter().map(|one| &one["resource"]);
        let resource = resource.into_iter().find(|resource| resource["process.pid"] == pid).unwrap();
        let names = ["command_args", "vpid", "owner", "user.id", "linux.cgroup", "exit.code"];
        let values = names.map(|name| resource[format!("process.{name}")].clone());
        json!([values, resource["container.id"]])
    };
    // The user of a container is not known by name.
    let cgroup = format!("/docker/{CONTAINER}");
    assert_eq!(of(100), json!([[["prog", "--fast", "two words"], 1, "ann", 1000, null, null], null]));
    assert_eq!(of(200), json!([[["prog", "a b", "..."], 1, null, 1000, cgroup, 3], CONTAINER]));
}

#[test]
fn samples_keep_threads_times_and_values() {
    let told = several();
    let [cpu, off_cpu, space] = &told[0]["profiles"].as_array().unwrap()[..] else { panic!("{told}") };
    let (early, late, worker) =
        (thread(300, "app", 0), thread(300, "app: ready", 0), thread(301, "worker", 1));
    let expected = json!([
        [early, [day(1)], [1]],
        [worker, [day(5), day(6)], [1, 2]],
        [late, [day(8)], [1]],
        [late, [day(9)], [1]],
    ]);
    assert_eq!(samples(cpu), expected);
    let long = 10 * MS;
    let expected = json!([
        [with(worker.clone(), "lock", "0x7f00"), [day(15)], [long]],
        [with(thread(300, "app: ready", 1), "estimated", "yes"), [day(16)], [7 * MS]],
        [with(with(worker.clone(), "path", "/var/log/x"), "bytes", 4096), [day(20)], [long]],
        [worker, [day(25)], [5 * MS]],
    ]);
    assert_eq!(samples(off_cpu), expected);
    let expected = json!([
        [early, [day(2)], [4096]],
        [thread(301, "worker", 0), [day(3)], [512]],
        [late, [day(7)], [-96]],
    ]);
    assert_eq!(samples(space), expected);
    // Each value is 1, which need not be said.
    let executed = &told[1]["profiles"][1];
    assert_eq!(samples(executed), json!([[thread(400, "child", 0), [day(11)], []]]));
}

#[test]
fn stacks_have_functions_lines_and_files() {
    let told = several();
    let frame = |lines: &[&str], address: u64| {
        json!({
            "lines": lines,
            "address": address,
            "attributes": { "profile.frame.type": "native" },
            "path": "/opt/app",
            "range": [0x4000, 0x9000, 0x3000],
            "of_file": { "process.executable.build_id.gnu": "abcd01" },
        })
    };
    let running =
        json!([frame(&["helper helper.h:3", "run run.c:20"], 0x4200), frame(&["main main.c:7"], 0x4100)]);
    let waiting = json!([frame(&["wait"], 0x4300), frame(&["main main.c:7"], 0x4100)]);
    let [cpu, off_cpu, _] = &told[0]["profiles"].as_array().unwrap()[..] else { panic!("{told}") };
    let stacks = |profile: &Value| -> Vec<Value> {
        profile["samples"].as_array().unwrap().iter().map(|sample| sample["stack"].clone()).collect()
    };
    let count = |stack: Value| stacks(cpu).iter().filter(|other| **other == stack).count();
    assert_eq!((count(running), count(json!([])), stacks(cpu).len()), (3, 1, 4));
    assert_eq!(stacks(off_cpu), vec![waiting; 4]);
}

#[test]
fn frames_that_are_no_functions_of_files_are_kept() {
    let made = Made::new();
    let told = read(&made.machine, &made.symbols);
    // How often each stack of lines occurs, with where its innermost frame is.
    let mut counts = json!({});
    for sample in
        told.as_array().unwrap().iter().flat_map(|one| one["profiles"][0]["samples"].as_array().unwrap())
    {
        let stack = sample["stack"].as_array().unwrap();
        let names: Vec<String> = stack.iter().map(|frame| frame["lines"].to_string()).collect();
        let inner = stack.first().map_or(&Value::Null, |frame| &frame["path"]);
        let key = format!("{} {inner}", names.join(" "));
        let count = sample["times"].as_array().unwrap().len();
        counts[&key] = json!(counts[&key].as_u64().unwrap_or(0) + count as u64);
    }
    let work = r#"["work(int; char)"] ["main"]"#;
    let recurse = r#"["recurse"]"#;
    let expected = json!({
        format!("{work} \"/opt/prog\""): 60,
        format!("{recurse} {recurse} {recurse} [\"main\"] \"/opt/prog\""): 10,
        format!("[\"vfs_read\"] {work} \"[kernel.kallsyms]\""): 8,
        "[] [\"[stack cut]\"] \"/opt/prog\"": 4,
        "[] \"\"": 2,
        " null": 1,
    });
    assert_eq!(counts, expected);
    assert_eq!(told[0]["profiles"][0]["period"], PERIOD);
}

#[test]
fn without_a_time_of_day_values_are_added_up() {
    let mut several = Several::new();
    several.machine.system_mut().clocks = <_>::default();
    let told = read(&several.machine, &several.symbols);
    let values = |profile: usize| {
        let samples = told[0]["profiles"][profile]["samples"].as_array().unwrap().iter();
        assert!(samples.clone().all(|sample| sample["times"] == json!([])));
        samples.map(|sample| sample["values"][0].as_i64().unwrap()).sum::<i64>()
    };
    assert_eq!([values(0), values(1), values(2)], [6, 32 * MS as i64, 4512]);
}

#[test]
fn times_before_the_start_are_within_the_profile() {
    let mut several = Several::new();
    let system = several.machine.system_mut();
    system.start.0 += 10 * MS;
    system.clocks = <_>::default();
    system.clocks.start = Some(ClockAnchor { monotonic: system.start, realtime: day(10), boottime: None });
    let told = read(&several.machine, &several.symbols);
    let first = &told[0]["profiles"][0];
    assert_eq!([&first["time"], &first["duration"]], [&json!(day(1)), &json!(39 * MS + 1)]);
}

#[test]
fn an_empty_recording_has_no_profile() {
    let machine = ExportMachine::default();
    assert_eq!(read(&machine, &Symbols::unresolved(&machine)), json!([]));
}

/// All samples of requests, one row for each: when, which process, kind, thread, CPU and attributes, value and stack.
fn taken_apart(told: &Value) -> Vec<String> {
    let mut rows = Vec::new();
    for resource in told.as_array().unwrap() {
        for profile in resource["profiles"].as_array().unwrap() {
            for sample in profile["samples"].as_array().unwrap() {
                for (at, time) in sample["times"].as_array().unwrap().iter().enumerate() {
                    let value = sample["values"].get(at).unwrap_or(&Value::Null).as_i64().unwrap_or(1);
                    let what =
                        json!([resource["resource"], profile["type"], profile["period"], sample["stack"]]);
                    rows.push(format!("{time} {value} {} {what}", sample["attributes"]));
                }
            }
        }
    }
    rows
}

/// Each request, whose messages nobody but the crate has read.
fn requests(machine: &ExportMachine, symbols: &Symbols, most: usize) -> (Vec<Value>, u64) {
    let mut requests = Requests::new(Profile { machine, symbols }, most);
    let mut all = Vec::new();
    for request in requests.by_ref() {
        let Request { bytes, samples, profiles } = request.unwrap();
        assert!(bytes.len() <= most, "{} > {most}", bytes.len());
        let received = ExportProfilesServiceRequest::decode(&*bytes).unwrap();
        let told = Received(received.dictionary.as_ref().unwrap()).all(&received);
        assert_eq!(taken_apart(&told).len(), samples);
        let held = told.as_array().unwrap().iter().map(|one| one["profiles"].as_array().unwrap().len());
        assert_eq!(held.sum::<usize>(), profiles);
        all.push(told);
    }
    (all, requests.too_large())
}

/// The first and last time of the samples of a request.
fn times(told: &Value) -> (u64, u64) {
    let rows = taken_apart(told);
    let times = rows.iter().map(|row| row.split(' ').next().unwrap().parse().unwrap());
    (times.clone().min().unwrap(), times.max().unwrap())
}

/// Requests hold what a file does, each sample once, and one after the other in time.
fn assert_whole(machine: &ExportMachine, symbols: &Symbols, most: usize) -> usize {
    let (requests, too_large) = requests(machine, symbols, most);
    assert_eq!(too_large, 0);
    let mut apart: Vec<String> = requests.iter().flat_map(taken_apart).collect();
    let mut whole = taken_apart(&read(machine, symbols));
    apart.sort_unstable();
    whole.sort_unstable();
    assert_eq!(apart, whole);
    let spans: Vec<(u64, u64)> = requests.iter().map(times).collect();
    assert!(spans.windows(2).all(|two| two[0].1 <= two[1].0), "{spans:?}");
    for (told, (first, last)) in requests.iter().zip(spans) {
        for profile in told.as_array().unwrap().iter().flat_map(|one| one["profiles"].as_array().unwrap()) {
            let time = profile["time"].as_u64().unwrap();
            assert!(time <= first && last < time + profile["duration"].as_u64().unwrap());
        }
    }
    requests.len()
}

#[test]
fn requests_have_all_that_a_file_has() {
    let Several { machine, symbols, .. } = Several::new();
    assert_eq!(assert_whole(&machine, &symbols, 4_000_000), 1);
    let all = written(&machine, &symbols).len();
    assert_eq!(assert_whole(&machine, &symbols, all), 1);
    let few = assert_whole(&machine, &symbols, all - 1);
    let many = assert_whole(&machine, &symbols, all * 3 / 5);
    assert!(1 < few && few < many, "{few} {many}");
    let made = Made::new();
    let all = written(&made.machine, &made.symbols).len();
    assert!(assert_whole(&made.machine, &made.symbols, all * 2 / 3) > 1);
}

#[test]
fn a_request_is_read_by_the_other_reader() {
    let Several { machine, symbols, .. } = Several::new();
    let most = written(&machine, &symbols).len() * 2 / 3;
    let requests = Requests::new(Profile { machine: &machine, symbols: &symbols }, most);
    let all: Vec<Value> = requests.map(|request| told(&request.unwrap().bytes)).collect();
    assert!(all.len() > 1);
}

#[test]
fn a_sample_that_fits_no_request_is_counted() {
    let Several { machine, symbols, .. } = Several::new();
    let samples = machine.samples().len();
    assert_eq!(requests(&machine, &symbols, 100), (Vec::new(), samples as u64));
    // What tells of processes and the recording takes more than stacks do: only some samples are too large.
    let (some, too_large) = (700..2000)
        .map(|most| requests(&machine, &symbols, most))
        .find(|(some, too_large)| !some.is_empty() && *too_large > 0)
        .unwrap();
    let sent: usize = some.iter().map(|told| taken_apart(told).len()).sum();
    assert_eq!(sent as u64 + too_large, samples as u64);
}

#[test]
fn an_empty_recording_makes_no_request() {
    let machine = ExportMachine::default();
    assert_eq!(requests(&machine, &Symbols::unresolved(&machine), 100), (Vec::new(), 0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn any_recording_is_sent_whole(rows in random::rows(), most in 1500_usize..6_000) {
        let kinds = [("cpu", Unit::Count, 1_000_000), ("off_cpu", Unit::Nanoseconds, 1), ("space", Unit::Bytes, 1)];
        let (machine, symbols) = random::recording(&rows, &kinds);
        let (requests, too_large) = requests(&machine, &symbols, most);
        let mut apart: Vec<String> = requests.iter().flat_map(taken_apart).collect();
        let received = ExportProfilesServiceRequest::decode(&*written(&machine, &symbols)).unwrap();
        let mut whole = taken_apart(&Received(received.dictionary.as_ref().unwrap()).all(&received));
        apart.sort_unstable();
        whole.sort_unstable();
        prop_assert_eq!((apart, too_large), (whole, 0));
    }
}

#[test]
fn answers_of_receivers_are_read() {
    let partial = ExportProfilesPartialSuccess { rejected_profiles: 3, error_message: "too old".to_owned() };
    let answer = ExportProfilesServiceResponse { partial_success: Some(partial) }.encode_to_vec();
    let expected = Response { rejected_profiles: 3, message: "too old".to_owned() };
    assert_eq!(Response::of(&answer), Ok(expected));
    assert_eq!(Response::of(&[]), Ok(Response::default()));
    assert!(Response::of(b"<html>").is_err());
    // google.rpc.Status: code 3, the message, and a detail of another type.
    let status = b"\x08\x03\x12\x07no time\x1a\x05\x0a\x01x\x12\x00";
    assert_eq!(Refusal::of(status), Ok(Refusal { message: "no time".to_owned(), retry_after: None }));
}
