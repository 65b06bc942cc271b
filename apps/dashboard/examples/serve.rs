// SPDX-License-Identifier: Apache-2.0
//! Serves the dashboard without the query engine, for work on the page: `cargo run --package
//! turboflow-dashboard --example serve -- FILE...`. An argument with a colon is a metrics address.
#![allow(clippy::unwrap_used, reason = "a tool of developers")]

use turboflow_dashboard::{Limits, Options, Server};

fn main() {
    let (live, files): (Vec<String>, Vec<String>) = std::env::args()
        .skip(1)
        .partition(|word| word.contains(':'));
    let options = Options {
        given: files.into_iter().map(Into::into).collect(),
        ledgers: Vec::new(),
        live: live.into_iter().next(),
        listen: "127.0.0.1:8415".parse().unwrap(),
        names: Vec::new(),
        token: None,
        enrichment: turboflow_query::EnrichmentFiles::default(),
        limits: Limits::default(),
        first_snapshot: 1,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let server = Server::bind(options).await.unwrap();
        eprintln!("dashboard at http://{}/", server.address());
        server.run().await;
    });
}
