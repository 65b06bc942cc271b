// SPDX-License-Identifier: Apache-2.0
//! Probes of which the beginning or the end was not heard.

use turboflow_engine::wire::{Encoder, number};
use turboflow_engine::{EngineCounters, PortState};

use super::microflows::{LIVE, NOW_NS, live, piece, probe};
use super::*;

const SECOND_NS: u64 = 1_000_000_000;

/// What happens at a socket.
enum Event {
    /// A message, and its connection; 0 for a datagram.
    Message(u64, Vec<u8>),
    /// A connection ends.
    Ends(u64),
    /// Nothing happens for this many seconds.
    Nothing(u64),
}

struct Script {
    events: VecDeque<Event>,
    now_ns: u64,
}

fn sender(session: u64) -> Sender {
    Sender {
        address: Some(SocketAddr::from(([192, 0, 2, 1], 9))),
        session,
    }
}

impl MessageSource for Script {
    fn name(&self) -> String {
        "a script".to_owned()
    }

    fn since_ns(&self) -> Option<u64> {
        Some(NOW_NS)
    }

    fn poll(
        &mut self,
        take: &mut TakeMessage<'_>,
        ended: &mut Vec<Sender>,
    ) -> Result<Polled, StreamError> {
        let mut had_any = false;
        match self.events.pop_front() {
            Some(Event::Message(session, bytes)) => {
                had_any = true;
                let message = Message {
                    from: sender(session),
                    is_datagram: session == 0,
                    received_ns: Some(self.now_ns),
                    bytes: &bytes,
                };
                take(&message).expect("it is a message of this run");
            }
            Some(Event::Ends(session)) => ended.push(sender(session)),
            Some(Event::Nothing(seconds)) => self.now_ns += seconds * SECOND_NS,
            None => {}
        }
        Ok(Polled {
            had_any,
            is_over: false,
            now_ns: Some(self.now_ns),
        })
    }
}

/// The engine after these events, still running, and after its end.
fn after(events: Vec<Event>) -> [Vec<PortState>; 2] {
    let layout = Layout::compile(&Definition::default(), false).expect("the default compiles");
    let count = events.len();
    let source = Script {
        events: events.into(),
        now_ns: NOW_NS,
    };
    let mut engine = CollectorEngine::new(Box::new(source), &layout, LIVE);
    for _ in 0..count {
        engine
            .collect(&mut MicroflowBatch::default())
            .expect("nothing fails");
    }
    let states = |engine: &mut CollectorEngine| {
        let ports = engine.ports().expect("it tells");
        let states = ports.iter().skip(1).map(|port| port.state);
        states.collect::<Vec<_>>()
    };
    let running = states(&mut engine);
    engine.finish().expect("nothing fails");
    [running, states(&mut engine)]
}

/// The messages of a probe on a connection: one with records, and its final counters.
fn both(session: u64) -> [Event; 2] {
    let sent = probe(7, &[&[piece(1, 1, 3)]]);
    let mut sent = sent.into_iter().map(|(_, bytes)| bytes);
    [(); 2].map(|()| Event::Message(session, sent.next().expect("there are two")))
}

