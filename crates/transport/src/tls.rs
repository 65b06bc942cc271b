// SPDX-License-Identifier: Apache-2.0
//! IPFIX over TLS (RFC 7011, section 11): trust roots, client identity, and the stream itself.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::time_provider::TimeProvider;
use rustls::{CertificateError, ClientConfig, ClientConnection, ProtocolVersion, RootCertStore};

use super::Clock;
use super::stream::{Counted, Progress, closed, is_not_yet};
use crate::TransportError;

/// Timeout of a handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long to wait for a refusal after a handshake. In TLS 1.3, a server reports only then whether
/// it accepts the client certificate, and records sent before that would be lost without an error.
const VERDICT_TIMEOUT: Duration = Duration::from_millis(250);

/// Certificates and keys, as PEM files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsFiles {
    /// Certificate authorities to trust. `None`: the system's.
    pub authorities: Option<PathBuf>,
    /// Client certificate followed by its intermediate certificates, and its key, for collectors
    /// that require them (RFC 7011, section 11.3).
    pub client: Option<(PathBuf, PathBuf)>,
}

/// What a certificate or key is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsPart {
    /// Trust roots.
    Authorities,
    /// The certificate of this side of the connection.
    Certificate,
    /// The key of that certificate.
    Key,
}

impl fmt::Display for TlsPart {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Authorities => "trusted certificates",
            Self::Certificate => "certificate of this side",
            Self::Key => "key of that certificate",
        })
    }
}

/// TLS trust roots and client identity.
#[derive(Clone, Debug)]
pub struct Tls(Arc<ClientConfig>);

/// TLS settings for one collector.
#[derive(Clone, Debug)]
pub(super) struct TlsPeer {
    tls: Tls,
    name: ServerName<'static>,
}

impl Tls {
    /// Reads the files. Allows TLS 1.2 and 1.3.
    ///
    /// # Errors
    /// [`TransportError::Tls`] if a file cannot be read or does not have the expected content, if
    /// the key does not belong to the certificate, or if the system has no trust roots.
    pub fn new(files: &TlsFiles, clock: Clock) -> Result<Self, TransportError> {
        let roots = match &files.authorities {
            Some(path) => authorities(path)?,
            None => authorities_of_the_system()?,
        };
        let provider = Arc::new(ring::default_provider());
        let config = ClientConfig::builder_with_details(provider, Time::of(clock))
            .with_safe_default_protocol_versions()
            .map_err(|error| refused(TlsPart::Authorities, None, error))?
            .with_root_certificates(roots);
        let config = match &files.client {
            None => config.with_no_client_auth(),
            Some((certificate, key)) => {
                let chain = certificates(TlsPart::Certificate, certificate)?;
                let config = config.with_client_auth_cert(chain, private_key(key)?);
                config.map_err(|error| refused(TlsPart::Key, Some(key), mismatch(&error)))?
            }
        };
        Ok(Self(Arc::new(config)))
    }
}

impl TlsPeer {
    /// Settings for a collector, whose certificate must be valid for the name or address `host`.
    pub(super) fn new(tls: Tls, host: &str) -> io::Result<Self> {
        let name = ServerName::try_from(host.to_owned());
        let name = name.map_err(|_| io::Error::other("no certificate can be for that name"))?;
        Ok(Self { tls, name })
    }
}

pub(super) fn refused(
    part: TlsPart,
    path: Option<&Path>,
    reason: impl fmt::Display,
) -> TransportError {
    TransportError::Tls {
        part,
        path: path.map(Path::to_path_buf),
        reason: reason.to_string(),
    }
}

fn describe_pem_error(error: &rustls::pki_types::pem::Error, wanted: &str) -> String {
    use rustls::pki_types::pem::Error;
    match error {
        Error::Io(error) => error.to_string(),
        Error::NoItemsFound => format!("it holds no {wanted} in PEM"),
        error => format!("it holds no {wanted} in PEM: {error}"),
    }
}

pub(super) fn mismatch(error: &rustls::Error) -> String {
    match error {
        rustls::Error::InconsistentKeys(_) => "it is not the key of that certificate".to_owned(),
        error => error.to_string(),
    }
}

