// SPDX-License-Identifier: Apache-2.0
//! Rules and what they decide.

mod deciding;
mod naive;
mod properties;
mod refusals;
mod reloading;

use std::net::IpAddr;

use turboflow_inspect::{Confidence, Progress};
use turboflow_record::{ApplicationNames, FiveTuple};

use super::{Application, Facts, Rules};

pub(super) const DNS: u32 = 5;
pub(super) const BITTORRENT: u32 = 37;
pub(super) const TLS: u32 = 91;
pub(super) const NETFLIX: u32 = 133;
pub(super) const TLS_NETFLIX: u32 = TLS << 16 | NETFLIX;

pub(super) const WEB: u8 = 5;
pub(super) const DOWNLOAD: u8 = 7;
pub(super) const NETWORK: u8 = 14;
pub(super) const VIDEO: u8 = 26;

/// Some names of nDPI 4.2.
pub(super) fn names() -> ApplicationNames {
    let small = |names: &[(u8, &str)]| {
        let owned = names
            .iter()
            .map(|(number, name)| (*number, (*name).to_owned()));
        owned.collect()
    };
    let applications = [
        (0, "Unknown", 0),
        (DNS, "DNS", NETWORK),
        (BITTORRENT, "BitTorrent", DOWNLOAD),
        (TLS, "TLS", WEB),
        (NETFLIX, "NetFlix", VIDEO),
        (260, "My.Own", WEB),
    ];
    let applications =
        applications.map(|(number, name, category)| (number, name.to_owned(), category));
    ApplicationNames {
        library: "nDPI 4.2.0".to_owned(),
        applications: applications.to_vec(),
        categories: small(&[
            (0, "Unspecified"),
            (WEB, "Web"),
            (DOWNLOAD, "Download"),
            (NETWORK, "Network"),
            (VIDEO, "Video"),
        ]),
        confidences: Vec::new(),
        risks: small(&[
            (3, "Known Protocol on Non Standard Port"),
            (63, "Weak TLS Cipher"),
        ]),
    }
}

pub(super) fn rules(text: &str) -> Rules {
    Rules::parse(text, Some(&names()), None).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

pub(super) fn tuple(from: &str, to: &str, ports: (u16, u16), protocol: u8) -> FiveTuple {
    let address = |text: &str| -> IpAddr { text.parse().unwrap() };
    FiveTuple::new(address(from), address(to), ports.0, ports.1, protocol)
}

/// A TCP flow of which nothing is known yet.
pub(super) fn fresh() -> Facts<'static> {
    Facts {
        tuple: tuple("10.0.0.7", "192.0.2.1", (50_000, 443), 6),
        progress: Progress::Undecided,
        application: None,
        server_name: None,
        risk: 0,
    }
}

/// This flow after its application was recognised from the payload.
pub(super) fn known(number: u32, category: u8) -> Facts<'static> {
    Facts {
        progress: Progress::Known,
        application: Some(Application {
            number,
            category,
            confidence: Confidence::Payload,
        }),
        ..fresh()
    }
}

/// This flow when nothing more can be learned.
pub(super) fn complete(number: u32, category: u8) -> Facts<'static> {
    Facts {
        progress: Progress::Complete,
        ..known(number, category)
    }
}
