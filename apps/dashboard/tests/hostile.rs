// SPDX-License-Identifier: Apache-2.0
//! Requests that must be refused, by kind, and the limits on clients.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::time::Duration;

use serde_json::{Value, json};
use turboflow_dashboard::{Limits, Options, Token};

use crate::client::{Running, options, records, said, started};

/// The content of a file that no response may contain.
const SECRET: &str = "a secret beside the records";

struct Place {
    _folder: tempfile::TempDir,
    dashboard: Running,
}

/// A dashboard of a file, with the secret file beside it.
fn place(change: impl FnOnce(Options) -> Options) -> Place {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.csv");
    records(&file, 2000);
    std::fs::write(folder.path().join("secret.csv"), SECRET).unwrap();
    Place {
        dashboard: started(change(options(&[file]))),
        _folder: folder,
    }
}

/// A kind of request: its name, the requests as bytes, and the statuses that may refuse them.
/// Status 0 means that the connection is closed without a response.
type Kind = (&'static str, Vec<Vec<u8>>, &'static [u16]);

fn head(line: &str, host: &str, more: &str) -> Vec<u8> {
    format!("{line}\r\nHost: {host}\r\nConnection: close\r\n{more}\r\n").into_bytes()
}

fn post(host: &str, more: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let more = format!("Content-Type: application/json\r\nContent-Length: {length}\r\n{more}");
    [head("POST /api/query HTTP/1.1", host, &more), body.to_vec()].concat()
}

fn paths(host: &str) -> Kind {
    let prefixes = ["/", "//", "/api/", "/api/files/", "/app.js/"];
    let names = [
        "../secret.csv",
        "..%2fsecret.csv",
        "%2e%2e/%2e%2e/etc/passwd",
        "....//....//etc/passwd",
        "..\\..\\secret.csv",
        "secret.csv",
        "a.csv",
        "etc/passwd%00.js",
        "%c0%ae%c0%ae/etc/passwd",
        "..;/..;/etc/passwd",
        "file:///etc/passwd",
        ".git/config",
        "proc/self/environ",
    ];
    let all = prefixes.iter().flat_map(|prefix| {
        let one = move |name: &&str| head(&format!("GET {prefix}{name} HTTP/1.1"), host, "");
        names.iter().map(one)
    });
    ("paths", all.collect(), &[404, 400])
}

fn methods(host: &str) -> Kind {
    let methods = ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND"];
    let all = methods.iter().flat_map(|method| {
        let paths = ["/", "/api/files", "/api/query", "/app.js"];
        paths.map(|path| {
            head(
                &format!("{method} {path} HTTP/1.1"),
                host,
                "Content-Length: 0\r\n",
            )
        })
    });
    let mut all: Vec<_> = all.collect();
    all.push(head("GET /api/query HTTP/1.1", host, ""));
    all.push(post(host, "", b"").to_vec());
    ("methods", all, &[405, 400])
}

