// SPDX-License-Identifier: Apache-2.0
//! How packets with telemetry are marked. The specification of INT leaves this to the operator.

use std::fmt;
use std::str::FromStr;

/// Where in-band telemetry is looked for. IOAM needs no mark, because its option has a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TelemetryConfig {
    /// The DSCP that marks packets with INT after the TCP or UDP header.
    pub int_dscp: DscpMark,
    /// The UDP destination port that marks packets with INT after the UDP header. `None` means that
    /// no port does.
    pub int_port: Option<u16>,
    /// The UDP destination port of INT telemetry reports. With `None`, reports are ordinary
    /// packets.
    pub int_report_port: Option<u16>,
}

impl Default for TelemetryConfig {
    fn default() -> Self {
        Self {
            int_dscp: DscpMark::DEFAULT,
            int_port: None,
            int_report_port: None,
        }
    }
}

/// The DSCP of marked packets: all of its six bits, some of them, or a value that no packet has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DscpMark {
    value: u8,
    mask: u8,
}

/// The largest DSCP.
const DSCP_MAX: u8 = 0x3f;

impl DscpMark {
    /// 23, which is the value in the examples of the INT specification, and which no service class
    /// uses.
    pub const DEFAULT: Self = Self {
        value: 0x17,
        mask: DSCP_MAX,
    };
    /// No packet has this mark.
    pub const NONE: Self = Self {
        value: u8::MAX,
        mask: 0,
    };

    /// Whether a type of service or traffic class has this mark.
    #[inline(always)]
    #[must_use]
    pub const fn matches(self, tos: u8) -> bool {
        tos >> 2 & self.mask == self.value
    }
}

impl Default for DscpMark {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl fmt::Display for DscpMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.mask {
            0 => f.write_str("none"),
            DSCP_MAX => write!(f, "{}", self.value),
            mask => write!(f, "{}/{mask}", self.value),
        }
    }
}

/// A text that is not a DSCP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownDscp {
    text: String,
}

impl fmt::Display for UnknownDscp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`{}` is not a DSCP: expected 0 to 63, bits and the mask of those that count such as 32/32, or none",
            self.text
        )
    }
}

impl std::error::Error for UnknownDscp {}

impl FromStr for DscpMark {
    type Err = UnknownDscp;

    /// Parses a value, a value and a mask, or `none`: `23`, `32/32`.
    fn from_str(text: &str) -> Result<Self, UnknownDscp> {
        if text == "none" {
            return Ok(Self::NONE);
        }
        let number = |digits: &str| {
            digits
                .parse::<u8>()
                .ok()
                .filter(|number| *number <= DSCP_MAX)
        };
        let (value, mask) = text.split_once('/').unwrap_or((text, "63"));
        let known = match (number(value), number(mask)) {
            (Some(value), Some(mask)) if mask != 0 && value & !mask == 0 => {
                Some(Self { value, mask })
            }
            _ => None,
        };
        known.ok_or_else(|| UnknownDscp {
            text: text.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dscp_is_a_value_or_some_bits() {
        for (text, tos, matches) in [
            ("23", 0x17 << 2 | 3, true),
            ("23", 0x16 << 2, false),
            ("32/32", 0x3f << 2, true),
            ("32/32", 0x1f << 2, false),
            ("0/1", 0x3e << 2, true),
            ("none", 0xff, false),
            ("none", 0, false),
        ] {
            let mark: DscpMark = text.parse().unwrap();
            assert_eq!(mark.matches(tos), matches, "{text} {tos}");
            assert_eq!(mark.to_string(), text);
        }
        assert_eq!("23/63".parse(), Ok(DscpMark::DEFAULT));
        for text in ["", "64", "x", "1/0", "3/1", "-1", "1/64", "1/1/1"] {
            assert!(text.parse::<DscpMark>().is_err(), "{text}");
        }
    }
}
