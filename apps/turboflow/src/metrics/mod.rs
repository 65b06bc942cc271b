// SPDX-License-Identifier: Apache-2.0
//! `--metrics ADDRESS:PORT`: serves the current ledger for Prometheus and a health page, over
//! HTTP/1.1, on a thread of its own.

mod exposition;
mod health;
mod http;

use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use anyhow::Context;
use hyper::StatusCode;
use turboflow_run::{LiveSnapshot, Snapshots};

use crate::bridge;
use crate::keys::Key;
use crate::log::say;
use http::Reply;

/// Requests for snapshots of the current run.
pub(crate) static SNAPSHOTS: Snapshots = Snapshots::new();

/// How long the metering thread may take to answer. It checks for requests many times a second.
const PATIENCE: Duration = Duration::from_secs(2);

/// Serves metrics until the process ends. Returns the bound address, because port 0 means any free
/// port.
pub(crate) fn serve(address: SocketAddr) -> anyhow::Result<SocketAddr> {
    let listener = TcpListener::bind(address).with_context(|| {
        format!(
            "cannot serve metrics at {address}; choose another {}, or none",
            Key::Metrics
        )
    })?;
    let bound = listener.local_addr().context("cannot serve metrics")?;
    std::thread::Builder::new()
        .name("metrics".to_owned())
        .spawn(move || {
            // Descriptors may be short, or a filter of system calls may forbid what it needs.
            if let Err(error) = http::serve(listener, answer) {
                say!(Error NotServing, address = bound.to_string();
                    "the metrics at {bound} are not served: {error}");
            }
        })
        .context("cannot start the thread that serves metrics")?;
    Ok(bound)
}

fn answer(path: &str) -> Reply {
    let page: fn(&LiveSnapshot) -> Reply = match path {
        "/metrics" => |snapshot| {
            let page = exposition::render(snapshot, bridge::told().as_ref());
            Reply::ok(exposition::CONTENT_TYPE, page)
        },
        "/healthz" => |snapshot| health::page(snapshot, bridge::told()),
        "/" => return Reply::text(StatusCode::OK, "turboflow: /metrics, /healthz\n"),
        _ => {
            return Reply::text(
                StatusCode::NOT_FOUND,
                "not found: try /metrics or /healthz\n",
            );
        }
    };
    match SNAPSHOTS.ask(PATIENCE) {
        Some(snapshot) => page(&snapshot),
        None => Reply::text(
            StatusCode::SERVICE_UNAVAILABLE,
            "metering does not answer: it is starting, ending or blocked\n",
        ),
    }
}
