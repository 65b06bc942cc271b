// SPDX-License-Identifier: Apache-2.0
//! A real Kafka broker that demands TLS, a certificate of the exporter, or a login.

use std::fs;

use turboflow_testing::free_port;

use crate::certificates::Certificates;
use crate::kafka::Broker;
use crate::support::{Ran, command, finish, office};

const RECORDS: u64 = 742;
const PASSWORD: &str = "correct horse";

/// A broker with two listeners: TLS with certificates on both sides, and logins over TLS.
struct Secured {
    broker: Broker,
    made: Certificates,
    by_certificate: u16,
    by_login: u16,
}

impl Secured {
    fn start() -> Option<Self> {
        let made = Certificates::make()?;
        let (by_certificate, by_login) = (free_port(), free_port());
        let pem =
            ["server.key", "server.pem"].map(|name| fs::read_to_string(made.file(name)).unwrap());
        fs::write(made.file("keystore.pem"), pem.concat()).unwrap();
        let listeners = format!(",CERT://127.0.0.1:{by_certificate},LOGIN://127.0.0.1:{by_login}");
        let login = "org.apache.kafka.common.security";
        let settings = format!(
            "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,CERT:SSL,LOGIN:SASL_SSL\n\
             ssl.keystore.type=PEM\nssl.keystore.location={}\nssl.truststore.type=PEM\nssl.truststore.location={}\n\
             listener.name.cert.ssl.client.auth=required\n\
             listener.name.login.sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512\n\
             listener.name.login.plain.sasl.jaas.config={login}.plain.PlainLoginModule required \
             user_meter=\"{PASSWORD}\";\n\
             listener.name.login.scram-sha-256.sasl.jaas.config={login}.scram.ScramLoginModule required;\n\
             listener.name.login.scram-sha-512.sasl.jaas.config={login}.scram.ScramLoginModule required;",
            made.file("keystore.pem"),
            made.file("ca.pem"),
        );
        let scram =
            ["256", "512"].map(|bits| format!("SCRAM-SHA-{bits}=[name=meter,password={PASSWORD}]"));
        let prepared = ["--add-scram", &scram[0], "--add-scram", &scram[1]];
        let broker = Broker::start_with(&listeners, &settings, &prepared)?;
        Some(Self {
            broker,
            made,
            by_certificate,
            by_login,
        })
    }

    /// Sends the records of a capture to a topic.
    fn sends(&self, port: u16, topic: &str, more: &[&str], password: &str) -> Ran {
        let target = format!("kafka+tls://127.0.0.1:{port}/{topic}");
        let mut record = command(["record", "-q", "-r", &office(), "-w", &target]);
        record.args(more).env("TURBOFLOW_KAFKA_PASSWORD", password);
        finish(&mut record)
    }

    fn messages(&self, topic: &str) -> u64 {
        self.broker.ends(topic).iter().sum()
    }
}

#[test]
fn records_arrive_over_tls_by_certificate_and_by_login() {
    let Some(its) = Secured::start() else {
        return;
    };
    let ca = format!("--tls-ca={}", its.made.file("ca.pem"));
    let certificate = format!("--tls-cert={}", its.made.file("client.pem"));
    let key = format!("--tls-key={}", its.made.file("client.key"));
    let both = [ca.as_str(), &certificate, &key];
    its.sends(its.by_certificate, "cert", &both, "").exits(0);
    assert_eq!(its.messages("cert"), RECORDS);
    for mechanism in ["plain", "scram-sha-256", "scram-sha-512"] {
        let topic = format!("{mechanism}?sasl={mechanism}&user=meter");
        its.sends(its.by_login, &topic, &[&ca], PASSWORD).exits(0);
        assert_eq!(its.messages(mechanism), RECORDS, "{mechanism}");
    }

    // If the broker or the program refuses the connection, the records are lost, and the reason is
    // reported. A run tries for seconds before it gives up.
    let other = format!("--tls-ca={}", its.made.file("other.pem"));
    let login = "refused?sasl=scram-sha-512&user=meter";
    let refused = [
        (its.by_certificate, "refused", &ca, "", "certificate"),
        (
            its.by_login,
            login,
            &other,
            PASSWORD,
            "certificate verify failed",
        ),
        (its.by_login, login, &ca, "wrong", "uthentication"),
    ];
    std::thread::scope(|scope| {
        for (port, topic, ca, password, reason) in refused {
            let its = &its;
            scope.spawn(move || {
                let ran = its.sends(port, topic, &[ca], password);
                ran.exits(1).says(&["742 records count as lost", reason]);
            });
        }
    });
}