pub(super) fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, TransportError> {
    PrivateKeyDer::from_pem_file(path).map_err(|error| {
        let reason = describe_pem_error(&error, "private key without a password");
        refused(TlsPart::Key, Some(path), reason)
    })
}

pub(super) fn certificates(
    part: TlsPart,
    path: &Path,
) -> Result<Vec<CertificateDer<'static>>, TransportError> {
    let wrong = |error| refused(part, Some(path), describe_pem_error(&error, "certificate"));
    let found = CertificateDer::pem_file_iter(path).map_err(wrong)?;
    let found: Vec<_> = found.collect::<Result<_, _>>().map_err(wrong)?;
    if found.is_empty() {
        return Err(wrong(rustls::pki_types::pem::Error::NoItemsFound));
    }
    Ok(found)
}

pub(super) fn authorities(path: &Path) -> Result<RootCertStore, TransportError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(TlsPart::Authorities, path)? {
        let added = roots.add(certificate);
        added.map_err(|_| {
            let reason = "what it holds is not a certificate";
            refused(TlsPart::Authorities, Some(path), reason)
        })?;
    }
    Ok(roots)
}

fn authorities_of_the_system() -> Result<RootCertStore, TransportError> {
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    // The system's store may contain certificates of kinds that are no longer supported.
    let (added, _) = roots.add_parsable_certificates(found.certs);
    if added == 0 {
        let why = found
            .errors
            .first()
            .map_or_else(String::new, |error| format!(" ({error})"));
        let reason = format!("the system has none{why}: name a file of them");
        return Err(refused(TlsPart::Authorities, None, reason));
    }
    Ok(roots)
}

/// The time at which certificates must be valid, passed in because this crate reads no clock.
#[derive(Debug)]
pub(super) struct Time(Clock);

impl Time {
    pub(super) fn of(clock: Clock) -> Arc<dyn TimeProvider> {
        Arc::new(Self(clock))
    }
}

impl TimeProvider for Time {
    fn current_time(&self) -> Option<UnixTime> {
        let since = Duration::from_millis((self.0.wall_ms)());
        Some(UnixTime::since_unix_epoch(since))
    }
}

/// A connection over TLS.
pub(super) struct TlsStream {
    socket: Counted,
    tls: ClientConnection,
    /// Whether the end was announced to the collector (close_notify).
    is_ending: bool,
}

impl TlsStream {
    /// Performs the handshake on a blocking connection, which is non-blocking afterwards.
    pub(super) fn begin(tcp: TcpStream, peer: &TlsPeer, clock: &Clock) -> io::Result<Self> {
        let config = Arc::clone(&peer.tls.0);
        let tls = ClientConnection::new(config, peer.name.clone()).map_err(describe_error)?;
        let mut stream = Self {
            socket: Counted::new(tcp),
            tls,
            is_ending: false,
        };
        let gives_up = (clock.monotonic)() + HANDSHAKE_TIMEOUT;
        stream
            .socket
            .tcp
            .set_write_timeout(Some(HANDSHAKE_TIMEOUT))?;
        while stream.tls.is_handshaking() {
            let left = gives_up.saturating_sub((clock.monotonic)());
            if left.is_zero() || !stream.exchange(left)? {
                return Err(io::Error::other("the collector does not answer in TLS"));
            }
        }
        if stream.tls.protocol_version() == Some(ProtocolVersion::TLSv1_3) {
            stream.exchange(VERDICT_TIMEOUT)?;
        }
        stream.socket.tcp.set_nonblocking(true)?;
        Ok(stream)
    }

