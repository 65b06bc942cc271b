// SPDX-License-Identifier: Apache-2.0
//! Questions side by side, within bounds of time and number.

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use axum::http::StatusCode;
use tokio::sync::Semaphore;

use crate::Limits;
use crate::error::Refusal;
use crate::panel::Asked;
use crate::question::{Panel, Request};
use crate::store::{Given, Snapshot};

/// Answers questions.
pub(crate) struct Pool {
    limits: Limits,
    given: Arc<Given>,
    /// One for each thread.
    running: Arc<Semaphore>,
    /// One for each request.
    waiting: Semaphore,
    cache: Arc<Mutex<Cache>>,
}

/// Sets its flag when nothing waits for the answer any more.
struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Pool {
    pub(crate) fn new(given: Arc<Given>, limits: Limits) -> Self {
        Self {
            running: Arc::new(Semaphore::new(limits.threads)),
            waiting: Semaphore::new(limits.requests),
            cache: Arc::default(),
            given,
            limits,
        }
    }

    /// The answers to all questions of a request, as a JSON text.
    pub(crate) async fn answer(
        &self,
        request: Request,
        snapshot: Arc<Snapshot>,
    ) -> Result<String, Refusal> {
        let busy = || {
            Refusal::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "too many questions at once",
            )
        };
        let _place = self.waiting.try_acquire().map_err(|_| busy())?;
        let stop = Arc::new(AtomicBool::new(false));
        let _stop = StopOnDrop(Arc::clone(&stop));
        let id = snapshot.id;
        let given = Arc::clone(&self.given);
        let asked = Asked::new(&request, snapshot, given, self.limits, Some(stop))?;
        let asked = Arc::new(asked);
        let scope = format!("{id} {:?} {:?}", asked.range, request.filter);
        // The longest first, so that no thread is left alone with one at the end.
        let mut panels: Vec<(usize, &Panel)> = request.panels.iter().enumerate().collect();
        panels.sort_by_key(|(_, panel)| Reverse(panel.weight()));
        let started = panels.into_iter();
        let started = started.map(|(place, panel)| (place, self.start(panel, &asked, &scope)));
        let mut started: Vec<_> = started.collect();
        started.sort_by_key(|(place, _)| *place);
        let answers = async {
            let (mut texts, mut bytes) = (Vec::new(), 0);
            for (_, one) in started {
                let text = one.await.map_err(|_| failed())?;
                bytes += text.len();
                if bytes > self.limits.answer_bytes {
                    return Err(self.long());
                }
                texts.push(text);
            }
            Ok::<_, Refusal>(texts)
        };
        let answers = tokio::time::timeout(self.limits.answer_time, answers);
        let answers = answers.await.map_err(|_| self.slow())??;
        Ok(format!(
            "{{\"snapshot\":{id},\"panels\":[{}]}}",
            answers.join(",")
        ))
    }

    /// Has a thread answer a question, once one is free.
    fn start(
        &self,
        panel: &Panel,
        asked: &Arc<Asked>,
        scope: &str,
    ) -> tokio::task::JoinHandle<String> {
        let key = serde_json::to_string(panel).unwrap_or_default();
        let key = format!("{scope} {key}");
        let (panel, asked) = (panel.clone(), Arc::clone(asked));
        let (running, cache) = (Arc::clone(&self.running), Arc::clone(&self.cache));
        tokio::spawn(async move {
            if let Some(known) = locked(&cache).find(&key) {
                return known;
            }
            let Ok(permit) = running.acquire_owned().await else {
                return failed().body.to_string();
            };
            let answer = move || {
                let answer = asked.panel(&panel);
                drop(permit);
                answer
            };
            match tokio::task::spawn_blocking(answer).await {
                Ok(Ok(answer)) => {
                    let text = answer.to_string();
                    locked(&cache).keep(key, &text);
                    text
                }
                Ok(Err(refusal)) => refusal.body.to_string(),
                Err(_) => failed().body.to_string(),
            }
        })
    }

    #[cold]
    fn long(&self) -> Refusal {
        let most = self.limits.answer_bytes;
        let reason =
            format!("the answers have more than {most} bytes: ask for fewer rows or columns");
        Refusal::bad(reason)
    }

    #[cold]
    fn slow(&self) -> Refusal {
        let seconds = self.limits.answer_time.as_secs_f32();
        let reason = format!("no answer within {seconds} s: ask for less time, or filter");
        Refusal::new(StatusCode::SERVICE_UNAVAILABLE, reason)
    }
}

#[cold]
fn failed() -> Refusal {
    let reason = "the question could not be answered: please report it";
    Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, reason)
}

fn locked(cache: &Mutex<Cache>) -> std::sync::MutexGuard<'_, Cache> {
    cache.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Answers that were given: every page asks some questions again, and so does every reader.
#[derive(Default)]
struct Cache {
    answers: VecDeque<(String, String)>,
    bytes: usize,
}

/// Most bytes of answers that are kept.
const CACHE_BYTES: usize = 16 << 20;

impl Cache {
    fn find(&self, key: &str) -> Option<String> {
        let mut known = self.answers.iter();
        known
            .find(|(its, _)| its == key)
            .map(|(_, text)| text.clone())
    }

    fn keep(&mut self, key: String, text: &str) {
        let bytes = key.len() + text.len();
        if bytes > CACHE_BYTES / 4 || self.find(&key).is_some() {
            return;
        }
        self.bytes += bytes;
        self.answers.push_back((key, text.to_owned()));
        while self.bytes > CACHE_BYTES {
            let Some((key, text)) = self.answers.pop_front() else {
                return;
            };
            self.bytes -= key.len() + text.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_answers_leave() {
        let mut cache = Cache::default();
        let text = "x".repeat(CACHE_BYTES / 8);
        for key in 0..20 {
            cache.keep(key.to_string(), &text);
        }
        assert!(cache.bytes <= CACHE_BYTES);
        assert!(cache.find("0").is_none() && cache.find("19").is_some());
        cache.keep("large".to_owned(), &"x".repeat(CACHE_BYTES));
        assert!(cache.find("large").is_none());
    }
}