/// Hosts that another site's DNS could point here, and invalid ones.
fn hosts(port: u16) -> Kind {
    let names = [
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.nip.io",
        "10.0.0.1",
        "[2001:db8::1]",
        "0.0.0.0",
        "",
        "user@localhost",
        "localhost:",
        "[::1",
        "::1",
        "127.1",
    ];
    let mut all: Vec<_> = names
        .iter()
        .flat_map(|name| {
            ["/", "/api/files"].map(|path| {
                let host = format!("{name}:{port}");
                head(&format!("GET {path} HTTP/1.1"), &host, "")
            })
        })
        .collect();
    let other = format!("localhost:{}", port ^ 1);
    all.push(head("GET / HTTP/1.1", &other, ""));
    all.push(b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n".to_vec());
    all.push(b"GET / HTTP/1.0\r\n\r\n".to_vec());
    let own = format!("localhost:{port}");
    all.push(head("GET / HTTP/1.1", &own, &format!("Host: {own}\r\n")));
    all.push(head(&format!("GET http://{own}/ HTTP/1.1"), &own, ""));
    all.push(head("GET http://evil.example/ HTTP/1.1", &own, ""));
    ("hosts", all, &[421, 400])
}

fn origins(host: &str) -> Kind {
    let mut headers = Vec::new();
    for origin in [
        "null",
        "http://evil.example",
        "https://evil.example",
        "http://localhost",
        "http://localhost:1",
        "file://",
        "http://127.0.0.1.evil.example",
    ] {
        headers.push(format!("Origin: {origin}\r\n"));
    }
    for site in ["cross-site", "same-site", "whatever"] {
        headers.push(format!("Sec-Fetch-Site: {site}\r\n"));
        headers.push(format!(
            "Sec-Fetch-Site: {site}\r\nSec-Fetch-Mode: navigate\r\n"
        ));
    }
    let all = headers.iter().flat_map(|more| {
        let get = head("GET /api/files HTTP/1.1", host, more);
        let stream = head("GET /api/live HTTP/1.1", host, more);
        [get, stream, post(host, more, br#"{"panels":[]}"#)]
    });
    ("origins", all.collect(), &[403])
}

fn kinds_of_content(host: &str) -> Kind {
    let kinds = [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data",
        "json",
        "",
    ];
    let all = kinds.map(|kind| {
        let body = r#"{"panels":[]}"#;
        let length = body.len();
        let more = format!("Content-Type: {kind}\r\nContent-Length: {length}\r\n");
        let head = head("POST /api/query HTTP/1.1", host, &more);
        [head, body.as_bytes().to_vec()].concat()
    });
    ("kinds of content", all.to_vec(), &[415])
}

fn bodies(host: &str) -> Kind {
    let deep = "[".repeat(20_000);
    let many = json!({ "panels": vec![json!({ "group_by": "protocol" }); 17] }).to_string();
    let long = json!({ "where": "x".repeat(20_000), "panels": [] }).to_string();
    let bodies = [
        "",
        "null",
        "[]",
        "{",
        "{}",
        "\u{0}",
        "{\"panels\":{}}",
        "{\"panels\":[1]}",
        "{\"panels\":[{\"kind\":\"files\"}]}",
        "{\"panels\":[{\"path\":\"/etc/passwd\"}]}",
        "{\"panels\":[{\"top\":-1}]}",
        "{\"panels\":[{\"top\":1e99}]}",
        "{\"panels\":[{\"points\":\"9\"}]}",
        "{\"panels\":[],\"panels\":[]}",
        "{\"panels\":[],\"from\":1}",
        "{\"panels\":[],\"from\":\"yesterday\"}",
        "{\"panels\":[],\"from\":\"9\",\"to\":\"3\"}",
        "{\"panels\":[],\"files\":[\"/etc/passwd\"]}",
        &deep,
        &many,
        &long,
    ];
    let mut all: Vec<_> = bodies
        .iter()
        .map(|body| post(host, "", body.as_bytes()))
        .collect();
    all.push(post(host, "", b"{\"panels\":[],\"where\":\"\xff\"}"));
    ("bodies", all, &[400])
}

fn sizes(host: &str) -> Kind {
    let large = vec![b' '; 70_000];
    let chunked = "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n";
    let chunks = b"ffff\r\n"
        .iter()
        .copied()
        .chain(std::iter::repeat_n(b' ', 0xffff));
    let chunks: Vec<u8> = chunks.chain(*b"\r\n").collect();
    let all = vec![
        post(host, "", &large),
        post(host, "", &large.repeat(20)),
        [
            head("POST /api/query HTTP/1.1", host, chunked),
            chunks.repeat(4),
        ]
        .concat(),
    ];
    ("sizes", all, &[413, 0])
}

/// Heads that are not HTTP, or exceed the limit.
fn heads(host: &str) -> Kind {
    let long = "x".repeat(40_000);
    let many: String = (0..200)
        .map(|number| format!("X-{number}: 1\r\n"))
        .collect();
    let texts = [
        "GARBAGE\r\n\r\n".to_owned(),
        "\r\n\r\n\r\n".to_owned(),
        format!("GET / HTTP/9.9\r\nHost: {host}\r\n\r\n"),
        format!("GET / HTTP/2.0\r\nHost: {host}\r\n\r\n"),
        format!("GET  / HTTP/1.1\r\nHost: {host}\r\n\r\n"),
        format!("GET /{long} HTTP/1.1\r\nHost: {host}\r\n\r\n"),
        format!("GET / HTTP/1.1\r\nHost: {host}\r\nX: {long}\r\n\r\n"),
        format!("GET / HTTP/1.1\r\nHost: {host}\r\n{many}\r\n"),
        format!("GET / HTTP/1.1\r\nHost: {host}\r\nBad Header: 1\r\n\r\n"),
        format!("GET / HTTP/1.1\r\nHost: {host}\r\n folded: 1\r\n\r\n"),
        format!("POST /api/query HTTP/1.1\r\nHost: {host}\r\nContent-Length: x\r\n\r\n"),
        format!("POST /api/query HTTP/1.1\r\nHost: {host}\r\nContent-Length: -5\r\n\r\n"),
        format!(
            "POST /api/query HTTP/1.1\r\nHost: {host}\r\nContent-Length: 4\r\n\
             Content-Length: 5\r\n\r\nabcd"
        ),
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(),
        "\u{16}\u{3}\u{1}\u{2}".to_owned(),
    ];
    let all = texts.map(String::into_bytes).to_vec();
    ("heads", all, &[400, 404, 414, 431, 505, 0])
}

#[test]
fn requests_of_every_kind_are_refused() {
    let Place { dashboard, _folder } = place(|options| options);
    let host = dashboard.address.to_string();
    let kinds = [
        paths(&host),
        methods(&host),
        hosts(dashboard.address.port()),
        origins(&host),
        kinds_of_content(&host),
        bodies(&host),
        sizes(&host),
        heads(&host),
    ];
    let mut counts = BTreeMap::new();
    for (kind, requests, refusals) in kinds {
        for request in &requests {
            let answer = dashboard.send(request);
            let shown = String::from_utf8_lossy(&request[..request.len().min(300)]);
            let status = answer.as_ref().map_or(0, |said| said.status);
            assert!(refusals.contains(&status), "{kind}: {status}: {shown}");
            let Some(answer) = answer else { continue };
            let body = String::from_utf8_lossy(&answer.body);
            assert!(
                !body.contains(SECRET) && !body.contains("root:"),
                "{kind}: {shown}"
            );
            let head = answer.head.to_lowercase();
            assert!(!head.contains("access-control-"), "{kind}: {shown}");
        }
        counts.insert(kind, requests.len());
        // It still serves legitimate clients.
        assert_eq!(dashboard.get("/api/files").status, 200, "{kind}");
    }
    let count: usize = counts.values().sum();
    eprintln!("{count} requests were refused: {counts:?}");
    assert!(count >= 200, "{counts:?}");
}

#[test]
fn what_is_no_question_is_refused_in_every_part() {
    let Place { dashboard, _folder } = place(|options| options);
    let deep = format!("{}tcp{}", "(".repeat(5000), ")".repeat(5000));
    let texts = [
        "'; drop table flows; --",
        "1=1",
        "tcp or 1=1",
        "bytes > (select 1)",
        "$(reboot)",
        "`reboot`",
        "| cat /etc/passwd",
        "<script>alert(1)</script>",
        "{{7*7}}",
        "../../etc/passwd",
        "\u{0}\u{1}\u{2}",
        "bytes > 99999999999999999999999999",
        "src_addr == 999.1.1.1",
        "not not",
        ") or (",
        "time:0s",
        "time:1ns",
        "src_addr/999",
        &deep,
    ];
    for text in texts {
        for part in ["where", "group_by", "by", "select"] {
            for kind in ["groups", "records", "series"] {
                let mut panel = json!({ "kind": kind, "group_by": "protocol" });
                panel[part] = text.into();
                let answer = &dashboard.panels(&json!({ "panels": [panel] }))[0];
                let is_ignored =
                    kind == "records" && part == "group_by" || kind == "series" && part == "select";
                let reason = answer["error"]["reason"].as_str();
                assert!(
                    reason.is_some() || is_ignored,
                    "{kind} {part} {text}: {answer}"
                );
            }
        }
        let said = dashboard.ask(
            "POST",
            "/api/query",
            &json!({ "where": text, "panels": [] }).to_string(),
        );
        assert_eq!(said.status, 400, "{text}");
    }
}

#[test]
fn answers_are_bounded() {
    let Place { dashboard, _folder } = place(|options| Options {
        limits: Limits {
            rows: 50,
            groups: 100,
            ..Limits::default()
        },
        ..options
    });
    let ask = |panel: Value| dashboard.panels(&json!({ "panels": [panel] }))[0].clone();
    let rows = |answer: &Value| answer["rows"].as_array().unwrap().len();
    assert_eq!(
        rows(&ask(json!({ "kind": "records", "top": 1_000_000 }))),
        50
    );
    assert_eq!(
        rows(&ask(json!({ "group_by": "src_addr", "top": 1_000_000 }))),
        7
    );
    let many = ask(json!({ "group_by": "src_port" }));
    let reason = many["error"]["reason"].as_str().unwrap();
    assert!(reason.contains("more than 100 groups"), "{reason}");
    let points = ask(json!({ "kind": "series", "points": u64::MAX, "top": 1_000_000 }));
    assert!(points["error"].is_object() || points["total"].as_array().unwrap().len() <= 2000);
}

#[test]
fn slow_answers_are_given_up_and_free_their_place() {
    let Place { dashboard, _folder } = place(|options| Options {
        limits: Limits {
            answer_time: Duration::ZERO,
            requests: 1,
            ..Limits::default()
        },
        ..options
    });
    for _ in 0..5 {
        let question = json!({ "panels": [{ "group_by": "src_port" }] }).to_string();
        let said = dashboard.ask("POST", "/api/query", &question);
        let body = String::from_utf8_lossy(&said.body).into_owned();
        assert_eq!(said.status, 503, "{body}");
        assert!(body.contains("no answer within"), "{body}");
    }
}

/// How long a client may be silent in these tests.
const SHORT: Duration = Duration::from_millis(300);

#[test]
fn slow_clients_are_closed() {
    let Place { dashboard, _folder } = place(|options| Options {
        limits: Limits {
            receive_time: SHORT,
            ..Limits::default()
        },
        ..options
    });
    let host = dashboard.address;
    let starts = [
        String::new(),
        "GET".to_owned(),
        format!("GET / HTTP/1.1\r\nHost: {host}\r\n"),
        // A complete request, followed by silence.
        format!("GET /api/files HTTP/1.1\r\nHost: {host}\r\n\r\n"),
        format!(
            "POST /api/query HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n\
             Content-Length: 100\r\n\r\n{{"
        ),
    ];
    // All at once, so that their timeouts overlap.
    let streams: Vec<_> = starts
        .iter()
        .map(|start| {
            let mut stream = dashboard.connect();
            stream.write_all(start.as_bytes()).unwrap();
            stream
        })
        .collect();
    for (mut stream, start) in streams.into_iter().zip(&starts) {
        let status = said(&mut stream).map_or(0, |said| said.status);
        let expected: &[u16] = match start {
            start if start.contains("api/files") => &[200],
            start if start.starts_with("POST") => &[408],
            _ => &[0, 408],
        };
        assert!(expected.contains(&status), "{status}: {start}");
    }
}

#[test]
fn connections_and_streams_are_bounded() {
    let Place { dashboard, _folder } = place(|options| Options {
        limits: Limits {
            connections: 4,
            streams: 2,
            ..Limits::default()
        },
        ..options
    });
    let host = dashboard.address;
    let follow = || {
        let mut stream = dashboard.connect();
        write!(stream, "GET /api/live HTTP/1.1\r\nHost: {host}\r\n\r\n").unwrap();
        let mut start = [0; 12];
        stream.read_exact(&mut start).unwrap();
        (stream, String::from_utf8_lossy(&start[9..]).into_owned())
    };
    let (first, second, third) = (follow(), follow(), follow());
    assert_eq!((&*first.1, &*second.1, &*third.1), ("200", "200", "503"));
    let fourth = follow();
    assert_eq!(fourth.1, "503");
    // With four connections open, a fifth is closed.
    let mut fifth = dashboard.connect();
    let _ = write!(fifth, "GET / HTTP/1.1\r\nHost: {host}\r\n\r\n");
    assert!(said(&mut fifth).is_none());
    drop((first, second, third, fourth));
    turboflow_testing::until("a place is free", || {
        let request = head("GET /api/files HTTP/1.1", &host.to_string(), "");
        dashboard
            .send(&request)
            .is_some_and(|said| said.status == 200)
    });
}

#[test]
fn without_the_token_nothing_is_told() {
    let token = "a-token-of-these-tests";
    let Place { dashboard, _folder } = place(|options| Options {
        token: Token::parse(token),
        ..options
    });
    let host = dashboard.address.to_string();
    let name = format!("turboflow_token_{}", dashboard.address.port());
    let tries = [
        String::new(),
        "Authorization: Bearer wrong\r\n".to_owned(),
        format!("Authorization: Basic {token}\r\n"),
        format!("Authorization: Bearer {token}x\r\n"),
        format!("Authorization: bearer{token}\r\n"),
        format!("Cookie: token={token}\r\n"),
        format!("Cookie: {name}=\r\n"),
        format!("Cookie: {name}={}\r\n", &token[..20]),
        // The cookie of another dashboard on this host.
        format!("Cookie: turboflow_token_1={token}\r\n"),
        format!("X-Token: {token}\r\n"),
    ];
    for more in &tries {
        for path in [
            "/",
            "/app.js",
            "/api/files",
            "/api/ledger",
            "/api/live",
            "/nothing",
            "/?token=wrong",
        ] {
            let answer = dashboard.send(&head(&format!("GET {path} HTTP/1.1"), &host, more));
            assert_eq!(answer.unwrap().status, 401, "{path} {more}");
        }
        let answer = dashboard.send(&post(&host, more, br#"{"panels":[]}"#));
        assert_eq!(answer.unwrap().status, 401, "{more}");
    }
    let known = |more: &str| {
        let answer = dashboard.send(&head("GET /api/files HTTP/1.1", &host, more));
        answer.unwrap().status
    };
    assert_eq!(known(&format!("Authorization: Bearer {token}\r\n")), 200);
    let path = format!("GET /?page=flows&token={token} HTTP/1.1");
    let entered = dashboard.send(&head(&path, &host, "")).unwrap();
    assert_eq!(entered.status, 303);
    let header = |name: &str| {
        let mut lines = entered.head.lines();
        let line = lines
            .find(|line| line.to_lowercase().starts_with(name))
            .unwrap();
        line.split_once(": ").unwrap().1.to_owned()
    };
    assert_eq!(header("location"), "/?page=flows");
    let cookie = header("set-cookie");
    assert!(
        cookie.contains("HttpOnly") && cookie.contains("SameSite=Lax"),
        "{cookie}"
    );
    let cookie = cookie.split(';').next().unwrap();
    assert_eq!(cookie, format!("{name}={token}"));
    assert_eq!(known(&format!("Cookie: other=1; {cookie}\r\n")), 200);
}

#[test]
fn a_page_may_load_and_send_nothing_elsewhere() {
    let Place { dashboard, _folder } = place(|options| options);
    for path in [
        "/",
        "/app.js",
        "/app.css",
        "/icon.svg",
        "/api/files",
        "/nothing",
    ] {
        let head = dashboard.get(path).head.to_lowercase();
        let policy = "content-security-policy: default-src 'self'";
        assert!(
            head.contains(policy) && !head.contains("unsafe"),
            "{path}: {head}"
        );
        assert!(head.contains("x-content-type-options: nosniff"), "{path}");
    }
    // Links from other sites to the page work, and configured names are accepted.
    let host = dashboard.address.to_string();
    let link =
        "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document\r\n";
    let followed = dashboard
        .send(&head("GET /?page=flows HTTP/1.1", &host, link))
        .unwrap();
    assert_eq!(followed.status, 200);
    let Place { dashboard, _folder } = place(|options| Options {
        names: vec!["flows.example.org".to_owned()],
        ..options
    });
    let named = head(
        "GET / HTTP/1.1",
        "flows.example.org",
        "Origin: https://flows.example.org\r\n",
    );
    assert_eq!(dashboard.send(&named).unwrap().status, 200);
}
