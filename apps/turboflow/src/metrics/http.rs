// SPDX-License-Identifier: Apache-2.0
//! Answers requests for pages over HTTP/1.1, one per connection. Connections are served side by
//! side, each for a limited time, so that clients that send or read nothing delay no others.

use std::convert::Infallible;
use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::{sleep, timeout};

/// Maximum duration of a connection: a request, and reading the reply.
const PATIENCE: Duration = Duration::from_secs(5);
/// Connections served at a time. They leave descriptors for files and collectors.
const CONNECTIONS: usize = 512;
/// Pages made at a time.
const PAGES: usize = 4;
/// Maximum bytes of request line and headers.
const REQUEST_BYTES: usize = 8 << 10;
/// Pause after a failed accept, for example without free descriptors, to avoid a busy loop.
const PAUSE: Duration = Duration::from_millis(200);

/// A page.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Reply {
    pub(super) status: StatusCode,
    content_type: &'static str,
    pub(super) body: String,
}

impl Reply {
    pub(super) const fn ok(content_type: &'static str, body: String) -> Self {
        Self {
            status: StatusCode::OK,
            content_type,
            body,
        }
    }

    pub(super) fn text(status: StatusCode, body: impl Into<String>) -> Self {
        Self {
            status,
            content_type: "text/plain; charset=utf-8",
            body: body.into(),
        }
    }

    fn into_response(self) -> Response<Full<Bytes>> {
        let is_refused = self.status == StatusCode::METHOD_NOT_ALLOWED;
        let mut response = Response::new(Full::new(Bytes::from(self.body)));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(self.content_type));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if is_refused {
            headers.insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        }
        response
    }
}

/// Makes the page of a path.
pub(super) type Answer = fn(&str) -> Reply;

/// Serves pages until the process ends.
///
/// # Errors
/// The system has no descriptors for waiting.
pub(super) fn serve(listener: TcpListener, answer: Answer) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .max_blocking_threads(PAGES)
        .build()?;
    runtime.block_on(accept(listener, answer))
}

async fn accept(listener: TcpListener, answer: Answer) -> io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    while let Ok(place) = Arc::clone(&room).acquire_owned().await {
        match listener.accept().await {
            Ok((stream, _)) => drop(tokio::spawn(async move {
                // A scraper whose connection breaks will ask again.
                let _ = timeout(PATIENCE, converse(stream, answer)).await;
                drop(place);
            })),
            Err(_) => sleep(PAUSE).await,
        }
    }
    Ok(())
}

async fn converse(stream: TcpStream, answer: Answer) -> hyper::Result<()> {
    let service = service_fn(move |request: Request<Incoming>| async move {
        Ok::<_, Infallible>(reply(&request, answer).await.into_response())
    });
    http1::Builder::new()
        // A client may end its side after the request and wait for the reply (`nc -N`).
        .half_close(true)
        .keep_alive(false)
        .max_buf_size(REQUEST_BYTES)
        .serve_connection(TokioIo::new(stream), service)
        .await
}

async fn reply(request: &Request<Incoming>, answer: Answer) -> Reply {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return Reply::text(
            StatusCode::METHOD_NOT_ALLOWED,
            "there is only GET and HEAD\n",
        );
    }
    let path = request.uri().path().to_owned();
    // Making a page waits for the metering threads.
    let page = spawn_blocking(move || answer(&path)).await;
    page.unwrap_or_else(|_| Reply::text(StatusCode::INTERNAL_SERVER_ERROR, "a bug in turboflow\n"))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{Shutdown, SocketAddr, TcpStream};

    use super::*;

    fn start() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(|| serve(listener, |path| Reply::text(StatusCode::OK, path)));
        address
    }

    fn exchange(address: SocketAddr, request: &[u8]) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        // The server may have refused the request before all of it was written.
        let _ = stream.write_all(request);
        let _ = stream.shutdown(Shutdown::Write);
        let mut reply = Vec::new();
        let _ = stream.read_to_end(&mut reply);
        String::from_utf8(reply).unwrap().to_lowercase()
    }

    #[test]
    fn answers_what_scrapers_ask() {
        let address = start();
        // Without `half_close`, such clients miss a reply only now and then, so try often.
        for _ in 0..100 {
            let reply = exchange(address, b"GET / HTTP/1.1\r\n\r\n");
            assert!(reply.ends_with("\r\n\r\n/"), "{reply}");
        }
        let reply = exchange(address, b"GET /metrics?x=1 HTTP/1.1\r\nHost: a\r\n\r\n");
        assert!(reply.starts_with("http/1.1 200 ok\r\n"), "{reply}");
        assert!(reply.contains("content-length: 8\r\n"), "{reply}");
        assert!(reply.ends_with("\r\n\r\n/metrics"), "{reply}");
        let reply = exchange(address, b"HEAD / HTTP/1.0\r\n\r\n");
        assert!(reply.contains("content-length: 1\r\n"), "{reply}");
        assert!(reply.ends_with("\r\n\r\n"), "{reply}");
    }

    #[test]
    fn refuses_everything_else() {
        let address = start();
        let long = [b"GET /".to_vec(), vec![b'a'; 2 * REQUEST_BYTES]].concat();
        for (request, status) in [
            (&b"POST / HTTP/1.1\r\n\r\n"[..], "405"),
            (b"\xff\xfe / HTTP/1.1\r\n\r\n", "400"),
            (b"GET / HTTP/1.1\r\nno colon\r\n\r\n", "400"),
            (&long, "431"),
        ] {
            let reply = exchange(address, request);
            assert!(reply.starts_with(&format!("http/1.1 {status} ")), "{reply}");
        }
    }

    /// Clients may send nothing, send half a request, or not read their reply.
    #[test]
    fn idle_clients_delay_no_others() {
        let address = start();
        let idle: Vec<_> = (0..300)
            .map(|number: usize| {
                let mut stream = TcpStream::connect(address).unwrap();
                let parts: [&[u8]; 3] = [b"", b"GET / HT", b"GET / HTTP/1.1\r\n\r\n"];
                stream.write_all(parts[number % 3]).unwrap();
                stream
            })
            .collect();
        let reply = exchange(address, b"GET /healthz HTTP/1.1\r\n\r\n");
        assert!(reply.ends_with("/healthz"), "{reply}");
        // The reply arrived before the server gave up on clients whose request is incomplete.
        for waiting in idle.iter().enumerate().filter(|(number, _)| number % 3 < 2) {
            let mut waiting = waiting.1;
            waiting.set_nonblocking(true).unwrap();
            let heard = waiting.read(&mut [0]).map_err(|error| error.kind());
            assert_eq!(heard, Err(io::ErrorKind::WouldBlock));
        }
    }
}
