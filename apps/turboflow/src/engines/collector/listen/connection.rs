// SPDX-License-Identifier: Apache-2.0
//! A connection of an exporter, over TCP or TLS.

use std::io::{self, ErrorKind, Read};
use std::net::{IpAddr, TcpStream};

use turboflow_engine_collector::{Message, MessageStream, NextMessage, Sender, TakeMessage};
use turboflow_transport::TlsReceiver;

use super::{MOST_AT_ONCE, host_of};

/// The byte stream of a connection.
pub(super) enum Octets {
    Tcp(TcpStream),
    Tls(Box<TlsReceiver>),
}

/// Why a connection is over.
#[derive(Debug)]
pub(super) enum Over {
    /// The exporter closed it, or it broke, between two messages.
    Ended,
    /// It ended within a message.
    Cut,
    /// The TLS handshake failed.
    NoHandshake(String),
    /// The content is invalid or was refused.
    Refused(String),
}

/// A connection, and the parsing state of its messages.
pub(super) struct Connection {
    pub(super) sender: Sender,
    octets: Octets,
    messages: MessageStream,
}

impl Read for Octets {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(to),
            Self::Tls(stream) => stream.read(to),
        }
    }
}

impl Connection {
    pub(super) fn new(sender: Sender, octets: Octets) -> Self {
        Self {
            sender,
            octets,
            messages: MessageStream::default(),
        }
    }

    /// Whether the connection comes from this host.
    pub(super) fn is_of(&self, host: IpAddr) -> bool {
        self.sender.address.is_some_and(|its| host_of(its) == host)
    }

    /// Whether the TLS handshake is unfinished, so that the sender is not known yet.
    pub(super) fn is_half_open(&self) -> bool {
        match &self.octets {
            Octets::Tcp(_) => false,
            Octets::Tls(stream) => stream.is_handshaking(),
        }
    }

    /// Reads what has arrived. Returns the reason if the connection is over.
    pub(super) fn read(
        &mut self,
        now_ns: u64,
        had_any: &mut bool,
        take: &mut TakeMessage<'_>,
    ) -> Option<Over> {
        for _ in 0..MOST_AT_ONCE {
            match self.messages.message() {
                NextMessage::Whole(bytes) => {
                    *had_any = true;
                    let taken = take(&Message {
                        from: self.sender,
                        is_datagram: false,
                        received_ns: Some(now_ns),
                        bytes,
                    });
                    if let Err(refused) = taken {
                        return Some(Over::Refused(refused.to_string()));
                    }
                }
                NextMessage::Broken => {
                    let words = "what it sends is neither IPFIX nor microflow records";
                    return Some(Over::Refused(words.to_owned()));
                }
                NextMessage::More => match self.messages.fill(&mut self.octets) {
                    Ok(0) => return Some(self.ended()),
                    Ok(_) => {}
                    Err(error) if error.kind() == ErrorKind::WouldBlock => return None,
                    Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                        return Some(Over::NoHandshake(error.to_string()));
                    }
                    // The TLS stream is broken.
                    Err(error) if error.kind() == ErrorKind::Other => {
                        return Some(Over::Refused(error.to_string()));
                    }
                    Err(_) => return Some(self.ended()),
                },
            }
        }
        None
    }

    const fn ended(&self) -> Over {
        match self.messages.is_within_message() {
            true => Over::Cut,
            false => Over::Ended,
        }
    }
}
