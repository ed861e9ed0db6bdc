//! One request to a server: an address in, the bytes of a file into a writer.

use std::io::{self, Read as _, Write};
use std::time::{Duration, Instant};

use ureq::Agent;
use ureq::tls::TlsConfig;

use super::client::{Fetch, Limits, Outcome};
use crate::tls::as_the_system_trusts;

/// A server that has sent less than this when it should have answered is too slow (`DEBUGINFOD_TIMEOUT`).
const LEAST: u64 = 100 << 10;

/// Requests to servers by HTTP, and by HTTPS with the certificates that the system trusts.
#[derive(Debug, Default)]
pub(super) struct Http {
    secure: std::cell::OnceCell<TlsConfig>,
}

impl Http {
    /// Certificates are read when a server needs them.
    fn tls(&self, address: &str) -> TlsConfig {
        if !address.starts_with("https:") {
            return TlsConfig::default();
        }
        self.secure.get_or_init(as_the_system_trusts).clone()
    }
}

impl Fetch for Http {
    fn fetch(&self, address: &str, limits: Limits, out: &mut dyn Write) -> Result<Outcome, String> {
        let started = Instant::now();
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .user_agent(concat!("collector/", env!("CARGO_PKG_VERSION")))
            .tls_config(self.tls(address))
            .timeout_global(Some(limits.whole))
            .timeout_connect(limits.answer)
            .timeout_recv_response(limits.answer)
            .timeout_per_read(limits.answer)
            .build();
        let mut request = Agent::new_with_config(config).get(address);
        if limits.has_largest {
            request = request.header("X-DEBUGINFOD-MAXSIZE", limits.largest.to_string());
        }
        let mut response = request.call().map_err(|error| error.to_string())?;
        match response.status().as_u16() {
            200 => {}
            404 => return Ok(Outcome::Absent),
            // "Not acceptable" is how elfutils' server says that a file is larger than it was asked for.
            406 => return Ok(Outcome::TooLarge),
            status => return Err(format!("it answers with status {status}")),
        }
        if response.body().content_length().is_some_and(|length| length > limits.largest) {
            return Ok(Outcome::TooLarge);
        }
        let mut body = response.body_mut().with_config().limit(u64::MAX).reader();
        let mut buffer = vec![0; 64 << 10];
        let mut taken = 0;
        loop {
            let length = match body.read(&mut buffer) {
                Ok(0) => return Ok(Outcome::Whole),
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.to_string()),
            };
            taken += length as u64;
            if taken > limits.largest {
                return Ok(Outcome::TooLarge);
            }
            if taken < LEAST && limits.answer.is_some_and(|answer| started.elapsed() > answer) {
                return Err(format!("it sent {taken} bytes in {:?}", rounded(started.elapsed())));
            }
            let bytes = buffer.get(..length).unwrap_or_default();
            out.write_all(bytes).map_err(|error| format!("what it sends can't be kept: {error}"))?;
        }
    }
}

fn rounded(time: Duration) -> Duration {
    Duration::from_secs(time.as_secs())
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader};
    use std::net::TcpListener;
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    const LIMITS: Limits = Limits {
        answer: Some(Duration::from_mins(1)),
        whole: Duration::from_mins(2),
        largest: 1 << 20,
        has_largest: true,
    };

    /// What is made of an answer, the bytes that came, and the request's lines. The server goes on with the connection for as
    /// long as the request lasts.
    fn fetched(answer: Vec<u8>, limits: Limits) -> (Result<Outcome, String>, Vec<u8>, Vec<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}/buildid/ab/debuginfo", listener.local_addr().unwrap());
        let (done, is_done) = mpsc::channel::<()>();
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
            let lines: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
            // A client that has seen enough closes the connection.
            let _ = stream.write_all(&answer);
            let _ = is_done.recv();
            lines
        });
        let mut bytes = Vec::new();
        let outcome = Http::default().fetch(&address, limits, &mut bytes);
        drop(done);
        (outcome, bytes, server.join().unwrap())
    }

    fn answer(status: &str, length: usize, body: &[u8]) -> Vec<u8> {
        [format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\n\r\n").as_bytes(), body].concat()
    }

    #[test]
    fn a_file_comes_as_it_is() {
        let body: Vec<u8> = (0..300_000_u32).map(|byte| byte as u8).collect();
        let (outcome, bytes, lines) = fetched(answer("200 OK", body.len(), &body), LIMITS);
        assert_eq!(outcome, Ok(Outcome::Whole));
        assert!(bytes == body);
        assert_eq!(lines[0], "GET /buildid/ab/debuginfo HTTP/1.1");
        let has = |wanted: &str| lines.iter().any(|line| line.eq_ignore_ascii_case(wanted));
        assert!(has("X-DEBUGINFOD-MAXSIZE: 1048576"), "{lines:?}");
    }

    #[test]
    fn what_is_absent_or_too_large_is_no_failure() {
        assert_eq!(fetched(answer("404 Not Found", 0, b""), LIMITS).0, Ok(Outcome::Absent));
        assert_eq!(fetched(answer("406 Not Acceptable", 0, b""), LIMITS).0, Ok(Outcome::TooLarge));
        assert_eq!(fetched(answer("200 OK", (1 << 20) + 1, b""), LIMITS).0, Ok(Outcome::TooLarge));
        let unknown =
            [b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n".as_slice(), &vec![0; (1 << 20) + 1]].concat();
        let (outcome, bytes, _) = fetched(unknown, LIMITS);
        assert_eq!(outcome, Ok(Outcome::TooLarge));
        assert!(bytes.len() <= 1 << 20);
    }

    #[test]
    fn a_server_that_fails_says_why() {
        let why = |answer, limits| fetched(answer, limits).0.unwrap_err();
        assert_eq!(why(answer("500 Internal Server Error", 0, b""), LIMITS), "it answers with status 500");
        assert!(!why(b"nonsense\r\n\r\n".to_vec(), LIMITS).is_empty());
        let short = Limits { answer: Some(Duration::from_millis(200)), ..LIMITS };
        for stalled in [Vec::new(), answer("200 OK", 1000, b"half")] {
            let started = Instant::now();
            let says = why(stalled, short);
            assert!(says.contains("timeout"), "{says}");
            assert!(started.elapsed() < Duration::from_mins(1));
        }
        let whole = Limits { whole: Duration::from_millis(200), ..LIMITS };
        let says = why(answer("200 OK", 1000, b"half"), whole);
        assert!(says.contains("timeout"), "{says}");
        let nobody = Http::default().fetch("http://127.0.0.1:1/x", LIMITS, &mut Vec::new());
        assert!(nobody.is_err_and(|why| !why.is_empty()));
        let other = Http::default().fetch("ftp://127.0.0.1/x", LIMITS, &mut Vec::new());
        assert!(other.is_err_and(|why| !why.is_empty()));
    }
}
