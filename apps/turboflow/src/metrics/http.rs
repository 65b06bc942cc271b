// SPDX-License-Identifier: Apache-2.0
//! The subset of HTTP/1.1 that a scraper needs (RFC 9112): one request per connection, bounded in
//! bytes and time, so that no client can occupy the thread or its memory for long.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// Maximum bytes of request line and headers.
const REQUEST_BYTES: usize = 8 << 10;
/// Maximum duration of a request, and of the wait for its reply to be read.
const PATIENCE: Duration = Duration::from_secs(2);
/// Pause after a failed accept, for example without free descriptors, to avoid a busy loop.
const PAUSE: Duration = Duration::from_millis(200);

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Request {
    /// Without the query after `?`.
    pub(super) path: String,
    /// Whether the reply omits its body.
    is_head: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Reply {
    pub(super) status: u16,
    content_type: &'static str,
    pub(super) body: String,
}

impl Reply {
    pub(super) const fn ok(content_type: &'static str, body: String) -> Self {
        Self {
            status: 200,
            content_type,
            body,
        }
    }

    pub(super) fn text(status: u16, body: impl Into<String>) -> Self {
        Self {
            status,
            content_type: "text/plain; charset=utf-8",
            body: body.into(),
        }
    }

    fn head(&self) -> String {
        let reason = match self.status {
            200 => "OK",
            400 => "Bad Request",
            404 => "Not Found",
            405 => "Method Not Allowed",
            431 => "Request Header Fields Too Large",
            _ => "Service Unavailable",
        };
        let allow = match self.status {
            405 => "Allow: GET, HEAD\r\n",
            _ => "",
        };
        format!(
            "HTTP/1.1 {} {reason}\r\nContent-Type: {}\r\nContent-Length: {}\r\n{allow}\
             Cache-Control: no-store\r\nConnection: close\r\n\r\n",
            self.status,
            self.content_type,
            self.body.len(),
        )
    }
}

/// Answers connections one after another, without end.
#[allow(
    clippy::disallowed_methods,
    reason = "a system without descriptors gets a pause"
)]
pub(super) fn serve(listener: &TcpListener, answer: impl Fn(&Request) -> Reply) {
    loop {
        match listener.accept() {
            // A scraper whose connection breaks will ask again.
            Ok((stream, _)) => drop(converse(stream, &answer)),
            Err(_) => std::thread::sleep(PAUSE),
        }
    }
}

fn converse(mut stream: TcpStream, answer: impl Fn(&Request) -> Reply) -> io::Result<()> {
    stream.set_write_timeout(Some(PATIENCE))?;
    let text = read_head(&mut stream)?;
    let (reply, is_head) = match parse(&text) {
        Ok(request) => (answer(&request), request.is_head),
        Err(reply) => (reply, false),
    };
    let mut bytes = reply.head();
    if !is_head {
        bytes += &reply.body;
    }
    stream.write_all(bytes.as_bytes())?;
    stream.shutdown(std::net::Shutdown::Write)
}

/// Reads until the empty line after the headers, or to the maximum length.
#[allow(
    clippy::disallowed_methods,
    reason = "a request has to come within its time, however slowly its bytes do"
)]
fn read_head(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let gives_up = Instant::now() + PATIENCE;
    let mut text = Vec::new();
    let mut piece = [0; 1 << 10];
    while text.len() < REQUEST_BYTES && !is_whole(&text) {
        let left = gives_up.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut piece)? {
            0 => break,
            count => text.extend_from_slice(&piece[..count]),
        }
    }
    Ok(text)
}

fn is_whole(text: &[u8]) -> bool {
    text.windows(4).any(|bytes| bytes == b"\r\n\r\n")
}

fn parse(text: &[u8]) -> Result<Request, Reply> {
    if !is_whole(text) {
        return Err(match text.len() {
            REQUEST_BYTES.. => Reply::text(431, "too long a request\n"),
            _ => Reply::text(400, "not a whole request\n"),
        });
    }
    let bad = || Reply::text(400, "not a request of HTTP/1.1\n");
    let line = text.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let line = std::str::from_utf8(line).map_err(|_| bad())?;
    let words: Vec<&str> = line.split(' ').collect();
    let [method, target, version] = words[..] else {
        return Err(bad());
    };
    if !version.starts_with("HTTP/1.") || !target.starts_with('/') {
        return Err(bad());
    }
    if !matches!(method, "GET" | "HEAD") {
        return Err(Reply::text(405, "there is only GET and HEAD\n"));
    }
    Ok(Request {
        path: target.split('?').next().unwrap_or_default().to_owned(),
        is_head: method == "HEAD",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exchange(request: &[u8]) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            converse(stream, |request| Reply::text(200, request.path.clone()))
        });
        let mut stream = TcpStream::connect(address).unwrap();
        // The server may have refused the request before all of it was written.
        let _ = stream.write_all(request);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut reply = Vec::new();
        let _ = stream.read_to_end(&mut reply);
        String::from_utf8(reply).unwrap()
    }

    #[test]
    fn answers_what_scrapers_ask() {
        let reply = exchange(b"GET /metrics?x=1 HTTP/1.1\r\nHost: a\r\n\r\n");
        assert!(reply.starts_with("HTTP/1.1 200 OK\r\n"), "{reply}");
        assert!(reply.contains("Content-Length: 8\r\n"), "{reply}");
        assert!(reply.ends_with("\r\n\r\n/metrics"), "{reply}");
        let reply = exchange(b"HEAD / HTTP/1.0\r\n\r\n");
        assert!(reply.contains("Content-Length: 1\r\n") && reply.ends_with("\r\n\r\n"));
    }

    #[test]
    fn refuses_everything_else() {
        for (request, status) in [
            (&b"POST / HTTP/1.1\r\n\r\n"[..], "405"),
            (b"GET / HTTP/2\r\n\r\n", "400"),
            (b"GET /\r\n\r\n", "400"),
            (b"\xff\xfe / HTTP/1.1\r\n\r\n", "400"),
            (b"GET http://a/ HTTP/1.1\r\n\r\n", "400"),
            (b"GET / HTTP/1.1\r\n", "400"),
        ] {
            let reply = exchange(request);
            assert!(
                reply.starts_with(&format!("HTTP/1.1 {status} ")),
                "{reply:?}"
            );
        }
        assert_eq!(parse(&[b'a'; REQUEST_BYTES]).unwrap_err().status, 431);
    }
}
