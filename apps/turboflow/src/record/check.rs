// SPDX-License-Identifier: Apache-2.0
//! Whether options make sense, without opening what they name.

use std::path::PathBuf;

use turboflow_record::Definition;
use turboflow_transport::Tls;

use super::args::Engine;
use super::settings::{self, Settings};
use super::{RecordArgs, collectors, filter, kernel, live, outputs};

/// What the options say of files that are read when a service starts. Once its rights are given up, it may not be able to
/// read them again, nor has it to.
#[derive(Clone, PartialEq)]
struct Names {
    definition: (Option<PathBuf>, Engine, bool),
    tls: [Option<PathBuf>; 3],
}

/// What was in those files.
pub(crate) struct FilesRead {
    names: Names,
    definition: Definition,
    tls: Option<Tls>,
}

/// Says what is wrong with the options, as far as that can be told without opening anything. Files of the same names as
/// `before` are not read again.
pub(crate) fn check(args: &RecordArgs, before: Option<&FilesRead>) -> anyhow::Result<FilesRead> {
    let names = Names {
        definition: (args.definition.clone(), args.engine, args.biflow),
        tls: tls_names(args),
    };
    let same_definition = before.filter(|read| read.names.definition == names.definition);
    let definition = match same_definition {
        Some(read) => read.definition.clone(),
        None => settings::definition(args)?,
    };
    let tls_before = before.map(|read| (&read.names.tls, read.tls.as_ref()));
    let tls = tls_after(args, tls_before.as_slice())?;
    let settings = Settings::with(args, definition.clone())?;
    outputs::Maker::new(args, &settings, tls.as_ref())?.check()?;
    filter::check(args)?;
    if args.engine == Engine::Xdp {
        kernel::check(args, &settings)?;
    }
    live::check(args)?;
    Ok(FilesRead {
        names,
        definition,
        tls,
    })
}

/// The files that TLS reads.
pub(super) fn tls_names(args: &RecordArgs) -> [Option<PathBuf>; 3] {
    [&args.tls_ca, &args.tls_cert, &args.tls_key].map(Clone::clone)
}

/// What TLS needs, where files of some names were read before: these are not read again.
pub(super) fn tls_after(
    args: &RecordArgs,
    before: &[(&[Option<PathBuf>; 3], Option<&Tls>)],
) -> anyhow::Result<Option<Tls>> {
    let names = tls_names(args);
    let mut read = before.iter().filter(|(before, _)| **before == names);
    match read.find_map(|(_, tls)| *tls) {
        Some(tls) if collectors::any_by_tls(args)? => Ok(Some(tls.clone())),
        _ => collectors::tls(args),
    }
}
