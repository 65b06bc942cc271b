// SPDX-License-Identifier: Apache-2.0
//! Checks the counters of both ports once a second, to report problems at once: frames that do not
//! leave by the other port, and frames that return by a second path beside the bridge.

use turboflow_engine_xdp::BridgePortCounters;

use crate::units::{counted, grouped};

const SECOND_NS: u64 = 1_000_000_000;
/// Broadcast frames per second that must come back for a warning: fewer may come from a station
/// that moved.
const FEW_ECHOES: u64 = 10;
/// Seconds without a problem after which it is reported again.
const QUIET_SECONDS: u32 = 60;

/// Frames received at one port and lost on the way to the other, within a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Lost {
    /// The receiving port: 0 or 1.
    pub(super) place: usize,
    pub(super) too_long: u64,
    pub(super) not_redirected: u64,
    pub(super) by_driver: u64,
}

impl Lost {
    pub(super) const fn frames(&self) -> u64 {
        self.too_long + self.not_redirected + self.by_driver
    }

    fn since(place: usize, now: &BridgePortCounters, before: &BridgePortCounters) -> Self {
        Self {
            place,
            too_long: now.too_long - before.too_long,
            not_redirected: now.redirect_errors - before.redirect_errors,
            by_driver: now.driver_dropped - before.driver_dropped,
        }
    }

    /// Describes the losses, with the names of the ports.
    pub(super) fn in_words(&self, ports: &[String; 2]) -> String {
        format!(
            "{} from {} lost on the way to {} within a second: too long for that port {}, not \
             redirected {}, dropped by its driver {}",
            counted(self.frames(), "frame"),
            ports[self.place],
            ports[1 - self.place],
            grouped(self.too_long),
            grouped(self.not_redirected),
            grouped(self.by_driver)
        )
    }

    /// The remedy for the commonest kind of loss.
    pub(super) fn mend(&self, ports: &[String; 2]) -> String {
        let to = &ports[1 - self.place];
        if self.not_redirected * 2 >= self.frames() {
            return format!(
                "is {to} up? If it is one end of a veth pair, the other end has to take redirected \
                 frames: `ethtool -K PEER gro on`"
            );
        }
        match self.too_long >= self.by_driver {
            true => format!("give {to} the MTU of {}", ports[self.place]),
            false => format!(
                "the transmit ring of {to} is full: enlarge it with `ethtool -G {to} tx N`, or \
                 reduce the traffic"
            ),
        }
    }
}

/// Problems that begin now and deserve a warning.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) lost: Vec<Lost>,
    /// Broadcast frames that came in at both ports within a second.
    pub(super) echoes: Option<u64>,
}

/// The counters and problems seen so far.
#[derive(Default)]
pub(super) struct Watch {
    asked_ns: u64,
    before: [BridgePortCounters; 2],
    /// The losses within the last second.
    lost: [Lost; 2],
    /// Seconds since the last loss at each port, and since the last returned frames.
    quiet_seconds: [Option<u32>; 3],
    echoes: u64,
}

impl Watch {
    /// Whether a second has passed since the last check.
    pub(super) fn is_due(&mut self, now_ns: u64) -> bool {
        let is_due = now_ns.abs_diff(self.asked_ns) >= SECOND_NS;
        if is_due {
            self.asked_ns = now_ns;
        }
        is_due
    }

    /// Compares the counters with those of the previous check.
    pub(super) fn look(&mut self, ports: &[BridgePortCounters; 2]) -> Option<Seen> {
        let before = std::mem::replace(&mut self.before, *ports);
        self.lost = [0, 1].map(|place| Lost::since(place, &ports[place], &before[place]));
        let came_back = |ports: &[BridgePortCounters; 2]| ports[0].came_back + ports[1].came_back;
        self.echoes = came_back(ports) - came_back(&before);
        let lost = self.lost.into_iter();
        let lost: Vec<_> = lost
            .filter(|lost| self.begins(lost.place, lost.frames() > 0))
            .collect();
        let has_echoes = self.echoes >= FEW_ECHOES;
        let echoes = self.begins(2, has_echoes).then_some(self.echoes);
        (!lost.is_empty() || echoes.is_some()).then_some(Seen { lost, echoes })
    }

    /// Whether a problem begins: it is present now, and was absent for some time.
    fn begins(&mut self, which: usize, is_there: bool) -> bool {
        let quiet = &mut self.quiet_seconds[which];
        let was_quiet = quiet.is_none_or(|seconds| seconds >= QUIET_SECONDS);
        *quiet = match is_there {
            true => Some(0),
            false => quiet.map(|seconds| seconds.saturating_add(1)),
        };
        is_there && was_quiet
    }

    /// The current problems.
    pub(super) fn troubles(&self) -> Vec<String> {
        let lost: u64 = self.lost.iter().map(Lost::frames).sum();
        let mut troubles = Vec::new();
        if lost > 0 {
            troubles.push(format!(
                "{} lost on the way to the other port within a second",
                counted(lost, "frame")
            ));
        }
        if self.echoes >= FEW_ECHOES {
            troubles.push(
                "broadcast frames come in at both ports: there is a path beside the bridge"
                    .to_owned(),
            );
        }
        troubles
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters(redirect_errors: u64, came_back: u64) -> [BridgePortCounters; 2] {
        let port = BridgePortCounters {
            redirect_errors,
            came_back,
            ..BridgePortCounters::default()
        };
        [BridgePortCounters::default(), port]
    }

    #[test]
    fn a_trouble_is_warned_of_when_it_begins_and_again_after_a_minute_without() {
        let mut watch = Watch::default();
        assert!(watch.is_due(5 * SECOND_NS) && !watch.is_due(5 * SECOND_NS + 1));
        assert_eq!(watch.look(&counters(0, 9)), None);
        assert_eq!(watch.troubles(), [""; 0]);
        let seen = watch.look(&counters(3, 19)).unwrap();
        assert_eq!((seen.lost[0].not_redirected, seen.echoes), (3, Some(10)));
        let ports = ["in", "out"].map(str::to_owned);
        let words = seen.lost[0].in_words(&ports);
        assert!(words.starts_with("3 frames from out lost on the way to in"));
        assert!(seen.lost[0].mend(&ports).contains("gro on"));
        assert_eq!(watch.troubles().len(), 2);
        assert_eq!(watch.look(&counters(4, 29)), None, "it goes on");
        for _ in 0..QUIET_SECONDS {
            assert_eq!(watch.look(&counters(4, 29)), None);
            assert_eq!(watch.troubles(), [""; 0]);
        }
        let seen = watch.look(&counters(5, 29)).unwrap();
        assert_eq!((seen.lost.len(), seen.echoes), (1, None));
    }

    #[test]
    fn what_helps_is_said_for_most_of_what_is_lost() {
        let ports = ["in", "out"].map(str::to_owned);
        let lost = |too_long, by_driver| Lost {
            too_long,
            by_driver,
            ..Lost::default()
        };
        assert!(lost(3, 1).mend(&ports).contains("give out the MTU of in"));
        assert!(lost(1, 3).mend(&ports).contains("ethtool -G out tx"));
    }
}
