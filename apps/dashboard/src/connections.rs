// SPDX-License-Identifier: Apache-2.0
//! Connections: how many may be open, and how long they may be silent.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use crate::Limits;

/// Maximum size of a request head, in bytes.
const HEAD_BYTES: usize = 16 << 10;

/// Pause after `accept` fails, for example because no file descriptors are left.
const PAUSE: Duration = Duration::from_millis(100);

/// Accepts and serves connections until the future is dropped.
pub(crate) async fn serve(listener: TcpListener, app: Router, limits: Limits) {
    let places = Arc::new(Semaphore::new(limits.connections));
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        // At the limit, new connections are closed, so that the open ones are still served.
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
            continue;
        };
        let service = TowerToHyperService::new(app.clone());
        tokio::spawn(async move {
            prepare(&stream, &limits);
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(limits.receive_time)
                .max_buf_size(HEAD_BYTES)
                .serve_connection(TokioIo::new(stream), service);
            // The client has already been told about its errors.
            let _ = connection.await;
            drop(place);
        });
    }
}

/// Makes the kernel drop clients that do not read what they are sent.
fn prepare(stream: &TcpStream, limits: &Limits) {
    // The connection also works without these options.
    let _ = stream.set_nodelay(true);
    #[cfg(target_os = "linux")]
    {
        let most_ms = u32::try_from(limits.send_time.as_millis()).unwrap_or(u32::MAX);
        let _ = rustix::net::sockopt::set_tcp_user_timeout(stream, most_ms);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = limits;
}