#[test]
fn a_probe_is_heard_to_its_end_or_not() {
    use Event::{Ends, Nothing};
    use PortState::{Disconnected, Silent, Up};
    let [records, end] = both(0);
    assert_eq!(after(vec![records, end, Nothing(3_600)]), [[Up]; 2]);
    // A run that ends while a probe goes on has lost nothing.
    let [records, _] = both(0);
    assert_eq!(after(vec![records, Nothing(5)]), [[Up]; 2]);
    let [records, _] = both(0);
    assert_eq!(after(vec![records, Nothing(6)]), [[Silent]; 2]);
    // It may be heard again.
    let [records, end] = both(0);
    assert_eq!(after(vec![records, Nothing(60), end]), [[Up]; 2]);
    // One that has paused for long may do so again.
    let [records, _] = both(0);
    let more = Event::Message(0, probe(7, &[&[], &[piece(2, 1, 3)]]).swap_remove(0).1);
    let paused = vec![records, Nothing(20), more, Nothing(50)];
    assert_eq!(after(paused), [[Up]; 2]);
    let [records, _] = both(4);
    assert_eq!(after(vec![records, Ends(3), Nothing(1)]), [[Up]; 2]);
    let [records, _] = both(4);
    assert_eq!(after(vec![records, Ends(4)]), [[Disconnected]; 2]);
    let [records, end] = both(4);
    assert_eq!(after(vec![records, end, Ends(4)]), [[Up]; 2]);
    // Over another connection.
    let ([records, _], [_, end]) = (both(4), both(5));
    assert_eq!(after(vec![records, end, Ends(4), Ends(5)]), [[Up]; 2]);
}

#[test]
fn records_before_the_first_message_are_missing() {
    let pieces = [piece(1, 1, 3), piece(2, 1, 3)];
    let mut sent = probe(1, &[&pieces, &pieces, &pieces]);
    let first = sent.remove(0);
    let outcome = live(sent.clone());
    assert_eq!((outcome.sums().0, outcome.dropped), (4, 2));
    // It is only late.
    sent.insert(1, first);
    let outcome = live(sent);
    assert_eq!((outcome.sums().0, outcome.dropped), (6, 0));
    assert_eq!(outcome.counts.messages_late, 1);
}

/// Two records of a probe are not heard, or late: the third one is heard, and its counters, which
/// say when it started. Returns how many records are missing, and how many were sent earlier.
fn missing_of_probe_started_at(started_ns: u64, is_late: bool) -> (u64, u64) {
    let layout = Layout::compile(&Definition::default(), false).expect("the default compiles");
    let mut sent = probe(7, &[&[piece(1, 1, 3), piece(2, 1, 3)], &[piece(3, 1, 3)]]);
    let third = sent.swap_remove(1).1;
    let mut encoder = Encoder::new(&layout, 7, 1_400).started_at(started_ns);
    let counters = EngineCounters {
        packets_received: 3,
        packets_metered: 3,
        ..EngineCounters::default()
    };
    let mut events = vec![
        Event::Nothing(0),
        Event::Nothing(60),
        Event::Message(0, third),
    ];
    encoder.counters(&counters, 0, true, |message| {
        let mut message = message.to_vec();
        number(&mut message, 3);
        events.push(Event::Message(0, message));
    });
    if is_late {
        events.push(Event::Message(0, sent.swap_remove(0).1));
    }
    let source = Script {
        events: events.into(),
        now_ns: NOW_NS,
    };
    let mut engine = CollectorEngine::new(Box::new(source), &layout, LIVE);
    for _ in 0..5 {
        engine
            .collect(&mut MicroflowBatch::default())
            .expect("nothing fails");
    }
    let own = engine.own_counts().expect("it counts");
    let earlier = own
        .iter()
        .find(|count| count.name == "engine_collector_probe_microflows_earlier");
    let counters = engine.counters().expect("it counts");
    (
        counters.microflows_dropped,
        earlier.expect("it is there").count,
    )
}

#[test]
fn records_from_before_this_run_are_not_missing() {
    let [before_ns, after_ns] = [NOW_NS - SECOND_NS, NOW_NS + SECOND_NS];
    assert_eq!(missing_of_probe_started_at(after_ns, false), (2, 0));
    assert_eq!(missing_of_probe_started_at(before_ns, false), (0, 2));
    // Late records were neither.
    assert_eq!(missing_of_probe_started_at(after_ns, true), (0, 0));
    assert_eq!(missing_of_probe_started_at(before_ns, true), (0, 0));
    // Unknown, as of a switch.
    assert_eq!(missing_of_probe_started_at(0, false), (0, 0));
}
