//! Requests by gRPC: unary calls over HTTP/2 ("gRPC over HTTP2", `doc/PROTOCOL-HTTP2.md` of grpc/grpc), of which OTLP needs one.

use std::io::{self, Cursor};
use std::sync::Arc;
use std::time::Duration;

use export::format::otlp::Response;
use h2::client::SendRequest;
use h2::{RecvStream, client};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout as within;
use tokio_rustls::TlsConnector;
use ureq::http::{HeaderMap, Method, Request, Version};

use super::address::Address;
use super::grpc_status::{Status, of_http, outcome};
use super::settings::Settings;
use super::transport::{Failure, MOST_OF_ANSWER, Transport};

/// `ProfilesService` of `collector/profiles/v1development/profiles_service.proto`.
const METHOD: &str = "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export";

/// Before a message: whether it is packed, and its length, with the highest byte first.
const PREFIX: usize = 5;

/// One receiver, with the connection to it.
pub(super) struct Grpc {
    runtime: Runtime,
    address: Address,
    headers: Vec<(String, String)>,
    is_packed: bool,
    tls: Option<Arc<ClientConfig>>,
    connection: Option<Connection>,
}

type Connection = SendRequest<Cursor<Vec<u8>>>;

impl Grpc {
    /// Asks nothing of the receiver yet.
    pub(super) fn new(address: &Address, settings: &Settings) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
        let tls = if address.is_secure { Some(tls().map_err(io::Error::other)?) } else { None };
        let headers = settings.headers.clone();
        let is_packed = settings.gzip;
        Ok(Self { runtime, address: address.clone(), headers, is_packed, tls, connection: None })
    }

    fn request(&self, timeout: Duration) -> Result<Request<()>, Failure> {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        let (_, authority) = self.address.url().split_once("://").unwrap_or_default();
        let mut request = Request::builder()
            .version(Version::HTTP_2)
            .method(Method::POST)
            .uri(format!("{scheme}://{authority}{METHOD}"))
            .header("te", "trailers")
            .header("content-type", "application/grpc")
            // Eight digits at most.
            .header("grpc-timeout", format!("{}m", timeout.as_millis().min(99_999_999)))
            .header("user-agent", concat!("collector/", env!("CARGO_PKG_VERSION")));
        if self.is_packed {
            request = request.header("grpc-encoding", "gzip");
        }
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        request.body(()).map_err(|error| Failure::Final(error.to_string()))
    }
}

fn tls() -> Result<Arc<ClientConfig>, rustls::Error> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let mut config = config.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(Arc::new(config))
}

impl Transport for Grpc {
    fn export(&mut self, body: &[u8], timeout: Duration) -> Result<Response, Failure> {
        let request = self.request(timeout)?;
        let mut message = Vec::with_capacity(PREFIX + body.len());
        message.push(u8::from(self.is_packed));
        message.extend((body.len() as u32).to_be_bytes());
        message.extend(body);
        let Self { runtime, address, tls, connection, .. } = self;
        let call = async {
            let open = match connection.take() {
                Some(open) => open,
                None => connect(address, tls.as_ref()).await?,
            };
            // One that was closed meanwhile is not used again.
            let open = match open.ready().await {
                Ok(open) => open,
                Err(_) => connect(address, tls.as_ref()).await?.ready().await?,
            };
            let answer = call(&mut open.clone(), request, message).await;
            *connection = matches!(answer, Ok(_) | Err(Failure::Refused(_))).then_some(open);
            answer
        };
        runtime.block_on(async { within(timeout, call).await.unwrap_or(Err(Failure::timeout(timeout))) })
    }
}

async fn connect(address: &Address, tls: Option<&Arc<ClientConfig>>) -> Result<Connection, Failure> {
    let stream = TcpStream::connect((address.host.as_str(), address.port)).await?;
    stream.set_nodelay(true)?;
    let Some(tls) = tls else { return begin(stream).await };
    let name = ServerName::try_from(address.host.clone()).map_err(|it| Failure::Final(it.to_string()))?;
    begin(TlsConnector::from(Arc::clone(tls)).connect(name, stream).await?).await
}

/// A connection, which is served as long as it is used.
async fn begin(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) -> Result<Connection, Failure> {
    let (open, connection) =
        client::Builder::new().max_header_list_size(16 << 10).enable_push(false).handshake(stream).await?;
    // What goes wrong with it is told to who waits for an answer.
    tokio::spawn(async { drop(connection.await) });
    Ok(open)
}

impl From<io::Error> for Failure {
    /// Nobody is there, or its certificate is refused.
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::InvalidData => Self::Final(error.to_string()),
            _ => Self::passing(error.to_string()),
        }
    }
}

impl From<h2::Error> for Failure {
    /// The connection failed, or is none of HTTP/2.
    fn from(error: h2::Error) -> Self {
        Self::passing(error.to_string())
    }
}

async fn call(open: &mut Connection, request: Request<()>, message: Vec<u8>) -> Result<Response, Failure> {
    let (answer, mut body) = open.send_request(request, false)?;
    body.send_data(Cursor::new(message), true)?;
    let (head, mut body) = answer.await?.into_parts();
    // A failure without a message is told at once, and the rest of the request may be refused then.
    if let Some(status) = Status::of(&head.headers) {
        return outcome(status, None);
    }
    if !head.status.is_success() {
        return Err(of_http(head.status));
    }
    let (message, trailers) = receive(&mut body).await?;
    let status =
        Status::of(&trailers).ok_or_else(|| Failure::Final("its answer is none of gRPC".to_owned()))?;
    outcome(status, message_in(&message))
}

/// The one message of an answer, which was not to be packed; `None` where there is something else.
fn message_in(bytes: &[u8]) -> Option<&[u8]> {
    let ([is_packed, length @ ..], message) = bytes.split_first_chunk::<PREFIX>()?;
    let is_whole = *is_packed == 0 && u32::from_be_bytes(*length) as usize == message.len();
    is_whole.then_some(message)
}

/// The bytes of an answer, and what comes after them.
async fn receive(body: &mut RecvStream) -> Result<(Vec<u8>, HeaderMap), Failure> {
    let mut message = Vec::new();
    while let Some(part) = body.data().await {
        let part = part?;
        if message.len() + part.len() > PREFIX + MOST_OF_ANSWER {
            return Err(Failure::Final("its answer is too long".to_owned()));
        }
        message.extend_from_slice(&part);
        body.flow_control().release_capacity(part.len())?;
    }
    let trailers = body.trailers().await?.unwrap_or_default();
    Ok((message, trailers))
}
