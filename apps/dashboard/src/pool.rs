// SPDX-License-Identifier: Apache-2.0
//! Answers questions in parallel, with limits on their time and number.

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use axum::http::StatusCode;
use serde_json::json;
use tokio::sync::Semaphore;
use turboflow_query::time_text;

use crate::Limits;
use crate::error::Refusal;
use crate::panel::Asked;
use crate::question::{Chosen, Panel, Request};
use crate::store::{Given, Snapshot};

/// Answers questions on a bounded number of threads.
pub(crate) struct Pool {
    limits: Limits,
    given: Arc<Given>,
    /// One permit for each thread.
    running: Arc<Semaphore>,
    /// One permit for each request.
    waiting: Semaphore,
    cache: Arc<Mutex<Cache>>,
    /// The snapshot of the last request that timed out. From then on, questions about it are
    /// answered one by one, so that a repeated request finds the finished answers in the cache.
    slow: AtomicU64,
}

/// Sets its flag when no one waits for the answer any more.
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
            slow: AtomicU64::new(0),
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
        let chosen = match request.within {
            Some(_) => chosen_json(request.chosen(&asked.snapshot)?),
            None => String::new(),
        };
        let scope = format!("{id} {:?} {:?}", asked.range, request.filter);
        let panels = request.panels.into_iter().map(|panel| {
            let text = serde_json::to_string(&panel).unwrap_or_default();
            (format!("{scope} {text}"), panel)
        });
        let panels: Vec<(String, Panel)> = panels.collect();
        let mut texts: Vec<Option<String>> = {
            let cache = locked(&self.cache);
            panels.iter().map(|(key, _)| cache.find(key)).collect()
        };
        let unknown = panels.into_iter().enumerate();
        let unknown = unknown.filter(|(place, _)| texts[*place].is_none());
        let shares = shared_out(unknown.collect(), self.limits.threads);
        let is_joint = self.slow.load(Ordering::Relaxed) != id;
        let started = shares.into_iter();
        let started = started.map(|share| self.start(share, &asked, is_joint));
        let started: Vec<_> = started.collect();
        let answers = async {
            for share in started {
                for (place, text) in share.await.map_err(|_| failed())? {
                    texts[place] = Some(text);
                }
                let bytes: usize = texts.iter().flatten().map(String::len).sum();
                if bytes > self.limits.answer_bytes {
                    return Err(self.long());
                }
            }
            let texts = texts.into_iter().map(|text| text.ok_or_else(failed));
            texts.collect::<Result<Vec<String>, Refusal>>()
        };
        let answers = tokio::time::timeout(self.limits.answer_time, answers);
        let answers = answers.await.map_err(|_| self.slow(id))??;
        Ok(format!(
            "{{\"snapshot\":{id}{chosen},\"panels\":[{}]}}",
            answers.join(",")
        ))
    }

    /// Answers questions on a thread, once one is free. Returns their indexes and answers.
    fn start(
        &self,
        share: Vec<Placed>,
        asked: &Arc<Asked>,
        is_joint: bool,
    ) -> tokio::task::JoinHandle<Vec<(usize, String)>> {
        let asked = Arc::clone(asked);
        let (running, cache) = (Arc::clone(&self.running), Arc::clone(&self.cache));
        tokio::spawn(async move {
            let places: Vec<usize> = share.iter().map(|(place, _)| *place).collect();
            let failing = || {
                let places = places.iter();
                places.map(|place| (*place, failed().body.to_string()))
            };
            let Ok(permit) = running.acquire_owned().await else {
                return failing().collect();
            };
            let answer = move || {
                let (keys, panels): (Vec<String>, Vec<Panel>) =
                    share.into_iter().map(|(_, keyed)| keyed).unzip();
                let mut texts = Vec::new();
                asked.panels(&panels, is_joint, |place, answer| {
                    texts.push(match answer {
                        Ok(answer) => {
                            let text = answer.to_string();
                            locked(&cache).keep(keys[place].clone(), &text);
                            text
                        }
                        Err(refusal) => refusal.body.to_string(),
                    });
                });
                drop(permit);
                texts
            };
            match tokio::task::spawn_blocking(answer).await {
                Ok(texts) => places.iter().copied().zip(texts).collect(),
                Err(_) => failing().collect(),
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
    fn slow(&self, snapshot: u64) -> Refusal {
        self.slow.store(snapshot, Ordering::Relaxed);
        let seconds = self.limits.answer_time.as_secs_f32();
        let reason = format!("no answer within {seconds} s: ask for less time, or filter");
        Refusal::new(StatusCode::SERVICE_UNAVAILABLE, reason)
    }
}

/// A question with its index in the request and the key of its answer in the cache.
type Placed = (usize, (String, Panel));

/// Distributes questions over at most `threads` shares of similar weight. The heaviest are assigned
/// first, so that no thread ends up with a heavy one at the end.
fn shared_out(mut panels: Vec<Placed>, threads: usize) -> Vec<Vec<Placed>> {
    panels.sort_by_key(|(_, (_, panel))| Reverse(panel.weight()));
    let mut shares: Vec<(usize, Vec<Placed>)> = Vec::new();
    shares.resize_with(threads.min(panels.len()), Default::default);
    for panel in panels {
        let weight = panel.1.1.weight();
        let Some((all, share)) = shares.iter_mut().min_by_key(|(all, _)| *all) else {
            continue;
        };
        *all = all.saturating_add(weight);
        share.push(panel);
    }
    shares.into_iter().map(|(_, share)| share).collect()
}

/// The request's range of time, as members of the JSON answer.
fn chosen_json((from, to): Chosen) -> String {
    let [from, to] = [from, to].map(|time_ns| json!(time_ns.map(time_text)));
    format!(",\"from\":{from},\"to\":{to}")
}

#[cold]
fn failed() -> Refusal {
    let reason = "the question could not be answered: please report it";
    Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, reason)
}

fn locked(cache: &Mutex<Cache>) -> std::sync::MutexGuard<'_, Cache> {
    cache.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Recent answers: pages repeat some questions, and several readers ask the same ones.
#[derive(Default)]
struct Cache {
    answers: VecDeque<(String, String)>,
    bytes: usize,
}

/// Maximum size of the cached answers, in bytes.
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
