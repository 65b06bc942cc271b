// SPDX-License-Identifier: Apache-2.0
//! Addresses of topics, and the errors for wrong ones. No broker is contacted.

use crate::support::{office, turboflow};

#[test]
fn wrong_addresses_and_options_are_refused() {
    let office = office();
    for (topic, further, words) in [
        ("kafka://127.0.0.1:1", "-q", "is not a topic"),
        (
            "kafka://a/t?format=avro",
            "-q",
            "none of goflow2, arrow, json",
        ),
        (
            "kafka://a/t",
            "--names",
            "--names is for CSV and JSON lines",
        ),
        (
            "kafka://a/t",
            "--tls-ca=/no/such",
            "--tls-ca is for collectors over TLS",
        ),
        (
            "kafka+tls://a/t",
            "--tls-ca=/no/such",
            "--tls-ca: cannot read /no/such",
        ),
    ] {
        turboflow(["record", "-r", &office, "-w", topic, further])
            .exits(2)
            .says(&[words]);
    }
    turboflow([
        "record",
        "-r",
        &office,
        "-w",
        "kafka://a/t",
        "-w",
        "kafka://a:9092/t",
    ])
    .exits(2)
    .says(&["would be written twice"]);
}

#[cfg(feature = "kafka")]
#[test]
fn biflows_and_logins_without_a_password_are_refused() {
    let office = office();
    turboflow(["record", "-r", &office, "-w", "kafka://a/t", "--biflow"])
        .exits(2)
        .says(&["leave --biflow out, or use format=arrow"]);
    let login = "kafka+tls://a/t?sasl=scram-sha-512&user=meter";
    turboflow(["record", "-r", &office, "-w", login])
        .exits(2)
        .says(&["the password of meter", "set TURBOFLOW_KAFKA_PASSWORD"]);
}

#[cfg(not(feature = "kafka"))]
#[test]
fn a_build_without_the_client_says_how_to_get_it() {
    turboflow(["record", "-r", &office(), "-w", "kafka://a/t"])
        .exits(2)
        .says(&["built without Kafka", "make build KAFKA=1"]);
}
