//! Receivers by gRPC.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::grpc_receiver::Receiver;
use crate::sending::{Stacks, convert, outcome, stacks};

/// A request takes so many bytes at most.
const LIMIT: (&str, &str) = ("COLLECTOR_OTLP_LIMIT", "65536");

/// What comes of sending these to a receiver with such answers, with these variables; `None` where there is no receiver.
fn send(stacks: &Stacks, answers: &Value, variables: &[(&str, &str)]) -> Option<(i32, String, Vec<Value>)> {
    let receiver = Receiver::new(answers, &[])?;
    let (mut collector, _file) = convert(stacks, &format!("grpc://127.0.0.1:{}", receiver.port));
    let (code, says) = outcome(collector.envs(variables.iter().copied()));
    Some((code, says, receiver.received()))
}

/// The stacks of all requests.
fn together(received: &[Value]) -> Stacks {
    let mut all = Stacks::new();
    for request in received {
        for (stack, count) in request["stacks"].as_object().unwrap() {
            *all.entry(stack.clone()).or_default() += count.as_i64().unwrap();
        }
    }
    all
}

#[test]
fn all_is_sent_in_requests_below_the_limit() {
    let stacks = stacks(5000);
    let headers = ("OTEL_EXPORTER_OTLP_PROFILES_HEADERS", "Authorization=Bearer%20abc");
    let Some((code, says, received)) = send(&stacks, &json!([{}]), &[LIMIT, headers]) else { return };
    assert_eq!(code, 0, "{says}");
    assert!(received.len() > 3 && together(&received) == stacks, "{says}");
    assert!(says.contains(&format!("sent 5000 samples in {} requests", received.len())), "{says}");
    for request in &received {
        assert!(request["bytes"].as_u64().unwrap() <= 65536);
        assert_eq!(request["headers"]["authorization"], "Bearer abc");
    }
    let none = ("OTEL_EXPORTER_OTLP_COMPRESSION", "none");
    let (code, says, received) = send(&stacks, &json!([{}]), &[none]).unwrap();
    assert_eq!((code, received.len()), (0, 1), "{says}");
    assert!(together(&received) == stacks);
}

/// The usual receiver takes 4 MiB, packed or not.
#[test]
fn the_usual_limit_is_that_of_receivers() {
    let long = |number: i64| (format!("main;{number}_{}", "x".repeat(20_000)), number);
    let stacks: Stacks = (1..=300).map(long).collect();
    let Some((code, says, received)) = send(&stacks, &json!([{}]), &[]) else { return };
    assert_eq!(code, 0, "{says}");
    assert!(received.len() > 1 && together(&received) == stacks, "{says}");
    let large = ("COLLECTOR_OTLP_LIMIT", "8000000");
    for compression in ["gzip", "none"] {
        let variables = [large, ("OTEL_EXPORTER_OTLP_COMPRESSION", compression)];
        let (code, says, received) = send(&stacks, &json!([{}]), &variables).unwrap();
        assert_eq!((code, received.len()), (1, 0), "{says}");
        assert!(says.contains("300 in 1 requests were refused: RESOURCE_EXHAUSTED"), "{says}");
    }
}

#[test]
fn who_has_no_time_is_asked_again() {
    let stacks = stacks(10);
    let answers = json!([{ "code": "UNAVAILABLE" }, { "code": "RESOURCE_EXHAUSTED", "retry": 1 }, {}]);
    let Some((code, says, received)) = send(&stacks, &answers, &[]) else { return };
    assert_eq!((code, received.len()), (0, 3), "{says}");
    assert!(received.iter().all(|request| request["stacks"] == received[0]["stacks"]));
    let at = |request: usize| received[request]["at"].as_f64().unwrap();
    assert!(at(2) - at(1) >= 1.0, "{says}");
    assert!(together(&received[2..]) == stacks);
}

