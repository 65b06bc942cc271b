// SPDX-License-Identifier: Apache-2.0
//! Certificates for TLS tests, made by OpenSSL.

use std::process::Command;

use turboflow_testing::{Need, is_missing};

use crate::support::{Folder, finish};

/// A folder with two certificate authorities. The first has issued certificates for this host, for
/// another name, an expired one, and one for the client.
pub(crate) struct Certificates(pub(crate) Folder);

impl Certificates {
    /// `None` if the test is skipped without OpenSSL.
    pub(crate) fn make() -> Option<Self> {
        if is_missing(&[Need::Tool("openssl"), localhost()]) {
            return None;
        }
        let folder = Folder::new();
        let made = Self(folder);
        for authority in ["ca", "other"] {
            made.openssl(&format!(
                "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN={authority} \
                 -keyout {authority}.key -out {authority}.pem"
            ));
        }
        for (name, subject, days) in [
            ("server", "DNS:localhost,IP:127.0.0.1", "2"),
            ("elsewhere", "DNS:elsewhere.example", "2"),
            ("expired", "DNS:localhost,IP:127.0.0.1", "-1"),
            ("client", "DNS:exporter.example", "2"),
        ] {
            made.openssl(&format!(
                "req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN={name} \
                 -keyout {name}.key -out {name}.csr"
            ));
            made.0
                .write("extensions", format!("subjectAltName={subject}"));
            made.openssl(&format!(
                "x509 -req -in {name}.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days {days} \
                 -extfile extensions -out {name}.pem"
            ));
        }
        Some(made)
    }

    pub(crate) fn openssl(&self, arguments: &str) {
        let mut command = Command::new("openssl");
        command.args(arguments.split_whitespace());
        let ran = finish(command.current_dir(self.0.path()));
        assert_eq!(ran.code, Some(0), "{arguments}: {}", ran.stderr);
    }

    pub(crate) fn file(&self, name: &str) -> String {
        self.0.file(name)
    }
}

/// The certificates are for this name, which a minimal system may not resolve.
fn localhost() -> Need<'static> {
    let addresses = std::net::ToSocketAddrs::to_socket_addrs("localhost:1");
    Need::Library("localhost in /etc/hosts", addresses.is_ok())
}
