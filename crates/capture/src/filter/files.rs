// SPDX-License-Identifier: Apache-2.0
//! A filter over the frames of files, whose link types may be several.

use turboflow_packet::{Frame, LinkType};

use super::compiler::{Compiler, FilterError, data_link};
use super::program::Program;

/// The link types that frames of files can have. BSD loopback comes in two byte orders, of which
/// the second is libpcap's DLT_LOOP.
const LINK_TYPES: [(LinkType, u32); 9] = [
    (LinkType::Null, data_link(LinkType::Null)),
    (LinkType::Null, DLT_LOOP),
    (LinkType::Ethernet, data_link(LinkType::Ethernet)),
    (LinkType::Ppp, data_link(LinkType::Ppp)),
    (LinkType::Raw, data_link(LinkType::Raw)),
    (LinkType::LinuxCooked, data_link(LinkType::LinuxCooked)),
    (LinkType::RawIpv4, data_link(LinkType::RawIpv4)),
    (LinkType::RawIpv6, data_link(LinkType::RawIpv6)),
    (LinkType::LinuxCooked2, data_link(LinkType::LinuxCooked2)),
];
const DLT_LOOP: u32 = 108;

/// A filter expression, compiled for every link type on which it means something. Frames of the
/// others (`ether host ...` on a link without such addresses) are not taken.
#[derive(Clone, Debug)]
pub struct FileFilter {
    programs: [Option<Program>; LINK_TYPES.len()],
}

impl FileFilter {
    /// Compiles an expression. `link_types` are those that are known to come: on one of them at
    /// least, or on any if none is known, it has to mean something.
    ///
    /// # Errors
    /// Where libpcap is not there, or does not take the expression.
    pub fn compile(
        compiler: &Compiler,
        expression: &str,
        link_types: &[LinkType],
    ) -> Result<Self, FilterError> {
        let mut programs = [const { None }; LINK_TYPES.len()];
        let (mut serves, mut refusal) = (false, None);
        for (program, (link_type, number)) in programs.iter_mut().zip(LINK_TYPES) {
            let matters = link_types.is_empty() || link_types.contains(&link_type);
            match compiler.for_files(expression, number) {
                Ok(compiled) => {
                    *program = Some(compiled);
                    serves |= matters;
                }
                Err(error @ FilterError::Expression { .. }) if matters => refusal = Some(error),
                Err(FilterError::Expression { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        match refusal {
            Some(error) if !serves => Err(error),
            _ => Ok(Self { programs }),
        }
    }

    /// Whether the filter takes a frame.
    #[must_use]
    pub fn takes(&self, frame: &Frame<'_>) -> bool {
        self.programs[index(frame.link_type, frame.bytes)]
            .as_ref()
            .is_some_and(|program| program.takes(frame))
    }
}

/// Which program is for a frame.
fn index(link_type: LinkType, bytes: &[u8]) -> usize {
    match link_type {
        // Address families are small numbers: in network order the first bytes are 0.
        LinkType::Null if matches!(bytes, [0, 0, 0, 1..=255, ..]) => 1,
        LinkType::Null => 0,
        LinkType::Ethernet => 2,
        LinkType::Ppp => 3,
        LinkType::Raw => 4,
        LinkType::LinuxCooked => 5,
        LinkType::RawIpv4 => 6,
        LinkType::RawIpv6 => 7,
        LinkType::LinuxCooked2 => 8,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_link_type_has_its_program() {
        for (at, (link_type, number)) in LINK_TYPES.into_iter().enumerate() {
            let mut bytes = [0; 60];
            bytes[if number == DLT_LOOP { 3 } else { 0 }] = 2;
            assert_eq!(index(link_type, &bytes), at);
        }
    }
}
