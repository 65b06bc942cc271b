// SPDX-License-Identifier: Apache-2.0
//! Who may send requests: clients that address this host, from its own page, with the token if one
//! is set.
//!
//! A page of another site can send requests to a server on loopback. The checks of `Host` (against
//! DNS rebinding) and `Origin` refuse them, and no response grants cross-origin reads.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{
    AUTHORIZATION, CONNECTION, CONTENT_TYPE, COOKIE, HOST, LOCATION, ORIGIN, SET_COOKIE,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::Token;
use crate::error::Refusal;

/// What requests are checked against.
pub(crate) struct Guard {
    pub(crate) address: SocketAddr,
    /// Names by which clients may address this host, in addition to `localhost`.
    pub(crate) names: Vec<String>,
    pub(crate) token: Option<Token>,
}

/// Prefix of the name of the token cookie. The port follows, because a host's cookies are shared by
/// all its ports.
const COOKIE_NAME: &str = "turboflow_token_";

/// Headers of every response: the page loads from and sends to no other origin, and cannot be
/// framed.
const HEADERS: [(&str, &str); 8] = [
    (
        "content-security-policy",
        "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
         object-src 'none'",
    ),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    (
        "permissions-policy",
        "camera=(), geolocation=(), microphone=()",
    ),
    ("cache-control", "no-store"),
];

/// Passes a request on, or answers it.
pub(crate) async fn guard(
    State(guard): State<Arc<Guard>>,
    request: Request,
    next: Next,
) -> Response {
    let mut response = match guard.check(&request) {
        Ok(Passed::In) => next.run(request).await,
        Ok(Passed::With(response)) => response,
        Err(refusal) => {
            let mut response = refusal.into_response();
            // Refused clients do not keep their connection.
            let close = HeaderValue::from_static("close");
            response.headers_mut().insert(CONNECTION, close);
            response
        }
    };
    for (name, value) in HEADERS {
        let name = HeaderName::from_static(name);
        let value = HeaderValue::from_static(value);
        response.headers_mut().insert(name, value);
    }
    response
}

/// The outcome for a request that is not refused.
#[derive(Debug)]
enum Passed {
    In,
    With(Response),
}

impl Guard {
    fn check(&self, request: &Request) -> Result<Passed, Refusal> {
        let headers = request.headers();
        let host = self.host(request.uri(), headers)?;
        self.origin(request, host)?;
        let passed = self.token(request)?;
        if request.method() == Method::POST {
            let kind = header(headers, &CONTENT_TYPE)?.unwrap_or_default();
            let is_json = kind.split(';').next().unwrap_or_default().trim();
            if !is_json.eq_ignore_ascii_case("application/json") {
                let reason = "questions are application/json";
                return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, reason));
            }
        }
        Ok(passed)
    }

    /// Checks the `Host` header and returns it. IP addresses are safe: another site's DNS cannot
    /// point them here.
    fn host<'a>(&self, uri: &Uri, headers: &'a HeaderMap) -> Result<&'a str, Refusal> {
        let wrong = || {
            Refusal::new(
                StatusCode::MISDIRECTED_REQUEST,
                "the Host header does not name this dashboard",
            )
        };
        if uri.authority().is_some() {
            return Err(wrong());
        }
        let host = header(headers, &HOST)?.ok_or_else(wrong)?;
        let (name, port) = split(host).ok_or_else(wrong)?;
        let own_port = self.address.port();
        let is_address = |name: &str| {
            let plain = name.trim_start_matches('[').trim_end_matches(']');
            let is_bracketed = plain.len() + 2 == name.len();
            plain.parse::<IpAddr>().is_ok_and(|address| {
                let is_reached = match self.address.ip() {
                    own if own.is_unspecified() => true,
                    own => own == address || own.is_loopback() && address.is_loopback(),
                };
                is_reached && address.is_ipv6() == is_bracketed
            })
        };
        let is_name = |known: &String| known.eq_ignore_ascii_case(name);
        let is_local = name.eq_ignore_ascii_case("localhost");
        // Behind a proxy with a name, the port is that of the proxy.
        let is_named = self.names.iter().any(is_name);
        let is_own = port.unwrap_or(80) == own_port && (is_local || is_address(name));
        match is_named || is_own {
            true => Ok(host),
            false => Err(wrong()),
        }
    }

    /// Refuses requests that pages of other sites send. Links from them are allowed.
    fn origin(&self, request: &Request, host: &str) -> Result<(), Refusal> {
        let headers = request.headers();
        let refused = || Refusal::new(StatusCode::FORBIDDEN, "a page of another site sent this");
        if let Some(origin) = header(headers, &ORIGIN)? {
            let of_host = |scheme| origin.strip_prefix(scheme) == Some(host);
            if !of_host("http://") && !of_host("https://") {
                return Err(refused());
            }
        }
        let word = |name| header(headers, &HeaderName::from_static(name));
        let is_link = word("sec-fetch-mode")? == Some("navigate")
            && word("sec-fetch-dest")? == Some("document")
            && request.method() == Method::GET
            && request.uri().path() == "/";
        match word("sec-fetch-site")? {
            None | Some("same-origin" | "none") => Ok(()),
            Some(_) if is_link => Ok(()),
            Some(_) => Err(refused()),
        }
    }

    fn cookie_name(&self) -> String {
        format!("{COOKIE_NAME}{}", self.address.port())
    }

    /// Checks the token. A token in the URL is moved to a cookie by a redirect.
    fn token(&self, request: &Request) -> Result<Passed, Refusal> {
        let Some(token) = &self.token else {
            return Ok(Passed::In);
        };
        let headers = request.headers();
        let bearer = header(headers, &AUTHORIZATION)?;
        let bearer = bearer.and_then(|it| it.strip_prefix("Bearer "));
        let cookies = header(headers, &COOKIE)?.unwrap_or_default();
        let cookie_name = self.cookie_name();
        let cookie = cookies.split(';').find_map(|cookie| {
            let (name, value) = cookie.trim().split_once('=')?;
            (name == cookie_name).then_some(value)
        });
        let is_known = [bearer, cookie]
            .into_iter()
            .flatten()
            .any(|said| token.is(said));
        let uri = request.uri();
        let said = match (request.method(), uri.path()) {
            (&Method::GET, "/") => uri.query().and_then(of_address),
            _ => None,
        };
        match said {
            Some((said, rest)) if token.is(&said) => {
                Ok(Passed::With(entered(&cookie_name, &said, &rest)))
            }
            None if is_known => Ok(Passed::In),
            _ => {
                let reason = "a token is needed here: open this address with ?token=TOKEN";
                Err(Refusal::new(StatusCode::UNAUTHORIZED, reason))
            }
        }
    }
}

