// SPDX-License-Identifier: Apache-2.0
//! Verdicts on flows.

/// What happens to a flow's packets. The numbers are those in `engines/xdp/bpf/verdict.h`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Action {
    /// Packets pass without further inspection.
    #[default]
    Pass = 1,
    /// Packets are counted and dropped.
    Drop = 2,
    /// Packets go to the other port of a bridge. Without a bridge they pass.
    Redirect = 3,
}

/// A verdict on a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// What happens to the flow's packets.
    pub action: Action,
    /// Number of the rule that gave the verdict; 0 if there is none.
    pub rule: u16,
}

impl Verdict {
    /// Packets pass. The verdict comes from no rule.
    pub const PASS: Self = Self {
        action: Action::Pass,
        rule: 0,
    };

    /// Action and rule as tables store them: the action in the low byte, the rule above it.
    #[must_use]
    pub const fn bits(self) -> u32 {
        self.action as u32 | (self.rule as u32) << 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_leave_room_for_a_check() {
        let verdict = Verdict {
            action: Action::Drop,
            rule: 0x1234,
        };
        assert_eq!(verdict.bits(), 0x12_3402);
        assert_eq!(Verdict::default().bits(), 1);
    }
}
