// SPDX-License-Identifier: Apache-2.0
//! The server: what it is given, and what runs beside requests.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use turboflow_query::{EnrichmentFiles, QueryError};

use crate::connections;
use crate::guard::Guard;
use crate::live::Live;
use crate::pool::Pool;
use crate::routes::{Shared, router};
use crate::store::{Given, Snapshot, check};
use crate::{DashboardError, Limits, Token};

/// What the dashboard shows, and to which clients.
#[derive(Clone, Debug)]
pub struct Options {
    /// Files of flow records, folders of them, or patterns. Folders and patterns are looked at
    /// again every second.
    pub given: Vec<PathBuf>,
    /// Files of ledgers, besides those that are beside the records.
    pub ledgers: Vec<PathBuf>,
    /// Where a running program has its metrics: `127.0.0.1:9414`.
    pub live: Option<String>,
    /// Where to listen.
    pub listen: SocketAddr,
    /// Names besides `localhost` by which clients may call this host.
    pub names: Vec<String>,
    /// What clients have to know; needed where other machines can be clients.
    pub token: Option<Token>,
    /// Files that say more of addresses and ports; they are read once.
    pub enrichment: EnrichmentFiles,
    /// Bounds on requests.
    pub limits: Limits,
    /// The number of the first snapshot of the files: another one for each run, such as its start
    /// in milliseconds, so that a page that was opened before sees that its numbers are old. Below
    /// 2^53, which a page keeps exactly.
    pub first_snapshot: u64,
}

impl Options {
    fn given(&self) -> Result<Given, QueryError> {
        Ok(Given {
            files: self.given.clone(),
            ledgers: self.ledgers.clone(),
            known: self.enrichment.read()?,
            enrichment: self.enrichment.clone(),
        })
    }
}

/// How often files are looked for.
const LOOK: Duration = Duration::from_secs(1);

/// A dashboard that listens.
pub struct Server {
    options: Options,
    listener: TcpListener,
    address: SocketAddr,
    given: Arc<Given>,
    snapshot: Arc<Snapshot>,
}

impl Server {
    /// Reads the files' columns and times, and listens.
    ///
    /// # Errors
    /// [`DashboardError`]: the files cannot be read, the address cannot be listened at, or it can
    /// be reached from other machines and there is no token.
    pub async fn bind(options: Options) -> Result<Self, DashboardError> {
        if options.given.is_empty() && options.live.is_none() {
            return Err(DashboardError::Nothing);
        }
        if !options.listen.ip().is_loopback() && options.token.is_none() {
            return Err(DashboardError::Open {
                address: options.listen.to_string(),
            });
        }
        check(&options.given)?;
        let its = options.clone();
        let opened = tokio::task::spawn_blocking(move || {
            let (given, id) = (its.given()?, its.first_snapshot);
            // What folders have may be mended while the page says what is wrong.
            let snapshot = match given.files.iter().all(|path| path.is_dir()) {
                true => Snapshot::of(&given, id),
                false => Snapshot::opened(&given, id)?,
            };
            Ok::<_, QueryError>((given, snapshot))
        });
        let (given, snapshot) = opened.await.expect("reading files does not panic")?;
        let refused = |error: std::io::Error| DashboardError::Listen {
            address: options.listen.to_string(),
            reason: error.to_string(),
        };
        let listener = TcpListener::bind(options.listen).await.map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        Ok(Self {
            snapshot: Arc::new(snapshot),
            given: Arc::new(given),
            options,
            listener,
            address,
        })
    }

    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// What was passed over among the files, in sentences.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.snapshot.notes
    }

    /// Answers requests until it is dropped.
    pub async fn run(self) {
        let given = self.given;
        let Options {
            live,
            names,
            token,
            limits,
            ..
        } = self.options;
        let (sender, snapshot) = watch::channel(self.snapshot);
        let live = live.map(|address| Arc::new(Live::new(address)));
        let shared = Arc::new(Shared {
            pool: Pool::new(Arc::clone(&given), limits),
            streams: Arc::new(Semaphore::new(limits.streams)),
            live: live.clone(),
            snapshot,
            given: Arc::clone(&given),
            limits,
        });
        let guard = Arc::new(Guard {
            address: self.address,
            names,
            token,
        });
        let app = router(shared, guard);
        let follow = async {
            match live {
                Some(live) => live.run().await,
                None => std::future::pending().await,
            }
        };
        // In one task, so that all end with it.
        tokio::join!(
            connections::serve(self.listener, app, limits),
            look(&given, &sender),
            follow,
        );
    }
}

/// Looks every second whether there are other files, and tells.
async fn look(given: &Arc<Given>, sender: &watch::Sender<Arc<Snapshot>>) {
    let mut ticks = tokio::time::interval(LOOK);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let (given, now) = (Arc::clone(given), Arc::clone(&sender.borrow()));
        let look = move || now.next(&given);
        if let Ok(Some(other)) = tokio::task::spawn_blocking(look).await {
            // Without a page that follows, the next request sees it.
            let _ = sender.send(Arc::new(other));
        }
    }
}