/// Extracts the token from a URL's query, and returns it with the rest of the query.
fn of_address(query: &str) -> Option<(String, String)> {
    let is_token = |part: &&str| part.starts_with("token=");
    let said = query.split('&').find(is_token)?;
    let rest: Vec<&str> = query.split('&').filter(|part| !is_token(part)).collect();
    let said = said.trim_start_matches("token=");
    // Characters of tokens that browsers percent-encode.
    let said = said
        .replace("%2F", "/")
        .replace("%2B", "+")
        .replace("%3D", "=");
    Some((said, rest.join("&")))
}

/// Redirects to the page and sets the cookie.
fn entered(name: &str, token: &str, rest: &str) -> Response {
    let place = match rest {
        "" => "/".to_owned(),
        rest => format!("/?{rest}"),
    };
    // `Lax`: a link to the page from another site works.
    let cookie = format!("{name}={token}; HttpOnly; SameSite=Lax; Path=/");
    let headers = [(LOCATION, place), (SET_COOKIE, cookie)];
    (StatusCode::SEE_OTHER, headers).into_response()
}

/// A header that must not be repeated.
fn header<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, Refusal> {
    let mut values = headers.get_all(name).iter();
    let first = values.next();
    if values.next().is_some() {
        return Err(Refusal::bad(format!("the header {name} is given twice")));
    }
    let text = first.map(HeaderValue::to_str).transpose();
    text.map_err(|_| Refusal::bad(format!("the header {name} is not text")))
}

/// Splits a host from its port.
fn split(host: &str) -> Option<(&str, Option<u16>)> {
    let end = match host.starts_with('[') {
        true => host.find(']')? + 1,
        false => host.find(':').unwrap_or(host.len()),
    };
    let (name, port) = host.split_at(end);
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    match port.strip_prefix(':') {
        None if port.is_empty() => Some((name, None)),
        Some(port) if is_number(port) => Some((name, Some(port.parse().ok()?))),
        _ => None,
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let kind = [(CONTENT_TYPE, "application/json")];
        (self.status, kind, self.body.to_string()).into_response()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_split_from_ports() {
        assert_eq!(split("a:80"), Some(("a", Some(80))));
        assert_eq!(split("[::1]:80"), Some(("[::1]", Some(80))));
        assert_eq!(split("[::1]"), Some(("[::1]", None)));
        for wrong in ["a:", "a:x", "[::1", "a:99999", "a:+1", "[::1]x"] {
            assert_eq!(split(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn the_token_leaves_the_address() {
        let (token, rest) = of_address("page=flows&token=a%2Fb&where=tcp").unwrap();
        assert_eq!((&*token, &*rest), ("a/b", "page=flows&where=tcp"));
    }
}
