//! A receiver by HTTP that answers as it is told to, and keeps what it was sent.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use flate2::read::GzDecoder;
use opentelemetry_proto::tonic::collector::profiles::v1development::{
    ExportProfilesPartialSuccess, ExportProfilesServiceRequest, ExportProfilesServiceResponse,
};
use prost::Message as _;

/// How often each stack is there, by its names, root first, without the program's.
pub(crate) type Stacks = BTreeMap<String, i64>;

/// How a request is answered.
pub(crate) enum Answer {
    /// With a status line, headers, and a body.
    Bytes(&'static str, Vec<u8>),
    /// Not at all, as long as the client waits.
    Nothing,
    /// By closing the connection, and listening no more.
    Gone,
}

/// That of who has taken all.
pub(crate) fn taken() -> Answer {
    partly(0, "")
}

/// That of who has not taken so many profiles, and says why.
pub(crate) fn partly(rejected_profiles: i64, message: &str) -> Answer {
    let partial = ExportProfilesPartialSuccess { rejected_profiles, error_message: message.to_owned() };
    let is_whole = rejected_profiles == 0 && message.is_empty();
    let answer = ExportProfilesServiceResponse { partial_success: (!is_whole).then_some(partial) };
    Answer::Bytes("200 OK\r\nContent-Type: application/x-protobuf", answer.encode_to_vec())
}

/// A request as it came.
pub(crate) struct Received {
    pub(crate) at: Instant,
    /// The first line, and headers in lower case.
    pub(crate) lines: Vec<String>,
    pub(crate) body: Vec<u8>,
}

impl Received {
    pub(crate) fn has(&self, header: &str) -> bool {
        self.lines.iter().any(|line| line == header)
    }

    /// The message, unpacked.
    pub(crate) fn message(&self) -> Vec<u8> {
        let mut message = Vec::new();
        if self.has("content-encoding: gzip") {
            GzDecoder::new(&*self.body).read_to_end(&mut message).unwrap();
        } else {
            message.clone_from(&self.body);
        }
        message
    }

    /// Its stacks, each with the sum of its values.
    pub(crate) fn stacks(&self) -> Stacks {
        let request = ExportProfilesServiceRequest::decode(&*self.message()).unwrap();
        let tables = request.dictionary.unwrap();
        let mut stacks = Stacks::new();
        let scopes = request.resource_profiles.iter().flat_map(|resource| &resource.scope_profiles);
        for sample in scopes.flat_map(|scope| &scope.profiles).flat_map(|profile| &profile.samples) {
            let locations = &tables.stack_table[sample.stack_index as usize].location_indices;
            // The last line of a place is of the function that all others are inlined into.
            let places = locations.iter().rev().map(|&location| &tables.location_table[location as usize]);
            let names = places.flat_map(|place| place.lines.iter().rev()).map(|line| {
                let function = &tables.function_table[line.function_index as usize];
                tables.string_table[function.name_strindex as usize].as_str()
            });
            let names: Vec<&str> = names.collect();
            let value = sample.values.iter().sum::<i64>();
            // Each value is 1 where there are none.
            let value =
                if sample.values.is_empty() { sample.timestamps_unix_nano.len() as i64 } else { value };
            *stacks.entry(names.join(";")).or_default() += value;
        }
        stacks
    }
}

pub(crate) struct Receiver {
    pub(crate) url: String,
    port: u16,
    ended: mpsc::Sender<()>,
    server: JoinHandle<Vec<Received>>,
}

impl Receiver {
    /// One that gives these answers, and after the last of them the last again.
    pub(crate) fn new(answers: Vec<Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (ended, is_ended) = mpsc::channel();
        let server = thread::spawn(move || serve(&listener, &answers, &is_ended));
        Self { url: format!("http://127.0.0.1:{port}"), port, ended, server }
    }

    /// What it was sent.
    pub(crate) fn received(self) -> Vec<Received> {
        // It may listen no more.
        let _ = self.ended.send(());
        drop(TcpStream::connect(("127.0.0.1", self.port)));
        self.server.join().unwrap()
    }
}

fn serve(listener: &TcpListener, answers: &[Answer], is_ended: &mpsc::Receiver<()>) -> Vec<Received> {
    let mut all = Vec::new();
    loop {
        let (stream, _) = listener.accept().unwrap();
        if is_ended.try_recv().is_ok() {
            return all;
        }
        let mut reader = BufReader::new(stream);
        while let Some(received) = receive(&mut reader) {
            let answer = answers.get(all.len()).or(answers.last()).unwrap();
            all.push(received);
            match answer {
                Answer::Bytes(head, body) => {
                    let head = format!("HTTP/1.1 {head}\r\nContent-Length: {}\r\n\r\n", body.len());
                    // A client that has enough of it may have gone.
                    if reader.get_mut().write_all(&[head.as_bytes(), body].concat()).is_err() {
                        break;
                    }
                }
                // The client ends the connection.
                Answer::Nothing => drop(reader.read_to_end(&mut Vec::new())),
                Answer::Gone => return all,
            }
        }
    }
}

/// The next request of a connection; `None` when there are no more.
fn receive(reader: &mut BufReader<TcpStream>) -> Option<Received> {
    reader.get_ref().set_read_timeout(Some(Duration::from_mins(1))).unwrap();
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        let header = line.split_once(": ").map(|(name, value)| format!("{}: {value}", name.to_lowercase()));
        lines.push(header.unwrap_or_else(|| line.to_owned()));
    }
    let length = lines.iter().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
    let mut body = vec![0; length.parse().unwrap()];
    reader.read_exact(&mut body).ok()?;
    Some(Received { at: Instant::now(), lines, body })
}
