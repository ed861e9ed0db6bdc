//! Receivers by HTTP.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use crate::http_receiver::{Answer, Received, Receiver, partly, taken};
use crate::sending::{Stacks, convert, outcome, stacks};

/// A request takes so many bytes at most.
const LIMIT: (&str, &str) = ("COLLECTOR_OTLP_LIMIT", "65536");

/// What comes of sending these to a receiver with such answers, with these variables.
fn send(stacks: &Stacks, answers: Vec<Answer>, variables: &[(&str, &str)]) -> (i32, String, Vec<Received>) {
    let receiver = Receiver::new(answers);
    let (mut collector, _file) = convert(stacks, &receiver.url);
    let (code, says) = outcome(collector.envs(variables.iter().copied()));
    (code, says, receiver.received())
}

/// The stacks of all requests.
fn together<'a>(received: impl IntoIterator<Item = &'a Received>) -> Stacks {
    let mut all = Stacks::new();
    for (stack, count) in received.into_iter().flat_map(Received::stacks) {
        *all.entry(stack).or_default() += count;
    }
    all
}

fn sent(says: &str) -> &str {
    says.lines().find(|line| line.starts_with("sent ")).unwrap_or_else(|| panic!("{says}"))
}

#[test]
fn all_is_sent_in_requests_below_the_limit() {
    let stacks = stacks(5000);
    let headers = ("OTEL_EXPORTER_OTLP_HEADERS", "Authorization=Bearer%20abc,x-tenant=7");
    let (code, says, received) = send(&stacks, vec![taken()], &[LIMIT, headers]);
    assert_eq!(code, 0, "{says}");
    assert!(received.len() > 3, "{says}");
    assert!(together(&received) == stacks);
    for request in &received {
        assert!(request.message().len() <= 65536);
        assert_eq!(request.lines[0], "POST /v1development/profiles HTTP/1.1");
        let kind = ["content-type: application/x-protobuf", "content-encoding: gzip"];
        let own = ["authorization: Bearer abc", "x-tenant: 7"];
        assert!(kind.into_iter().chain(own).all(|header| request.has(header)), "{:?}", request.lines);
    }
    assert_eq!(
        sent(&says).split(" to ").next(),
        Some(&*format!("sent 5000 samples in {} requests", received.len()))
    );
    let (code, says, received) = send(&stacks, vec![taken()], &[("OTEL_EXPORTER_OTLP_COMPRESSION", "none")]);
    assert_eq!((code, received.len()), (0, 1), "{says}");
    assert!(received[0].lines.iter().all(|line| !line.starts_with("content-encoding")));
    assert!(received[0].stacks() == stacks);
}

#[test]
fn nobody_who_listens_is_told_before_anything_is_read() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let (mut collector, _file) = convert(&stacks(1), &format!("http://127.0.0.1:{port}"));
    let (code, says) = outcome(&mut collector);
    assert_eq!(code, 1, "{says}");
    assert!(says.contains("nobody listens at http://127.0.0.1:") && says.contains("refused"), "{says}");
}

#[test]
fn what_is_refused_is_counted_and_the_rest_is_sent() {
    let stacks = stacks(5000);
    // google.rpc.Status with a message.
    let refused = || {
        let kind = "400 Bad Request\r\nContent-Type: application/x-protobuf";
        Answer::Bytes(kind, b"\x08\x03\x12\x0bno such day".to_vec())
    };
    let (code, says, received) = send(&stacks, vec![refused(), taken()], &[LIMIT]);
    assert_eq!(code, 1, "{says}");
    let (lost, taken) = (received[0].stacks().len(), together(&received[1..]).len());
    assert_eq!(lost + taken, 5000);
    let expected = format!(
        "{taken} samples in {} requests were taken; {lost} in 1 requests were refused: status 400 Bad Request: no such day",
        received.len() - 1
    );
    assert!(says.contains(&expected), "{says}");
    let (code, says, received) =
        send(&stacks, vec![Answer::Bytes("413 Payload Too Large", Vec::new()), partly(0, "")], &[LIMIT]);
    assert_eq!(code, 1, "{says}");
    assert!(says.contains("COLLECTOR_OTLP_LIMIT") && received.len() > 2, "{says}");
}

#[test]
fn who_has_no_time_is_asked_again_when_it_says() {
    let stacks = stacks(10);
    let busy = Answer::Bytes("429 Too Many Requests\r\nRetry-After: 1", Vec::new());
    let (code, says, received) = send(&stacks, vec![busy, taken()], &[]);
    assert_eq!((code, received.len()), (0, 2), "{says}");
    assert!(received[1].at - received[0].at >= Duration::from_secs(1));
    assert!(received[0].body == received[1].body && received[1].stacks() == stacks);
    assert!(says.contains("status 429 Too Many Requests: it is tried again in 1"), "{says}");
    // A minute is as long as anything is tried.
    let busy = Answer::Bytes("503 Service Unavailable\r\nRetry-After: 3600", Vec::new());
    let started = Instant::now();
    let (code, says, received) = send(&stacks, vec![busy], &[]);
    assert_eq!((code, received.len()), (1, 1), "{says}");
    assert!(started.elapsed() < Duration::from_secs(30));
    let expected = "0 samples in 0 requests were taken; 10 were given up: status 503 Service Unavailable, and again after 3600s";
    assert!(says.contains(expected), "{says}");
    let never = Answer::Bytes("429 Too Many Requests\r\nRetry-After: 18446744073709551615", Vec::new());
    let (code, says, _) = send(&stacks, vec![never], &[]);
    assert_eq!(code, 1, "{says}");
}

