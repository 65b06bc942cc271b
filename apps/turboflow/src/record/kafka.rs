// SPDX-License-Identifier: Apache-2.0
//! Outputs to topics of Kafka: `-w kafka://broker:9092/flows`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::{fs, io};

use anyhow::{Context, bail};
use turboflow_formats::{Identity, TextOptions};
use turboflow_kafka::{
    KafkaOptions, KafkaTarget, Records, TlsTexts, check as check_records, send_to,
};
use turboflow_run::{Output, OutputConfig, RunConfig};
use turboflow_transport::SendOptions;

use super::identity;
use super::settings::Settings;
use crate::keys::Key;
use crate::log::say;

/// The environment variable with the password of a login, because everyone can see arguments.
const PASSWORD: &str = "TURBOFLOW_KAFKA_PASSWORD";

/// The topic that an output names; `None` for a file or another collector.
pub(super) fn target_of(path: &Path) -> anyhow::Result<Option<KafkaTarget>> {
    match path.to_str() {
        Some(text) if KafkaTarget::is_meant(text) => Ok(Some(text.parse()?)),
        _ => Ok(None),
    }
}

/// The contents of the TLS files that an output names.
pub(super) fn tls_texts(output: &OutputConfig) -> anyhow::Result<TlsTexts> {
    let read = |path: &PathBuf, key: Key| {
        let text = fs::read_to_string(path);
        text.with_context(|| format!("{key}: cannot read {}", path.display()))
    };
    let of = |path: &Option<PathBuf>, key| path.as_ref().map(|path| read(path, key)).transpose();
    let certificate = of(&output.tls_cert, Key::TlsCert)?;
    let key = of(&output.tls_key, Key::TlsKeyFile)?;
    if certificate.is_some() != key.is_some() {
        bail!(
            "{} goes with {}: give both, or neither",
            Key::TlsCert,
            Key::TlsKeyFile
        );
    }
    Ok(TlsTexts {
        authorities: of(&output.tls_ca, Key::TlsCa)?,
        client: certificate.zip(key),
    })
}

/// The records of an output.
struct Own<'a> {
    settings: &'a Settings,
    identity: Identity,
    metadata: Vec<(String, String)>,
    text: TextOptions,
}

impl<'a> Own<'a> {
    fn new(
        output: &OutputConfig,
        settings: &'a Settings,
        metadata: Vec<(String, String)>,
        identity: Identity,
    ) -> anyhow::Result<Self> {
        Ok(Self {
            settings,
            identity,
            metadata,
            text: TextOptions {
                time: output.text_time,
                names: output.names,
            },
        })
    }

    fn records(&self) -> Records<'_> {
        let config = &self.settings.config;
        Records {
            schema: self.settings.layout.schema(),
            key_columns: config.definition.key.len(),
            is_biflow: config.biflow,
            identity: &self.identity,
            metadata: &self.metadata,
            text: self.text,
        }
    }
}

/// Checks whether the topic can take the records, without contacting a broker.
pub(super) fn check(
    target: &KafkaTarget,
    run: &RunConfig,
    output: &OutputConfig,
    settings: &Settings,
) -> anyhow::Result<()> {
    let own = Own::new(output, settings, Vec::new(), identity::of_run(run)?)?;
    check_records(target, &own.records())?;
    password(target).map(|_| ())
}

/// The password of the target's login.
fn password(target: &KafkaTarget) -> anyhow::Result<Option<String>> {
    let of = |login: &turboflow_kafka::Login| {
        std::env::var(PASSWORD).with_context(|| {
            format!(
                "{target}: the password of {} is read from the environment: set {PASSWORD}",
                login.user
            )
        })
    };
    target.login.as_ref().map(of).transpose()
}

/// The identity of records to a topic. If an output restarts during a run because its options
/// changed, it counts as another run, because the sums in its ticks restart too. A second output to
/// a topic of this name is also another run, because different lists of brokers may belong to one
/// cluster.
fn identity_for(target: &KafkaTarget, run: &RunConfig) -> anyhow::Result<Identity> {
    static BEGUN: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let mut begun = BEGUN.lock().unwrap_or_else(PoisonError::into_inner);
    match begun.insert(target.topic.clone()) {
        true => identity::of_run(run),
        false => identity::of_another_run(run),
    }
}

fn say_ticks_lost(place: &str, error: &io::Error) {
    say!(Warning TicksLost, output = place;
        "{place}: {error}; consumers cannot tell whether records are complete: create the topic, or \
         send no ticks with ticks=none");
}

/// The output that sends to `target`. `metadata` is added to the schemas of Arrow messages.
pub(super) fn output(
    target: &KafkaTarget,
    (run, output, settings): (&RunConfig, &OutputConfig, &Settings),
    metadata: Vec<(String, String)>,
    send: SendOptions,
    tls: TlsTexts,
) -> anyhow::Result<Output> {
    let own = Own::new(output, settings, metadata, identity_for(target, run)?)?;
    let options = KafkaOptions {
        send,
        tls,
        password: password(target)?,
        observe_ticks: say_ticks_lost,
    };
    let writer = send_to(target, &own.records(), &options)?;
    let encoder = turboflow_kafka::Encoder::new(target, &own.records())?;
    if !encoder.left_out().is_empty() && !run.service.quiet {
        let columns = encoder.left_out().join(", ");
        say!(Info ColumnsLeftOut, output = target.to_string();
            "{target}: {} has no field for {columns}; format=arrow and format=json have one",
            target.format.name());
    }
    Ok(Output {
        name: target.to_string(),
        writer,
        // The client enforces its own linger and deadline.
        may_stall: false,
    })
}
