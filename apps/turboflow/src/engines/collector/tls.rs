// SPDX-License-Identifier: Apache-2.0
//! The certificate of a collector. It is reread at SIGHUP, because it may expire while the
//! collector runs.

use std::io;
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use anyhow::{Context, bail};
use turboflow_transport::{ServerFiles, TlsPart, TlsReceiver, TlsServer, TransportError};

use super::{CollectorOptions, TLS_CA, TLS_CERT, TLS_KEY};
use crate::engines::RereadByEngine;
use crate::exit::in_words;
use crate::keys::Key;
use crate::log::say;
use crate::record::CLOCK;

/// The certificate and key that a collector shows to exporters over TLS. Clones share it.
#[derive(Clone, Default)]
pub(super) struct Identity(Arc<RwLock<Option<TlsServer>>>);

impl Identity {
    /// Reads the files, and uses them for new connections.
    pub(super) fn read(&self, files: &ServerFiles) -> anyhow::Result<()> {
        let read = read(files)?;
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Some(read);
        Ok(())
    }

    /// Starts TLS on an accepted connection.
    pub(super) fn accept(&self, stream: TcpStream) -> io::Result<TlsReceiver> {
        let now = self.0.read().unwrap_or_else(PoisonError::into_inner);
        match &*now {
            Some(server) => server.accept(stream),
            None => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    /// Returns the function that rereads the files at SIGHUP. Open connections are not affected.
    pub(super) fn reread(&self, files: ServerFiles) -> RereadByEngine {
        let identity = self.clone();
        Box::new(move || {
            if let Err(error) = identity.read(&files) {
                say!(Error ReloadRefused; "{}; exporters over TLS still get the previous \
                     certificate", in_words(&error));
            }
        })
    }
}

fn read(files: &ServerFiles) -> anyhow::Result<TlsServer> {
    TlsServer::new(files, CLOCK).map_err(|error| {
        let key = match &error {
            TransportError::Tls { part, .. } => match part {
                TlsPart::Authorities => Key::Of(TLS_CA),
                TlsPart::Certificate => Key::Of(TLS_CERT),
                TlsPart::Key => Key::Of(TLS_KEY),
            },
            _ => Key::Of(TLS_CERT),
        };
        anyhow::Error::new(error).context(key.to_string())
    })
}

/// Checks that the files can be read and are valid.
pub(super) fn check(files: Option<&ServerFiles>) -> anyhow::Result<()> {
    files.map_or(Ok(()), |files| read(files).map(drop))
}

impl CollectorOptions {
    /// The files of a collector; `None` if it has no address for TLS.
    ///
    /// # Errors
    /// A needed file is not given, or files are given without an address for TLS.
    pub(super) fn files(&self, has_tls: bool) -> anyhow::Result<Option<ServerFiles>> {
        let given = [
            (&self.tls_cert, TLS_CERT),
            (&self.tls_key, TLS_KEY),
            (&self.tls_ca, TLS_CA),
        ];
        if !has_tls {
            return match given.into_iter().find(|(file, _)| file.is_some()) {
                None => Ok(None),
                Some((_, option)) => bail!(
                    "{} is for exporters over TLS: add {}, or leave it out",
                    Key::Of(option),
                    Key::Of(super::LISTEN).with("tls://:4740")
                ),
            };
        }
        let needed = |file: &Option<PathBuf>, option| {
            file.clone().with_context(|| {
                format!(
                    "listening for exporters over TLS needs a certificate and its key: add {}",
                    Key::Of(option).with("FILE.pem")
                )
            })
        };
        Ok(Some(ServerFiles {
            certificate: needed(&self.tls_cert, TLS_CERT)?,
            key: needed(&self.tls_key, TLS_KEY)?,
            authorities: self.tls_ca.clone(),
        }))
    }
}
