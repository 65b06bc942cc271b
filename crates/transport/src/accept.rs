// SPDX-License-Identifier: Apache-2.0
//! The collector's side of IPFIX over TLS (RFC 7011, section 11): its identity, which exporters may
//! send, and the octets of one exporter.

use std::io::{self, Read};
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rustls::crypto::ring;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{AlertDescription, CertificateError, Error, ServerConfig, ServerConnection};

use crate::stream::is_not_yet;
use crate::tls::{Time, authorities, certificates, mismatch, private_key, refused};
use crate::{Clock, TlsPart, TransportError};

/// Timeout of a handshake: covers two round trips and a slow exporter.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum reads from a socket for one read of octets. An exporter may send any number of TLS
/// records without content.
const READS_AT_ONCE: usize = 16;

/// Certificates and keys of a collector, as PEM files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerFiles {
    /// The certificate, followed by its intermediate certificates.
    pub certificate: PathBuf,
    /// The private key of that certificate.
    pub key: PathBuf,
    /// Authorities that must have issued the exporters' certificates (RFC 7011, section 11.3).
    /// `None`: any exporter may send.
    pub authorities: Option<PathBuf>,
}

/// A collector's identity, and which exporters it accepts.
#[derive(Clone, Debug)]
pub struct TlsServer {
    config: Arc<ServerConfig>,
    clock: Clock,
}

impl TlsServer {
    /// Reads the files. Allows TLS 1.2 and 1.3.
    ///
    /// # Errors
    /// [`TransportError::Tls`] if a file cannot be read or does not have the expected content, or
    /// if the key does not belong to the certificate.
    pub fn new(files: &ServerFiles, clock: Clock) -> Result<Self, TransportError> {
        let ServerFiles {
            certificate, key, ..
        } = files;
        let provider = Arc::new(ring::default_provider());
        let config = ServerConfig::builder_with_details(Arc::clone(&provider), Time::of(clock))
            .with_safe_default_protocol_versions()
            .map_err(|error| refused(TlsPart::Certificate, None, error))?;
        let config = match &files.authorities {
            None => config.with_no_client_auth(),
            Some(path) => {
                let roots = Arc::new(authorities(path)?);
                let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider).build();
                let verifier =
                    verifier.map_err(|error| refused(TlsPart::Authorities, Some(path), error))?;
                config.with_client_cert_verifier(verifier)
            }
        };
        let chain = certificates(TlsPart::Certificate, certificate)?;
        let loaded = private_key(key)?;
        let config = config.with_single_cert(chain, loaded);
        let mut config =
            config.map_err(|error| refused(TlsPart::Key, Some(key), mismatch(&error)))?;
        // Exporters rarely reconnect, so it is not worth storing a session for each of them.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(Self {
            config: Arc::new(config),
            clock,
        })
    }

    /// Starts TLS on an accepted, non-blocking connection. The handshake happens during reads.
    ///
    /// # Errors
    /// The reason why TLS cannot start.
    pub fn accept(&self, tcp: TcpStream) -> io::Result<TlsReceiver> {
        let tls = ServerConnection::new(Arc::clone(&self.config));
        Ok(TlsReceiver {
            tcp,
            tls: tls.map_err(describe_error)?,
            clock: self.clock,
            gives_up: (self.clock.monotonic)() + HANDSHAKE_TIMEOUT,
        })
    }
}

/// The octets that an exporter sends over TLS. The memory that an exporter can occupy is bounded by
/// the longest TLS record and handshake message (64 KiB).
pub struct TlsReceiver {
    tcp: TcpStream,
    tls: ServerConnection,
    clock: Clock,
    /// When the handshake times out.
    gives_up: Duration,
}

impl TlsReceiver {
    /// Whether the handshake is still in progress, so that the exporter is not authenticated yet.
    #[must_use]
    pub fn is_handshaking(&self) -> bool {
        self.tls.is_handshaking()
    }

    /// Sends pending TLS data, as much as the socket accepts.
    fn flush(&mut self) -> io::Result<()> {
        while self.tls.wants_write() {
            match self.tls.write_tls(&mut self.tcp) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(_) => {}
                Err(error) if is_not_yet(&error) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Reads from the socket once. Returns false if the exporter has ended the connection.
    fn take_in(&mut self) -> io::Result<bool> {
        let count = self.tls.read_tls(&mut self.tcp)?;
        if let Err(error) = self.tls.process_new_packets() {
            // Tries to send the TLS alert to the exporter.
            let _ = self.flush();
            return Err(describe_error(error));
        }
        self.flush()?;
        Ok(count > 0)
    }
}

impl Read for TlsReceiver {
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if no data has arrived yet,
    /// [`io::ErrorKind::ConnectionRefused`] if the handshake failed. The message says why.
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        for _ in 0..READS_AT_ONCE {
            match self.tls.reader().read(to) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Ok(0) => {
                    self.tls.send_close_notify();
                    self.flush()?;
                    return Ok(0);
                }
                // Many exporters close the connection after a message without announcing it.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(0),
                read => return read,
            }
            let was_handshaking = self.tls.is_handshaking();
            let failed = |error: io::Error| match was_handshaking && !is_not_yet(&error) {
                true => handshake_failed(&error.to_string()),
                false => error,
            };
            if was_handshaking && (self.clock.monotonic)() > self.gives_up {
                return Err(handshake_failed("it did not end within 5 s"));
            }
            if !self.take_in().map_err(failed)? && self.tls.is_handshaking() {
                return Err(handshake_failed("the exporter left"));
            }
        }
        Err(io::ErrorKind::WouldBlock.into())
    }
}

fn handshake_failed(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionRefused, why.to_owned())
}

/// Describes the error, and what to do about it.
fn describe_error(error: Error) -> io::Error {
    let words = match &error {
        Error::NoCertificatesPresented => {
            "the exporter has no certificate, which `engine.collector.tls-ca` asks for".to_owned()
        }
        Error::InvalidCertificate(CertificateError::UnknownIssuer) => {
            "the exporter's certificate is not signed by an authority of \
             `engine.collector.tls-ca`"
                .to_owned()
        }
        Error::InvalidCertificate(
            CertificateError::Expired | CertificateError::ExpiredContext { .. },
        ) => "the exporter's certificate has expired".to_owned(),
        Error::InvalidCertificate(why) => {
            format!("the exporter's certificate cannot be accepted: {why}")
        }
        Error::AlertReceived(
            alert @ (AlertDescription::BadCertificate
            | AlertDescription::UnknownCA
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateUnknown),
        ) => format!(
            "the exporter does not accept the certificate of this collector ({alert:?}; \
             `engine.collector.tls-cert`)"
        ),
        Error::AlertReceived(alert) => format!("the exporter gave up: {alert:?}"),
        Error::InvalidMessage(_) | Error::InappropriateMessage { .. } => {
            format!("the exporter does not speak TLS: {error}")
        }
        error => format!("TLS: {error}"),
    };
    io::Error::other(words)
}
