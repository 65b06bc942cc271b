// SPDX-License-Identifier: Apache-2.0
//! What was decided about a flow.

/// What becomes of a flow's packets. The numbers are those of `engines/xdp/bpf/verdict.h`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Action {
    /// They pass, and are looked at no more.
    #[default]
    Pass = 1,
    /// They are counted and dropped.
    Drop = 2,
    /// They go to the other port, where there is one; they pass where there is none.
    Redirect = 3,
}

/// A verdict about a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// What becomes of its packets.
    pub action: Action,
    /// The number of the rule that says so; 0 if none does.
    pub rule: u16,
}

impl Verdict {
    /// Packets pass, by no rule.
    pub const PASS: Self = Self {
        action: Action::Pass,
        rule: 0,
    };

    /// Action and rule, as tables have them.
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
