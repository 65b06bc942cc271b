// SPDX-License-Identifier: Apache-2.0
//! `turboflow dashboard` and `turboflow report`.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Context;
use tokio::signal::unix::{SignalKind, signal};
use turboflow_dashboard::{DashboardError, Limits, Options, Reported, Server, Token};

use crate::dashboard_args::{DashboardArgs, ReportArgs};
use crate::say;

/// Number of threads that answer requests; questions have their own threads.
const THREADS: usize = 2;

/// Serves the dashboard until a signal arrives.
pub(crate) fn serve(args: DashboardArgs) -> anyhow::Result<ExitCode> {
    let token = args.token_file.as_deref().map(Token::read).transpose()?;
    let has_token = token.is_some();
    let options = Options {
        given: args.files,
        ledgers: args.ledger,
        live: args.live,
        listen: args.listen,
        names: args.host,
        enrichment: args.enrich.files(),
        token,
        limits: Limits::default(),
        first_snapshot: clock_ms(),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(THREADS)
        .enable_all()
        .build()
        .context("cannot start threads")?;
    let outcome = runtime.block_on(async {
        let server = Server::bind(options).await.map_err(mended)?;
        for note in server.notes() {
            say(note);
        }
        let address = server.address();
        let query = if has_token { "?token=TOKEN" } else { "" };
        say(&format!("dashboard at http://{address}/{query}"));
        let mut interrupts = signal(SignalKind::interrupt())?;
        let mut ends = signal(SignalKind::terminate())?;
        tokio::select! {
            () = server.run() => {}
            _ = interrupts.recv() => {}
            _ = ends.recv() => {}
        }
        Ok(ExitCode::SUCCESS)
    });
    // Does not wait for questions that are still being answered.
    runtime.shutdown_background();
    outcome
}

#[allow(
    clippy::disallowed_methods,
    reason = "a page that was opened before the program was started anew has to see it"
)]
fn clock_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(1, |since| since.as_millis() as u64)
}

/// The error, with the option that helps.
fn mended(error: DashboardError) -> anyhow::Error {
    let option = match error {
        DashboardError::Open { .. } => {
            "create one (head -c 24 /dev/urandom | base64 > token) and pass it with --token-file \
             token, or listen at 127.0.0.1"
        }
        DashboardError::Listen { .. } => "choose another one with --listen",
        _ => return error.into(),
    };
    anyhow::anyhow!("{error}; {option}")
}

/// Writes a report.
pub(crate) fn report(args: &ReportArgs) -> anyhow::Result<ExitCode> {
    let of = Reported {
        given: args.files.clone(),
        ledgers: args.ledger.clone(),
        enrichment: args.enrich.files(),
    };
    let html = turboflow_dashboard::report(of, args.filter.clone())?;
    let output = &args.output;
    if output.as_os_str() == "-" {
        return match io::stdout().write_all(&html) {
            // The reader has closed its end.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(ExitCode::SUCCESS),
            outcome => outcome
                .map(|()| ExitCode::SUCCESS)
                .context("cannot write standard output"),
        };
    }
    written(output, &html).with_context(|| format!("cannot write {}", output.display()))?;
    Ok(ExitCode::SUCCESS)
}

/// Writes a file under a temporary name, and renames it when it is complete.
fn written(path: &Path, content: &[u8]) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default();
    let mut hidden = OsString::from(".");
    hidden.push(name);
    hidden.push(format!(".{}.tmp", std::process::id()));
    let unfinished = path.with_file_name(hidden);
    let written = fs::write(&unfinished, content).and_then(|()| fs::rename(&unfinished, path));
    if written.is_err() {
        // The file may not exist.
        let _ = fs::remove_file(&unfinished);
    }
    written
}
