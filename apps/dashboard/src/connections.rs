// SPDX-License-Identifier: Apache-2.0
//! Connections: how many there are, and how long they may be silent.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use crate::Limits;

/// Most bytes of the head of a request.
const HEAD_BYTES: usize = 16 << 10;

/// How long to wait after the system refused a connection: it may have no more descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// Serves connections until it is dropped.
pub(crate) async fn serve(listener: TcpListener, app: Router, limits: Limits) {
    let places = Arc::new(Semaphore::new(limits.connections));
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        // One too many is closed, so that those who are served stay served.
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
            // What a client did wrong, it has been told.
            let _ = connection.await;
            drop(place);
        });
    }
}

/// A client that does not read what it was sent is given up by the kernel.
fn prepare(stream: &TcpStream, limits: &Limits) {
    // Without them, the connection works as well.
    let _ = stream.set_nodelay(true);
    #[cfg(target_os = "linux")]
    {
        let most_ms = u32::try_from(limits.send_time.as_millis()).unwrap_or(u32::MAX);
        let _ = rustix::net::sockopt::set_tcp_user_timeout(stream, most_ms);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = limits;
}