#[test]
fn what_is_refused_is_counted_and_the_rest_is_sent() {
    let stacks = stacks(5000);
    let answers = json!([{ "code": "INVALID_ARGUMENT", "message": "nicht gültig\n100%" }, {}]);
    let Some((code, says, received)) = send(&stacks, &answers, &[LIMIT]) else { return };
    assert_eq!(code, 1, "{says}");
    let (lost, taken) = (together(&received[..1]).len(), together(&received[1..]).len());
    assert_eq!(lost + taken, 5000);
    let expected = format!(
        "{taken} samples in {} requests were taken; {lost} in 1 requests were refused: INVALID_ARGUMENT: nicht gültig 100%",
        received.len() - 1
    );
    assert!(says.contains(&expected), "{says}");
}

#[test]
fn rejected_profiles_are_told() {
    let answers = json!([{ "rejected": 1, "message": "quota" }]);
    let Some((code, says, received)) = send(&stacks(10), &answers, &[]) else { return };
    assert_eq!((code, received.len()), (1, 1), "{says}");
    let expected = "10 samples in 1 requests were taken, but 1 of their 1 profiles rejected: quota";
    assert!(says.contains(expected), "{says}");
}

#[test]
fn who_takes_no_profiles_is_given_up_at_once() {
    let answers = json!([{ "code": "UNIMPLEMENTED", "message": "no such service" }]);
    let Some((code, says, received)) = send(&stacks(5000), &answers, &[LIMIT]) else { return };
    assert_eq!((code, received.len()), (1, 1), "{says}");
    assert!(says.contains("5000 were given up: UNIMPLEMENTED: no such service"), "{says}");
}

#[test]
fn who_never_answers_is_given_up() {
    let started = Instant::now();
    let short = ("OTEL_EXPORTER_OTLP_TIMEOUT", "300");
    let answers = json!([{ "wait": 1 }]);
    let Some((code, says, received)) = send(&stacks(10), &answers, &[short]) else { return };
    assert_eq!(code, 1, "{says}");
    assert!(!received.is_empty());
    assert!(started.elapsed() < Duration::from_secs(40));
    assert!(says.contains("10 were given up: "), "{says}");
}

#[test]
fn by_http_it_is_told_that_it_is_none() {
    let Some(receiver) = Receiver::new(&json!([{}]), &[]) else { return };
    let (mut collector, _file) = convert(&stacks(10), &format!("http://127.0.0.1:{}", receiver.port));
    let (code, says) = outcome(collector.env("OTEL_EXPORTER_OTLP_TIMEOUT", "200"));
    assert_eq!(code, 1, "{says}");
    assert!(says.contains("10 were given up: "), "{says}");
}

#[test]
fn a_certificate_is_checked() {
    let folder = tempfile::tempdir().unwrap();
    let [key, certificate] = ["key", "certificate"].map(|name| folder.path().join(name));
    let mut openssl = Command::new("openssl");
    openssl.args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]);
    openssl.args([
        "-addext",
        "subjectAltName=DNS:localhost",
        "-addext",
        "basicConstraints=critical,CA:FALSE",
    ]);
    openssl.arg("-keyout").arg(&key).arg("-out").arg(&certificate);
    let Ok(made) = openssl.output() else {
        eprintln!("SKIPPED: openssl is not installed");
        return;
    };
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let secrets: [&Path; 2] = [&key, &certificate];
    let Some(receiver) = Receiver::new(&json!([{}]), &secrets) else { return };
    let stacks = stacks(10);
    let url = format!("grpcs://localhost:{}", receiver.port);
    let (mut collector, _file) = convert(&stacks, &url);
    let (code, says) = outcome(&mut collector);
    assert_eq!(code, 1, "{says}");
    assert!(says.contains("10 were given up: ") && says.contains("certificate"), "{says}");
    let (mut collector, _file) = convert(&stacks, &url);
    let (code, says) = outcome(collector.env("SSL_CERT_FILE", &certificate));
    assert_eq!(code, 0, "{says}");
    assert!(together(&receiver.received()) == stacks);
}
