//! What `PerfView` printed of a file: `COUNT NAME:NUMBER`, and for the first events of each name
//! `EVENT MILLISECONDS: NAME PID=1; TID=2; PName=a; ProceNum=3; DataLen=4; ...`.

/// An `EVENT` line.
#[derive(Debug)]
pub(crate) struct Event<'a> {
    /// Since the beginning, rounded to microseconds.
    pub(crate) nanos: i64,
    pub(crate) name: &'a str,
    /// Of what it is about, for kernel events; -1 where there is none.
    pub(crate) pid: i64,
    pub(crate) tid: i64,
    pub(crate) cpu: u16,
    pub(crate) length: usize,
}

pub(crate) fn counts(text: &str) -> impl Iterator<Item = (&str, u64)> {
    text.lines().filter_map(|line| line.strip_prefix("COUNT ")).map(|line| {
        let (name, count) = line.trim_end().rsplit_once(':').unwrap();
        (name, count.parse().unwrap())
    })
}

pub(crate) fn events(text: &str) -> impl Iterator<Item = Event<'_>> {
    text.lines().filter_map(|line| line.strip_prefix("EVENT ")).map(|line| {
        let (time, line) = line.split_once(": ").unwrap();
        let (name, fields) = line.split_once(" PID=").unwrap();
        let (pid, fields) = fields.split_once("; TID=").unwrap();
        let (tid, fields) = fields.split_once("; PName=").unwrap();
        let (_, fields) = fields.split_once("; ProceNum=").unwrap();
        let (cpu, fields) = fields.split_once("; DataLen=").unwrap();
        let (length, _) = fields.split_once(';').unwrap();
        let (millis, micros) = time.split_once('.').unwrap();
        let digits: String = millis.chars().filter(char::is_ascii_digit).chain(micros.chars()).collect();
        assert_eq!(micros.len(), 3);
        Event {
            nanos: digits.parse::<i64>().unwrap() * 1000,
            name,
            pid: pid.replace(',', "").parse().unwrap(),
            tid: tid.replace(',', "").parse().unwrap(),
            cpu: cpu.parse().unwrap(),
            length: length.replace(',', "").parse().unwrap(),
        }
    })
}
