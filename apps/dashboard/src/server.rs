// SPDX-License-Identifier: Apache-2.0
//! The server: its options, and the tasks beside its requests.

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
    /// Files of flow records, folders of them, or patterns. Folders and patterns are searched again
    /// every second.
    pub given: Vec<PathBuf>,
    /// Ledger files, in addition to those beside the records.
    pub ledgers: Vec<PathBuf>,
    /// The metrics address of a running program: `127.0.0.1:9414`.
    pub live: Option<String>,
    /// The address to listen on.
    pub listen: SocketAddr,
    /// Names by which clients may address this host, in addition to `localhost`.
    pub names: Vec<String>,
    /// The token that clients must present; required if other machines can connect.
    pub token: Option<Token>,
    /// Files that add information about addresses and ports. They are read once.
    pub enrichment: EnrichmentFiles,
    /// Bounds on requests.
    pub limits: Limits,
    /// The number of the first snapshot of the files. It must differ between runs, so that a page
    /// that was opened during an earlier run notices that its numbers are outdated; the start time
    /// in milliseconds will do. It must stay below 2^53, which JavaScript represents exactly.
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

/// Interval between searches for new files.
const LOOK: Duration = Duration::from_secs(1);

/// A dashboard that is listening.
pub struct Server {
    options: Options,
    listener: TcpListener,
    address: SocketAddr,
    given: Arc<Given>,
    snapshot: Arc<Snapshot>,
}

impl Server {
    /// Reads the columns and times of the files, and starts to listen.
    ///
    /// # Errors
    /// [`DashboardError`] if the files cannot be read, if listening on the address fails, or if the
    /// address can be reached from other machines and there is no token.
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
            // Files in folders can still be repaired while the page shows the error.
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

    /// The address that it listens on.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sentences about what was skipped among the files.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.snapshot.notes
    }

    /// Answers requests until the future is dropped.
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
        // They run in one task, so that all of them end together.
        tokio::join!(
            connections::serve(self.listener, app, limits),
            look(&given, &sender),
            follow,
        );
    }
}

/// Checks every second whether the files have changed, and publishes a new snapshot if so.
async fn look(given: &Arc<Given>, sender: &watch::Sender<Arc<Snapshot>>) {
    let mut ticks = tokio::time::interval(LOOK);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let (given, now) = (Arc::clone(given), Arc::clone(&sender.borrow()));
        let look = move || now.next(&given);
        if let Ok(Some(other)) = tokio::task::spawn_blocking(look).await {
            // If no page listens, the next request still sees the new snapshot.
            let _ = sender.send(Arc::new(other));
        }
    }
}
