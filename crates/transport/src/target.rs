// SPDX-License-Identifier: Apache-2.0
//! The address of a collector, as a user writes it: `ipfix+udp://collector.example:4739`.

use std::fmt;
use std::str::FromStr;

use crate::TransportError;
use turboflow_formats::wire::Protocol;

/// The transport protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// A TCP connection.
    Tcp,
    /// A TCP connection with TLS.
    Tls,
    /// UDP datagrams.
    Udp,
}

/// What is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Flow records.
    Flows(Protocol),
    /// Microflow records of a probe, in the wire form.
    Microflows,
}

/// A collector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// What is sent there.
    pub content: Content,
    /// The transport protocol.
    pub carrier: Carrier,
    /// Host name or address; an IPv6 address without brackets.
    pub host: String,
    /// Its port.
    pub port: u16,
}

/// Schemes and their default ports. IPFIX has registered ports (RFC 7011, section 10.1), a separate
/// one with TLS. For NetFlow, it is the port that collectors use by convention.
const SCHEMES: [(&str, Content, Carrier, u16); 8] = [
    (
        "ipfix+udp",
        Content::Flows(Protocol::Ipfix),
        Carrier::Udp,
        4739,
    ),
    (
        "ipfix+tcp",
        Content::Flows(Protocol::Ipfix),
        Carrier::Tcp,
        4739,
    ),
    (
        "ipfix+tls",
        Content::Flows(Protocol::Ipfix),
        Carrier::Tls,
        4740,
    ),
    (
        "netflow9+udp",
        Content::Flows(Protocol::Netflow9),
        Carrier::Udp,
        2055,
    ),
    (
        "netflow5+udp",
        Content::Flows(Protocol::Netflow5),
        Carrier::Udp,
        2055,
    ),
    ("microflows+udp", Content::Microflows, Carrier::Udp, 4739),
    ("microflows+tcp", Content::Microflows, Carrier::Tcp, 4739),
    ("microflows+tls", Content::Microflows, Carrier::Tls, 4740),
];

impl Target {
    /// Whether the text is an address rather than a file name: it has a scheme, whichever it is.
    /// Callers test for the addresses of Kafka first.
    #[must_use]
    pub fn is_meant(text: &str) -> bool {
        text.contains("://")
    }
}

impl FromStr for Target {
    type Err = TransportError;

    fn from_str(text: &str) -> Result<Self, TransportError> {
        let refused = |reason: String| TransportError::Target {
            given: text.to_owned(),
            reason,
        };
        let (scheme, rest) = text.split_once("://").unwrap_or(("", text));
        let known = SCHEMES.iter().find(|(name, ..)| *name == scheme);
        let Some((_, content, carrier, default_port)) = known else {
            let names: Vec<_> = SCHEMES
                .iter()
                .map(|(name, ..)| format!("{name}://"))
                .collect();
            return Err(refused(format!("it must begin with {}", names.join(", "))));
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (host, port) = match rest.strip_prefix('[') {
            Some(bracketed) => {
                let (host, port) = bracketed
                    .split_once(']')
                    .ok_or_else(|| refused("the bracket is not closed".to_owned()))?;
                (
                    host,
                    port.strip_prefix(':').or(port.is_empty().then_some("")),
                )
            }
            None => match rest.rsplit_once(':') {
                Some((host, _)) if host.contains(':') => {
                    return Err(refused("write IPv6 addresses in brackets".to_owned()));
                }
                Some((host, port)) => (host, Some(port)),
                None => (rest, Some("")),
            },
        };
        let port = match port {
            Some("") if !rest.ends_with(':') => Some(*default_port),
            Some(port) => port.parse().ok().filter(|port| *port != 0),
            None => None,
        };
        let port = port.ok_or_else(|| refused("a port is a number from 1 to 65535".to_owned()))?;
        if host.is_empty() || host.contains(['/', '@', '?', ' ']) {
            return Err(refused(
                "write scheme://host:port and nothing more".to_owned(),
            ));
        }
        Ok(Self {
            content: *content,
            carrier: *carrier,
            host: host.to_owned(),
            port,
        })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = SCHEMES
            .iter()
            .find(|(_, content, carrier, _)| (*content, *carrier) == (self.content, self.carrier))
            .map_or("", |(name, ..)| name);
        let (host, port) = (&self.host, self.port);
        if host.contains(':') {
            write!(formatter, "{scheme}://[{host}]:{port}")
        } else {
            write!(formatter, "{scheme}://{host}:{port}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_back_what_it_writes() {
        for text in [
            "ipfix+udp://127.0.0.1:4739",
            "ipfix+tcp://[::1]:9",
            "ipfix+tls://collector.example:9",
            "netflow9+udp://collector.example:2055",
            "netflow5+udp://c:65535",
            "microflows+udp://c:1",
            "microflows+tcp://c:1",
            "microflows+tls://c:1",
        ] {
            assert_eq!(text.parse::<Target>().unwrap().to_string(), text);
        }
        let plain: Target = "ipfix+udp://host".parse().unwrap();
        assert_eq!(plain.port, 4739);
        let secure: Target = "ipfix+tls://host".parse().unwrap();
        assert_eq!((secure.carrier, secure.port), (Carrier::Tls, 4740));
        assert_eq!(
            "netflow5+udp://[::1]/".parse::<Target>().unwrap().port,
            2055
        );
    }

    #[test]
    fn explains_what_is_invalid() {
        for (text, words) in [
            ("udp://h:1", "ipfix+udp://"),
            ("netflow9+tcp://h:1", "netflow9+udp://"),
            ("ipfix+udp://h:0", "port"),
            ("ipfix+udp://h:", "port"),
            ("ipfix+udp://h:99999", "port"),
            ("ipfix+udp://::1:4739", "brackets"),
            ("ipfix+udp://[::1", "bracket"),
            ("ipfix+udp://[::1]x", "port"),
            ("ipfix+udp://:4739", "host"),
            ("ipfix+udp://u@h:4739", "nothing more"),
        ] {
            let error = text.parse::<Target>().unwrap_err().to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