    /// Sends pending TLS data and reads once. Returns false if nothing arrived before the timeout.
    fn exchange(&mut self, timeout: Duration) -> io::Result<bool> {
        self.flush()?;
        if !self.tls.wants_read() {
            return Ok(true);
        }
        self.socket.tcp.set_read_timeout(Some(timeout))?;
        match self.tls.read_tls(&mut self.socket.tcp) {
            Ok(0) => Err(closed()),
            Ok(_) => self.take_in().map(|()| true),
            Err(error) if is_not_yet(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Processes received TLS records. Application data from a collector is ignored.
    fn take_in(&mut self) -> io::Result<()> {
        let state = self.tls.process_new_packets();
        let state = match state {
            Ok(state) => state,
            Err(error) => {
                // Tries to send the TLS alert to the peer.
                let _ = self.flush();
                return Err(describe_error(error));
            }
        };
        if state.plaintext_bytes_to_read() > 0 {
            while matches!(self.tls.reader().read(&mut [0; 256]), Ok(1..)) {}
        }
        if state.peer_has_closed() {
            return self.last_octets();
        }
        Ok(())
    }

    /// The collector announced its end. Only the end of the connection itself shows that it has
    /// read everything.
    fn last_octets(&mut self) -> io::Result<()> {
        match self.socket.tcp.read(&mut [0; 1]) {
            Ok(0) => Err(closed()),
            Err(error) if !is_not_yet(&error) => Err(error),
            _ => Err(io::Error::other("the collector closed the session")),
        }
    }

    pub(super) fn listen(&mut self) -> io::Result<()> {
        loop {
            match self.tls.read_tls(&mut self.socket.tcp) {
                Ok(0) => return Err(closed()),
                Ok(_) => self.take_in()?,
                Err(error) if is_not_yet(&error) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    /// Sends pending TLS data. Returns false if the socket accepts no more at present.
    fn flush(&mut self) -> io::Result<bool> {
        while self.tls.wants_write() {
            match self.tls.write_tls(&mut self.socket) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(_) => {}
                Err(error) if is_not_yet(&error) => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Accepts new data only when all earlier data has been sent, so that little is buffered here.
    pub(super) fn send(&mut self, bytes: &[u8]) -> io::Result<Progress> {
        if !self.flush()? {
            return Ok(Progress::Partial(0));
        }
        let taken = self.tls.writer().write(bytes)?;
        match self.flush()? && taken == bytes.len() {
            true => Ok(Progress::Whole),
            false => Ok(Progress::Partial(taken)),
        }
    }

    /// Announces the end of the session, and ends this side of the connection. Returns false if the
    /// socket accepts no more at present.
    pub(super) fn end(&mut self) -> io::Result<bool> {
        if !std::mem::replace(&mut self.is_ending, true) {
            self.tls.send_close_notify();
        }
        if !self.flush()? {
            return Ok(false);
        }
        self.socket.end().map(|()| true)
    }

    pub(super) const fn socket(&self) -> &Counted {
        &self.socket
    }

    pub(super) const fn socket_mut(&mut self) -> &mut Counted {
        &mut self.socket
    }
}

/// Describes the error, and what to do about it.
fn describe_error(error: rustls::Error) -> io::Error {
    use rustls::{AlertDescription, Error};
    let words = match &error {
        Error::InvalidCertificate(CertificateError::UnknownIssuer) => {
            "the collector's certificate is not signed by a trusted authority (see `output.tls-ca`)"
                .to_owned()
        }
        Error::InvalidCertificate(
            CertificateError::Expired | CertificateError::ExpiredContext { .. },
        ) => "the collector's certificate has expired".to_owned(),
        // Recognised by its text, because the error has no variant of its own. Self-signed
        // certificates are often made with CA:TRUE.
        Error::InvalidCertificate(why) if why.to_string().contains("CaUsedAsEndEntity") => {
            "the collector's certificate is an authority's (CA:TRUE), and cannot be a collector's"
                .to_owned()
        }
        Error::InvalidCertificate(why) => {
            format!("the collector's certificate cannot be accepted: {why}")
        }
        Error::AlertReceived(
            alert @ (AlertDescription::CertificateRequired
            | AlertDescription::BadCertificate
            | AlertDescription::UnknownCA
            | AlertDescription::HandshakeFailure),
        ) => format!(
            "the collector refused the connection ({alert:?}): it may want another client \
             certificate"
        ),
        Error::AlertReceived(alert) => format!("the collector refused the connection: {alert:?}"),
        Error::InvalidMessage(_) | Error::InappropriateMessage { .. } => {
            format!("the collector does not speak TLS there: {error}")
        }
        error => format!("TLS: {error}"),
    };
    io::Error::other(words)
}
