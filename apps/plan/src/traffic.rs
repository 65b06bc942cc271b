// SPDX-License-Identifier: Apache-2.0
//! The traffic on one link.

use serde::Serialize;

use crate::Impossible;
use crate::impossible::{above_zero, zero_or_more};

/// The traffic of one link as the model needs it: the inputs of Equation 2.
///
/// # Source
/// TurboFlow, section 5.4: `E[p]`, `E[f]` and `â`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Traffic {
    /// Packets a second.
    pub packets_per_second: f64,
    /// New flows a second.
    pub flows_per_second: f64,
    /// Peak number of active flows.
    pub active_flows: f64,
    /// Mean bytes of a packet on the wire; `None` if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean_packet_bytes: Option<f64>,
}

/// Maximum packets per second of a link: the shortest frames at about 600 Tb/s.
const PACKETS_PER_SECOND_MAX: f64 = 1e12;
/// Minimum and maximum bytes of a packet.
const PACKET_BYTES: std::ops::RangeInclusive<f64> = 20.0..=65_575.0;

impl Traffic {
    /// Checks that the numbers are plausible.
    ///
    /// # Errors
    /// If a rate is not a number, not above 0 or too high for a link; if there are more flows than
    /// packets, or less than one active flow; or if the size of packets is impossible.
    pub fn check(&self) -> Result<(), Impossible> {
        let packets_per_second = self.packets_per_second;
        if packets_per_second > PACKETS_PER_SECOND_MAX {
            let mend =
                format!("no link carries more than {PACKETS_PER_SECOND_MAX} packets a second");
            return Err(Impossible::new(
                "packets_per_second",
                packets_per_second,
                mend,
            ));
        }
        above_zero("packets_per_second", packets_per_second)?;
        let flows_per_second = zero_or_more("flows_per_second", self.flows_per_second)?;
        if flows_per_second > packets_per_second {
            let mend = format!(
                "each flow begins with a packet, so there cannot be more new flows than \
                 packets, which are {packets_per_second} a second"
            );
            return Err(Impossible::new("flows_per_second", flows_per_second, mend));
        }
        let active_flows = above_zero("active_flows", self.active_flows)?;
        if active_flows < 1.0 {
            let mend = "if there are packets, at least 1 flow is active";
            return Err(Impossible::new("active_flows", active_flows, mend));
        }
        match self.mean_packet_bytes {
            Some(bytes) if !PACKET_BYTES.contains(&bytes) => {
                let mend = "packets have from 20 to 65575 bytes";
                Err(Impossible::new("mean_packet_bytes", bytes, mend))
            }
            _ => Ok(()),
        }
    }

    /// Checks the active flows against constant rates. A flow is active from its first packet until
    /// the idle timeout after its last one. So all flows that begin within a timeout are active at
    /// its end, and each active flow has a packet within the timeout.
    ///
    /// Measurements over less than the timeout may violate this.
    ///
    /// # Errors
    /// If fewer flows are active than begin within the timeout, or more than there are packets in
    /// it.
    pub fn check_active_flows(&self, idle_timeout_seconds: f64) -> Result<(), Impossible> {
        let least = (self.flows_per_second * idle_timeout_seconds).floor();
        let most = (self.packets_per_second * idle_timeout_seconds).ceil() + 1.0;
        let refuse = |mend| Err(Impossible::new("active_flows", self.active_flows, mend));
        if self.active_flows < least {
            return refuse(format!(
                "{} flows begin a second, and each is active for at least the idle timeout of \
                 {idle_timeout_seconds} s, so there are {least} or more; state that many, or a \
                 shorter idle timeout",
                self.flows_per_second
            ));
        }
        if self.active_flows > most {
            return refuse(format!(
                "an active flow has a packet within the idle timeout of {idle_timeout_seconds} s, and \
                 {} packets a second leave room for {most} at most; state fewer, or a longer idle timeout",
                self.packets_per_second
            ));
        }
        Ok(())
    }

    /// The traffic of `copies` independent copies on one link.
    #[must_use]
    pub fn times(self, copies: f64) -> Self {
        Self {
            packets_per_second: self.packets_per_second * copies,
            flows_per_second: self.flows_per_second * copies,
            active_flows: (self.active_flows * copies).max(1.0),
            mean_packet_bytes: self.mean_packet_bytes,
        }
    }

    /// Bits a second on the link; `None` if the size of packets is unknown.
    #[must_use]
    pub fn bits_per_second(&self) -> Option<f64> {
        self.mean_packet_bytes
            .map(|bytes| bytes * 8.0 * self.packets_per_second)
    }

    /// Packets per flow. No table can merge more packets into a record on average.
    #[must_use]
    pub fn packets_per_flow(&self) -> f64 {
        self.packets_per_second / self.flows_per_second
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINK: Traffic = Traffic {
        packets_per_second: 500e3,
        flows_per_second: 40e3,
        active_flows: 100e3,
        mean_packet_bytes: Some(700.0),
    };

    fn refused(traffic: Traffic, argument: &str) {
        let error = traffic.check().unwrap_err();
        assert_eq!(error.argument, argument, "{error}");
        assert!(error.to_string().starts_with(argument), "{error}");
    }

    #[test]
    fn accepts_a_link_and_computes_its_load() {
        assert_eq!(LINK.check(), Ok(()));
        assert_eq!(LINK.bits_per_second(), Some(2.8e9));
        assert_eq!(LINK.packets_per_flow(), 12.5);
        assert_eq!(LINK.times(0.5).bits_per_second(), Some(1.4e9));
        assert_eq!(LINK.times(1e-9).active_flows, 1.0);
    }

    #[test]
    fn active_flows_lie_between_births_and_packets_within_the_idle_timeout() {
        let active = |active_flows| Traffic {
            active_flows,
            ..LINK
        };
        for possible in [1_200_000.0, 2e6, 15_000_001.0] {
            assert_eq!(active(possible).check_active_flows(30.0), Ok(()));
        }
        for (impossible, bound) in [
            (1_199_999.0, "there are 1200000 or more"),
            (15_000_002.0, "15000001 at most"),
        ] {
            let error = active(impossible).check_active_flows(30.0).unwrap_err();
            assert_eq!(error.argument, "active_flows");
            assert!(error.mend.contains(bound), "{error}");
        }
        assert_eq!(active(100e3).check_active_flows(2.5), Ok(()));
    }

    #[test]
    fn names_the_invalid_argument() {
        for rate in [0.0, -1.0, f64::NAN, f64::INFINITY, 1.1e12] {
            let packets_per_second = rate;
            refused(
                Traffic {
                    packets_per_second,
                    ..LINK
                },
                "packets_per_second",
            );
        }
        for rate in [-1.0, f64::NAN, 500_001.0] {
            let flows_per_second = rate;
            refused(
                Traffic {
                    flows_per_second,
                    ..LINK
                },
                "flows_per_second",
            );
        }
        for active_flows in [0.0, 0.5, f64::NAN] {
            refused(
                Traffic {
                    active_flows,
                    ..LINK
                },
                "active_flows",
            );
        }
        for bytes in [0.0, 19.0, 1e6, f64::NAN] {
            let mean_packet_bytes = Some(bytes);
            refused(
                Traffic {
                    mean_packet_bytes,
                    ..LINK
                },
                "mean_packet_bytes",
            );
        }
    }
}