#[test]
fn rejected_profiles_are_told() {
    let (code, says, received) = send(&stacks(10), vec![partly(1, "quota")], &[]);
    assert_eq!((code, received.len()), (1, 1), "{says}");
    let expected = "10 samples in 1 requests were taken, but 1 of their 1 profiles rejected: quota";
    assert!(says.contains(expected), "{says}");
    // What is said beside is no failure.
    let (code, says, _) = send(&stacks(10), vec![partly(0, "old version")], &[]);
    assert_eq!(code, 0, "{says}");
    assert!(says.contains("warning: the receiver says: old version"), "{says}");
}

#[test]
fn who_never_answers_is_given_up() {
    let started = Instant::now();
    let short = ("OTEL_EXPORTER_OTLP_TIMEOUT", "200");
    let (code, says, received) = send(&stacks(10), vec![Answer::Nothing], &[short]);
    assert_eq!(code, 1, "{says}");
    assert!(received.len() > 1, "it is tried again");
    assert!(started.elapsed() < Duration::from_secs(30));
    assert!(says.contains("10 were given up: no answer within"), "{says}");
}

#[test]
fn who_goes_away_is_given_up_with_the_rest() {
    let stacks = stacks(5000);
    let short = ("OTEL_EXPORTER_OTLP_TIMEOUT", "200");
    let (code, says, received) = send(&stacks, vec![taken(), Answer::Gone], &[LIMIT, short]);
    assert_eq!((code, received.len()), (1, 2), "{says}");
    let taken = received[0].stacks().len();
    let expected = format!("{taken} samples in 1 requests were taken; {} were given up: ", 5000 - taken);
    assert!(says.contains(&expected), "{says}");
}

#[test]
fn a_stack_that_fits_no_request_is_told() {
    let mut stacks = stacks(10);
    stacks.insert("main;".to_owned() + &"x".repeat(70_000), 1);
    let (code, says, received) = send(&stacks, vec![taken()], &[LIMIT]);
    assert_eq!(code, 1, "{says}");
    assert_eq!(together(&received).len(), 10);
    assert!(says.contains("; 1 are too large for a request"), "{says}");
}

#[test]
fn who_is_no_receiver_is_told() {
    let page = || Answer::Bytes("200 OK\r\nContent-Type: text/html", b"<html>".to_vec());
    let (code, says, received) = send(&stacks(10), vec![page()], &[]);
    assert_eq!((code, received.len()), (1, 1), "{says}");
    assert!(says.contains("an answer that is no OTLP: text/html"), "{says}");
    let absent = Answer::Bytes("404 Not Found\r\nContent-Type: text/plain", b"no \x1b[31mpage".to_vec());
    let (code, says, received) = send(&stacks(10), vec![absent], &[]);
    assert_eq!((code, received.len()), (1, 1), "{says}");
    assert!(says.contains("status 404 Not Found: no  [31mpage: profiles may be off there"), "{says}");
    let moved = Answer::Bytes("302 Found\r\nLocation: /elsewhere", Vec::new());
    let (code, says, received) = send(&stacks(10), vec![moved], &[]);
    assert_eq!((code, received.len()), (1, 1), "{says}");
    let endless = Answer::Bytes("200 OK", vec![b'x'; 5 << 20]);
    let (code, says, _) = send(&stacks(10), vec![endless], &[]);
    assert_eq!(code, 1);
    assert!(says.contains("its answer is too long"), "{says}");
}

#[test]
fn a_command_line_that_means_nothing_is_refused() {
    for (url, more, expected) in [
        ("http://localhost:1", ["--format", "folded"], "takes --format otlp alone"),
        ("http://localhost:1", ["--format", "perf.data"], "takes --format otlp alone"),
        ("http://ann:secret@localhost", ["--format", "otlp"], "OTEL_EXPORTER_OTLP_HEADERS"),
        ("grpc://localhost/path", ["--format", "otlp"], "no path"),
        ("http://", ["--format", "otlp"], "is no URL"),
    ] {
        let (mut collector, _file) = convert(&stacks(1), url);
        let (code, says) = outcome(collector.args(more));
        assert_eq!(code, 2, "{says}");
        assert!(says.contains(expected), "{says}");
    }
    let receiver = Receiver::new(vec![taken()]);
    let (mut collector, _file) = convert(&stacks(1), &receiver.url);
    let (code, says) = outcome(collector.args(["-o", &receiver.url]));
    assert_eq!(code, 2, "{says}");
    assert!(says.contains("named twice"), "{says}");
    let (mut collector, _file) = convert(&stacks(1), &receiver.url);
    let (code, says) = outcome(collector.env("OTEL_EXPORTER_OTLP_TIMEOUT", "soon"));
    assert_eq!(code, 2, "{says}");
    assert!(says.contains("OTEL_EXPORTER_OTLP_TIMEOUT is \"soon\""), "{says}");
    assert!(receiver.received().is_empty());
}

#[test]
fn a_file_is_written_beside() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("same.folded");
    let receiver = Receiver::new(vec![taken()]);
    let path = format!("{}/other", receiver.url);
    let stacks = stacks(10);
    let (mut collector, _file) = convert(&stacks, &path);
    let (code, says) = outcome(collector.arg("-o").arg(&file));
    assert_eq!(code, 0, "{says}");
    let received = receiver.received();
    assert_eq!(received[0].lines[0], "POST /other HTTP/1.1");
    assert!(received[0].stacks() == stacks);
    assert_eq!(std::fs::read_to_string(file).unwrap().lines().count(), 10);
}
