// SPDX-License-Identifier: Apache-2.0
//! Rereads the rules, completely or not at all.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::bail;
use turboflow_bridge::Rules;
use turboflow_record::RuleNames;

use super::BridgeSetup;
use super::control::Control;
use crate::bridge::RulesFile;
use crate::engines::RereadByEngine;
use crate::exit::in_words;
use crate::log::say;
use crate::units::counted;

/// The source of the rules, once the bridge runs.
#[derive(Default)]
pub(super) struct Reload(Mutex<Option<From>>);

struct From {
    file: RulesFile,
    names: Arc<RuleNames>,
}

impl Reload {
    /// Sets the file that the running bridge got its rules from.
    pub(super) fn begin(&self, file: RulesFile, names: Arc<RuleNames>) {
        let mut from = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *from = Some(From { file, names });
    }
}

/// Returns the function that rereads the rules.
pub(super) fn reread(setup: &BridgeSetup) -> Option<RereadByEngine> {
    let (reload, control) = (Arc::clone(&setup.reload), Arc::clone(&setup.control));
    Some(Box::new(move || {
        let from = reload.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(from) = &*from else {
            return;
        };
        if let Err(error) = read(from, &control) {
            say!(Error RulesRefused; "{}; the rules stay as they were", in_words(&error));
        }
    }))
}

fn read(from: &From, control: &Control) -> anyhow::Result<()> {
    let before = control.rules();
    let rules = from.file.read(before.as_deref())?;
    let name = from.file.name();
    if let Some(before) = &before {
        check_change(before, &rules)?;
    }
    for warning in rules.warnings() {
        say!(Warning RulesDoubtful; "{name}, {warning}");
    }
    let count = counted(rules.rules().len() as u64, "rule");
    say!(Info Reloaded; "{name} was read again: {count}");
    control.replace(Arc::new(rules), &from.names);
    Ok(())
}

/// Refuses changes that are impossible while the bridge runs.
fn check_change(before: &Rules, after: &Rules) -> anyhow::Result<()> {
    let (before, after) = (before.fail(), after.fail());
    if before != after {
        bail!(
            "fail = \"{before}\" cannot become \"{after}\" while the bridge runs: write \
             \"{before}\", or restart the bridge"
        );
    }
    Ok(())
}
