//! The URL of a receiver in, where and how to reach it out.

use std::fmt;
use std::str::FromStr;

use ureq::http::Uri;

/// Where profiles go by HTTP, if a URL has no path ("OTLP/HTTP Request").
const PATH: &str = "/v1development/profiles";

/// The port of OTLP by gRPC ("OTLP/gRPC Default Port").
const GRPC_PORT: u16 = 4317;

/// A receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    pub(super) protocol: Protocol,
    pub(super) is_secure: bool,
    /// Without the brackets of IPv6.
    pub(super) host: String,
    pub(super) port: u16,
    /// What is asked for, in full.
    url: String,
}

/// What a receiver is spoken to in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    Http,
    Grpc,
}

/// Why a URL is no receiver.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// It is no URL.
    #[error("it is no URL such as http://localhost:4318")]
    NoUrl,
    /// It begins otherwise.
    #[error("it does not begin with http://, https://, grpc:// or grpcs://")]
    Scheme,
    /// It has a user or a password in it.
    #[error("a user in a URL is not sent: give a header such as authorization in OTEL_EXPORTER_OTLP_HEADERS")]
    User,
    /// It has a path.
    #[error("a receiver by gRPC has no path: leave it out")]
    GrpcPath,
    /// gRPC was left out.
    #[error("this build speaks no gRPC: send by http://, or build with --features otlp-grpc")]
    NoGrpc,
}

impl Address {
    /// Asked by HTTP, or the host by gRPC.
    pub fn url(&self) -> &str {
        &self.url
    }
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let uri: Uri = text.parse().map_err(|_| AddressError::NoUrl)?;
        let (protocol, is_secure, default_port) = match uri.scheme_str() {
            Some("http") => (Protocol::Http, false, 80),
            Some("https") => (Protocol::Http, true, 443),
            Some("grpc") => (Protocol::Grpc, false, GRPC_PORT),
            Some("grpcs") => (Protocol::Grpc, true, GRPC_PORT),
            Some(_) => return Err(AddressError::Scheme),
            None => return Err(AddressError::NoUrl),
        };
        let authority = uri.authority().ok_or(AddressError::NoUrl)?;
        if authority.as_str().contains('@') {
            return Err(AddressError::User);
        }
        let port = uri.port_u16().unwrap_or(default_port);
        let host = authority.host();
        if host.is_empty() {
            return Err(AddressError::NoUrl);
        }
        let has_path = !matches!(uri.path(), "" | "/") || uri.query().is_some();
        let scheme = if is_secure { "https" } else { "http" };
        let url = match protocol {
            Protocol::Http if has_path => format!("{scheme}://{host}:{port}{}", path_and_query(&uri)),
            Protocol::Http => format!("{scheme}://{host}:{port}{PATH}"),
            Protocol::Grpc if has_path => return Err(AddressError::GrpcPath),
            Protocol::Grpc if !cfg!(feature = "otlp-grpc") => return Err(AddressError::NoGrpc),
            Protocol::Grpc => format!("grpc{}://{host}:{port}", if is_secure { "s" } else { "" }),
        };
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        Ok(Self { protocol, is_secure, host, port, url })
    }
}

fn path_and_query(uri: &Uri) -> &str {
    uri.path_and_query().map_or("", |it| it.as_str())
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.url)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Result<String, AddressError> {
        text.parse::<Address>().map(|address| address.url)
    }

    #[test]
    fn a_url_without_a_path_has_the_usual_one() {
        let usual = "http://localhost:4318/v1development/profiles";
        assert_eq!(url("http://localhost:4318").as_deref(), Ok(usual));
        assert_eq!(url("http://localhost:4318/").as_deref(), Ok(usual));
        assert_eq!(url("HTTP://localhost:4318/in?a=b").as_deref(), Ok("http://localhost:4318/in?a=b"));
        let secure = "https://[::1]:443/v1development/profiles";
        assert_eq!(url("https://[::1]").as_deref(), Ok(secure));
        assert_eq!("https://[::1]".parse::<Address>().unwrap().host, "::1");
    }

    #[test]
    fn what_is_no_receiver_is_refused() {
        assert_eq!(url("file.otlp"), Err(AddressError::NoUrl));
        assert_eq!(url("http://"), Err(AddressError::NoUrl));
        assert_eq!(url("http://:80/"), Err(AddressError::NoUrl));
        assert_eq!(url("ftp://host/x"), Err(AddressError::Scheme));
        assert_eq!(url("http://ann:secret@host"), Err(AddressError::User));
        assert_eq!(url("grpc://host/path"), Err(AddressError::GrpcPath));
    }

    #[test]
    fn grpc_has_a_port_of_its_own() {
        let expected = if cfg!(feature = "otlp-grpc") {
            Ok("grpc://host:4317".to_owned())
        } else {
            Err(AddressError::NoGrpc)
        };
        assert_eq!(url("grpc://host"), expected);
    }
}
