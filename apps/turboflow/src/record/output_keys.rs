// SPDX-License-Identifier: Apache-2.0
//! The files with certificates and keys that outputs need. They are read once, before root is
//! dropped, because only root may be able to read a private key, and before any output is touched.

use std::path::{Path, PathBuf};

use anyhow::bail;
use turboflow_formats::CryptoPan;
use turboflow_kafka::TlsTexts;
use turboflow_run::{OutputConfig, RunConfig};
use turboflow_transport::{Carrier, Target, Tls, TlsFiles, TlsPart, TransportError};

use super::collectors::{CLOCK, target_of};
use super::outputs::about;
use super::{kafka, sends};
use crate::anonymize;
use crate::keys::Key;

/// Files that TLS needs for an output: CA certificates, client certificate, private key.
type TlsNames = [Option<PathBuf>; 3];

fn names_of(output: &OutputConfig) -> TlsNames {
    [&output.tls_ca, &output.tls_cert, &output.tls_key].map(Clone::clone)
}

/// Contents of the files. Each file, or set of files for TLS, is read once.
#[derive(Clone, Default)]
pub(super) struct OutputKeys {
    of_collectors: Vec<(TlsNames, Tls)>,
    of_topics: Vec<(TlsNames, TlsTexts)>,
    of_pseudonyms: Vec<(PathBuf, CryptoPan)>,
}

impl OutputKeys {
    /// Reads the files that the outputs need. Reuses files in `before`, which may have become
    /// unreadable when root was dropped.
    pub(super) fn new(run: &RunConfig, before: &[&Self]) -> anyhow::Result<Self> {
        let mut read = Self::default();
        for output in &run.outputs {
            let added = read.add_pseudonyms(output, before);
            let added = added.and_then(|()| read.add_tls(output, before));
            added.map_err(|error| about(output, run, error))?;
        }
        Ok(read)
    }

    fn add_pseudonyms(&mut self, output: &OutputConfig, before: &[&Self]) -> anyhow::Result<()> {
        let Some(path) = &output.anonymize else {
            return Ok(());
        };
        // Refused later.
        if sends::is_meant(&output.to)? {
            return Ok(());
        }
        if self.pseudonyms_at(path).is_none() {
            let known = before.iter().find_map(|before| before.pseudonyms_at(path));
            let key = known.map_or_else(|| anonymize::key(path), |key| Ok(key.clone()))?;
            self.of_pseudonyms.push((path.clone(), key));
        }
        Ok(())
    }

    fn add_tls(&mut self, output: &OutputConfig, before: &[&Self]) -> anyhow::Result<()> {
        let by_tls = |target: Target| target.carrier == Carrier::Tls;
        let names = names_of(output);
        if kafka::target_of(&output.to)?.is_some_and(|target| target.is_tls) {
            if self.texts(&names).is_none() {
                let known = before.iter().find_map(|before| before.texts(&names));
                let texts = known.map_or_else(|| kafka::tls_texts(output), |its| Ok(its.clone()));
                self.of_topics.push((names, texts?));
            }
            return Ok(());
        }
        if target_of(&output.to)?.is_some_and(by_tls) && self.tls(&names).is_none() {
            let known = before.iter().find_map(|before| before.tls(&names));
            let tls = known.map_or_else(|| read_tls(output), |tls| Ok(tls.clone()))?;
            self.of_collectors.push((names, tls));
        }
        Ok(())
    }

    /// The TLS settings of an output, if it uses TLS.
    pub(super) fn tls_of(&self, output: &OutputConfig) -> Option<&Tls> {
        self.tls(&names_of(output))
    }

    fn tls(&self, names: &TlsNames) -> Option<&Tls> {
        let mut found = self.of_collectors.iter().filter(|(its, _)| its == names);
        found.next().map(|(_, tls)| tls)
    }

    /// The certificates and keys of an output to a topic.
    pub(super) fn texts_of(&self, output: &OutputConfig) -> TlsTexts {
        self.texts(&names_of(output)).cloned().unwrap_or_default()
    }

    fn texts(&self, names: &TlsNames) -> Option<&TlsTexts> {
        let mut found = self.of_topics.iter().filter(|(its, _)| its == names);
        found.next().map(|(_, texts)| texts)
    }

    /// The key of an output whose addresses are replaced by pseudonyms.
    pub(super) fn pseudonyms_of(&self, output: &OutputConfig) -> Option<&CryptoPan> {
        self.pseudonyms_at(output.anonymize.as_ref()?)
    }

    fn pseudonyms_at(&self, path: &Path) -> Option<&CryptoPan> {
        let mut found = self.of_pseudonyms.iter().filter(|(its, _)| its == path);
        found.next().map(|(_, key)| key)
    }
}

fn read_tls(output: &OutputConfig) -> anyhow::Result<Tls> {
    for (one, key, other) in [
        (
            &output.tls_cert,
            Key::TlsCert,
            (&output.tls_key, Key::TlsKeyFile),
        ),
        (
            &output.tls_key,
            Key::TlsKeyFile,
            (&output.tls_cert, Key::TlsCert),
        ),
    ] {
        if one.is_some() && other.0.is_none() {
            bail!("{key} goes with {}: give both, or neither", other.1);
        }
    }
    let files = TlsFiles {
        authorities: output.tls_ca.clone(),
        client: output.tls_cert.clone().zip(output.tls_key.clone()),
    };
    let key = |error: &TransportError| match error {
        TransportError::Tls { part, .. } => match part {
            TlsPart::Authorities => Key::TlsCa.to_string(),
            TlsPart::Certificate => Key::TlsCert.to_string(),
            TlsPart::Key => Key::TlsKeyFile.to_string(),
        },
        _ => "TLS".to_owned(),
    };
    Tls::new(&files, CLOCK).map_err(|error| {
        let key = key(&error);
        anyhow::Error::new(error).context(key)
    })
}
