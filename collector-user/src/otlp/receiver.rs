//! A recording in, requests to a receiver out, one after the other, and what became of them.
//!
//! What may pass is tried again, at growing intervals ("Retry" of the exporters' specification); an attempt of which the answer was
//! lost may have come, so that its samples are there twice then, as the specification wants it ("Duplicate Data").

use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::thread;
use std::time::{Duration, Instant};

use export::format::Profile;
use export::format::otlp::{Request, Requests, Response};
use flate2::Compression;
use flate2::write::GzEncoder;

use super::address::{Address, Protocol};
use super::http::Http;
use super::sent::{Lost, Sent};
use super::settings::Settings;
use super::transport::{Failure, Transport, told};

/// A request is given up after so many times the longest that an attempt may take.
const PATIENCE: u32 = 6;

/// The first pause between attempts is this part of the longest that one may take.
const FIRST_PAUSE: u32 = 20;

/// Where recordings are sent.
#[derive(Clone, Debug)]
pub struct Receiver {
    address: Address,
    settings: Settings,
}

impl Receiver {
    /// One that nothing was asked of yet.
    pub fn new(address: Address, settings: Settings) -> Self {
        Self { address, settings }
    }

    /// Where it is.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Whether somebody listens there. Through a proxy it can't be known, and is believed.
    ///
    /// # Errors
    /// When nobody does.
    pub fn reach(&self) -> io::Result<()> {
        let Address { protocol, host, port, .. } = &self.address;
        if *protocol == Protocol::Http && ureq::Proxy::try_from_env().is_some() {
            return Ok(());
        }
        let mut outcome = Err(io::ErrorKind::NotFound.into());
        for place in (host.as_str(), *port).to_socket_addrs()? {
            outcome = TcpStream::connect_timeout(&place, self.settings.timeout).map(drop);
            if outcome.is_ok() {
                break;
            }
        }
        outcome
    }

    /// Sends a recording; `tell` is given a line for each attempt that has failed and is made again.
    ///
    /// # Errors
    /// When not all of it was taken.
    pub fn send(&self, profile: Profile<'_>, mut tell: impl FnMut(&str)) -> Result<Sent, Lost> {
        let mut sent = Sent::default();
        let mut transport = match self.transport() {
            Ok(transport) => transport,
            Err(why) => return Err(lost(sent, profile, why)),
        };
        let mut requests = Requests::new(profile, self.settings.limit);
        while let Some(request) = requests.next() {
            let packed = request.and_then(|Request { bytes, samples, profiles }| {
                Ok((self.packed(bytes)?, samples as u64, profiles as u64))
            });
            let (body, samples, profiles) = match packed {
                Ok(packed) => packed,
                Err(error) => return Err(lost(sent, profile, error.to_string())),
            };
            match self.deliver(&mut *transport, &body, &mut tell) {
                Ok(Response { rejected_profiles, message }) => {
                    sent.requests += 1;
                    sent.samples += samples;
                    sent.profiles += profiles;
                    sent.rejected_profiles += rejected_profiles.min(profiles);
                    sent.note(told(&message));
                }
                Err(Failure::Refused(why)) => {
                    sent.refused_requests += 1;
                    sent.refused_samples += samples;
                    sent.note(why);
                }
                Err(Failure::Final(why) | Failure::Passing { why, .. }) => {
                    sent.too_large = requests.too_large();
                    return Err(lost(sent, profile, why));
                }
            }
        }
        sent.too_large = requests.too_large();
        if sent.is_whole() { Ok(sent) } else { Err(Lost(sent)) }
    }

    fn transport(&self) -> Result<Box<dyn Transport>, String> {
        match self.address.protocol {
            Protocol::Http => Ok(Box::new(Http::new(&self.address, &self.settings))),
            #[cfg(feature = "otlp-grpc")]
            Protocol::Grpc => match super::grpc::Grpc::new(&self.address, &self.settings) {
                Ok(grpc) => Ok(Box::new(grpc)),
                Err(error) => Err(error.to_string()),
            },
            #[cfg(not(feature = "otlp-grpc"))]
            Protocol::Grpc => Err(super::AddressError::NoGrpc.to_string()),
        }
    }

    fn packed(&self, bytes: Vec<u8>) -> io::Result<Vec<u8>> {
        if !self.settings.gzip {
            return Ok(bytes);
        }
        let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
        packer.write_all(&bytes)?;
        packer.finish()
    }

    /// One request, with all its attempts.
    fn deliver(
        &self,
        transport: &mut dyn Transport,
        body: &[u8],
        tell: &mut impl FnMut(&str),
    ) -> Result<Response, Failure> {
        let started = Instant::now();
        let longest = self.settings.timeout;
        let patience = longest * PATIENCE;
        let mut pause = longest / FIRST_PAUSE;
        let mut attempts = 0;
        loop {
            attempts += 1;
            let left = patience.saturating_sub(started.elapsed());
            let failure = match transport.export(body, longest.min(left)) {
                Ok(response) => return Ok(response),
                Err(failure) => failure,
            };
            let Failure::Passing { why, after } = failure else { return Err(failure) };
            let wait = after.unwrap_or_default().max(with_jitter(pause));
            if started.elapsed().saturating_add(wait) >= patience {
                let asked = match after {
                    Some(after) if after >= patience => {
                        format!(", and again after {after:?} at the earliest")
                    }
                    _ => String::new(),
                };
                return Err(Failure::Final(format!("{why}{asked} (attempts: {attempts})")));
            }
            tell(&format!("{}: {why}: it is tried again in {} ms", self.address, wait.as_millis()));
            thread::sleep(wait);
            pause = (pause * 2).min(longest);
        }
    }
}

/// The receiver is given up, and with it all that is not accounted for.
fn lost(mut sent: Sent, profile: Profile<'_>, why: String) -> Lost {
    let all = profile.machine.samples().len() as u64;
    sent.given_up = all.saturating_sub(sent.samples + sent.refused_samples + sent.too_large);
    sent.note(why);
    Lost(sent)
}

/// Half to all of a pause, so that senders that failed at once do not all come back at once.
fn with_jitter(pause: Duration) -> Duration {
    let random = RandomState::new().hash_one(0_u8) as u32;
    pause / 2 + (pause / 2).mul_f64(f64::from(random) / f64::from(u32::MAX))
}
