// SPDX-License-Identifier: Apache-2.0
//! The routes of the server.

use std::convert::Infallible;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::middleware::from_fn_with_state;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};
use futures_util::stream::{Stream, unfold};
use serde_json::{Value, json};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use crate::assets::ASSETS;
use crate::error::Refusal;
use crate::guard::{Guard, guard};
use crate::live::Live;
use crate::pool::Pool;
use crate::question::Request;
use crate::store::{Given, Snapshot};
use crate::{Limits, answer};

/// The state that all requests share.
pub(crate) struct Shared {
    pub(crate) given: Arc<Given>,
    pub(crate) limits: Limits,
    pub(crate) pool: Pool,
    pub(crate) snapshot: watch::Receiver<Arc<Snapshot>>,
    pub(crate) live: Option<Arc<Live>>,
    pub(crate) streams: Arc<Semaphore>,
}

impl Shared {
    fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.snapshot.borrow())
    }
}

/// All routes, protected by the guard.
pub(crate) fn router(shared: Arc<Shared>, its_guard: Arc<Guard>) -> Router {
    let mut router = Router::new();
    for asset in &ASSETS {
        let serve = move || async move { ([(CONTENT_TYPE, asset.kind)], asset.content) };
        router = router.route(asset.path, MethodRouter::new().get(serve));
    }
    router
        .route("/api/files", get(files))
        .route("/api/fields", get(fields))
        .route("/api/ledger", get(ledgers))
        .route("/api/live", get(live))
        .route("/api/query", post(query))
        .fallback(nothing)
        .method_not_allowed_fallback(refused)
        .layer(from_fn_with_state(its_guard, guard))
        .with_state(shared)
}

type Answer = Result<Response, Refusal>;

fn json_text(text: String) -> Response {
    let headers = [
        (CONTENT_TYPE, "application/json"),
        (CACHE_CONTROL, "no-store"),
    ];
    (headers, text).into_response()
}

async fn nothing() -> Refusal {
    Refusal::new(StatusCode::NOT_FOUND, "there is nothing of that name")
}

async fn refused() -> Refusal {
    let reason = "this address needs another request method";
    Refusal::new(StatusCode::METHOD_NOT_ALLOWED, reason)
}

async fn files(State(shared): State<Arc<Shared>>) -> Response {
    json_text(described(&shared).to_string())
}

/// Describes the files, and whether a running program is followed.
fn described(shared: &Shared) -> Value {
    let mut json = shared.snapshot().to_json(&shared.given.files);
    json["live"] = json!(shared.live.as_ref().map(|live| live.address()));
    json
}

async fn fields(State(shared): State<Arc<Shared>>) -> Response {
    let snapshot = shared.snapshot();
    json_text(fields_of(&snapshot).to_string())
}

/// The fields that a filter can name.
pub(crate) fn fields_of(snapshot: &Snapshot) -> Value {
    let fields = snapshot.fields.iter().map(|field| {
        json!({
            "name": field.name,
            "show": answer::show_name(field.show),
            "is_column": field.is_column,
            "is_key": field.is_key,
            "is_amount": field.is_amount,
        })
    });
    fields.collect()
}

async fn ledgers(State(shared): State<Arc<Shared>>) -> Response {
    let snapshot = shared.snapshot();
    let history = shared.live.as_ref().map(|live| live.history());
    let history = history.map_or("null".to_owned(), |all| format!("[{}]", all.join(",")));
    let found = &snapshot.ledgers.json;
    json_text(format!("{{\"ledgers\":{found},\"live\":{history}}}"))
}

async fn query(State(shared): State<Arc<Shared>>, body: Body) -> Answer {
    let limits = &shared.limits;
    let body = tokio::time::timeout(limits.receive_time, to_bytes(body, limits.body_bytes));
    let slow = |_| Refusal::new(StatusCode::REQUEST_TIMEOUT, "the question came too slowly");
    let large = |_| {
        let most = limits.body_bytes;
        let reason = format!("a question of more than {most} bytes");
        Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, reason)
    };
    let body = body.await.map_err(slow)?.map_err(large)?;
    let request = Request::read(&body, limits)?;
    let answer = shared.pool.answer(request, shared.snapshot()).await?;
    Ok(json_text(answer))
}

/// The sources of an event stream.
struct Events {
    shared: Arc<Shared>,
    snapshot: watch::Receiver<Arc<Snapshot>>,
    live: Option<watch::Receiver<Arc<str>>>,
    /// Whether the first event, which describes the files, is still to be sent.
    is_new: bool,
    _place: OwnedSemaphorePermit,
}

async fn live(State(shared): State<Arc<Shared>>) -> Answer {
    let busy = |_| Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "too many pages are open");
    let place = Arc::clone(&shared.streams)
        .try_acquire_owned()
        .map_err(busy)?;
    let events = Events {
        snapshot: shared.snapshot.clone(),
        live: shared.live.as_ref().map(|live| live.follow()),
        is_new: true,
        _place: place,
        shared,
    };
    let sse = Sse::new(of_events(events)).keep_alive(KeepAlive::default());
    Ok(sse.into_response())
}

fn of_events(events: Events) -> impl Stream<Item = Result<Event, Infallible>> {
    unfold(events, |mut events| async move {
        let event = events.next().await?;
        Some((Ok(event), events))
    })
}

impl Events {
    async fn next(&mut self) -> Option<Event> {
        if std::mem::take(&mut self.is_new) {
            return Some(self.files());
        }
        let sample = async {
            match &mut self.live {
                Some(live) => live.changed().await.is_ok(),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            changed = self.snapshot.changed() => {
                changed.ok()?;
                Some(self.files())
            }
            true = sample => {
                let text = self.live.as_mut()?.borrow_and_update().to_string();
                Some(Event::default().event("live").data(text))
            }
            else => None,
        }
    }

    fn files(&mut self) -> Event {
        self.snapshot.mark_unchanged();
        let text = described(&self.shared).to_string();
        Event::default().event("files").data(text)
    }
}
