// SPDX-License-Identifier: Apache-2.0
//! Filters for frames from files, which may have several link types.

use turboflow_packet::{Frame, LinkType};

use super::compiler::{Compiler, FilterError, data_link};
use super::program::{Program, Reheaded};

/// The link types of frames from files. BSD loopback has two byte orders; the second one is
/// libpcap's DLT_LOOP.
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
const BIG_ENDIAN_NULL: usize = 1;

/// AF_INET6 of this system. In BSD loopback headers, libpcap's programs accept no other value,
/// unless they are compiled for a file that libpcap has opened.
const AF_INET6: u32 = if cfg!(target_vendor = "apple") {
    30
} else if cfg!(target_os = "freebsd") {
    28
} else if cfg!(windows) {
    23
} else if cfg!(target_os = "linux") {
    10
} else {
    24
};

/// A filter expression, compiled for every link type that supports it. Frames of other link types
/// are rejected (for example `ether host ...` without MAC addresses).
#[derive(Clone, Debug)]
pub struct FileFilter {
    programs: [Option<Program>; LINK_TYPES.len()],
}

impl FileFilter {
    /// Compiles an expression. `link_types` are those known to occur. At least one of them must
    /// support the expression; if none is known, any link type is sufficient.
    ///
    /// # Errors
    /// If libpcap is not installed, or rejects the expression.
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

    /// Whether the filter accepts a frame.
    #[must_use]
    pub fn takes(&self, frame: &Frame<'_>) -> bool {
        let index = index(frame.link_type, frame.bytes);
        let Some(program) = &self.programs[index] else {
            return false;
        };
        if frame.link_type == LinkType::Null
            && let Some(reheaded) = with_local_family(frame.bytes, index == BIG_ENDIAN_NULL)
        {
            let taken_bytes = program.run(&reheaded, frame.wire_length_bytes);
            return taken_bytes.is_some_and(|bytes| bytes > 0);
        }
        program.takes(frame)
    }
}

/// An IPv6 packet captured on another system, with this system's address family. `None` for all
/// other packets.
fn with_local_family(bytes: &[u8], is_big_endian: bool) -> Option<Reheaded<'_>> {
    let header = *bytes.first_chunk()?;
    let (family, local_family) = if is_big_endian {
        (u32::from_be_bytes(header), AF_INET6.to_be_bytes())
    } else {
        (u32::from_le_bytes(header), AF_INET6.to_le_bytes())
    };
    let is_ipv6 = LinkType::NULL_IPV6_FAMILIES.contains(&family);
    (is_ipv6 && family != AF_INET6).then_some(Reheaded {
        header: local_family,
        frame: bytes,
    })
}

/// The index of the program for a frame.
fn index(link_type: LinkType, bytes: &[u8]) -> usize {
    match link_type {
        // Address families are small numbers: in network order the first bytes are 0.
        LinkType::Null if matches!(bytes, [0, 0, 0, 1..=255, ..]) => BIG_ENDIAN_NULL,
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
    use super::super::program::Captured;
    use super::*;

    #[test]
    fn every_link_type_has_its_program() {
        for (at, (link_type, number)) in LINK_TYPES.into_iter().enumerate() {
            let mut bytes = [0; 60];
            bytes[if number == DLT_LOOP { 3 } else { 0 }] = 2;
            assert_eq!(index(link_type, &bytes), at);
        }
    }

    #[test]
    fn ipv6_families_become_local_and_other_packets_stay() {
        for family in LinkType::NULL_IPV6_FAMILIES {
            for is_big_endian in [false, true] {
                let bytes_of = |family: u32| match is_big_endian {
                    true => family.to_be_bytes(),
                    false => family.to_le_bytes(),
                };
                let frame = [&bytes_of(family)[..], &[0x60, 1, 2, 3]].concat();
                let reheaded = with_local_family(&frame, is_big_endian);
                assert_eq!(reheaded.is_none(), family == AF_INET6, "{family}");
                let Some(reheaded) = reheaded else { continue };
                let expected = [&bytes_of(AF_INET6)[..], &[0x60, 1, 2, 3]].concat();
                for at in 0..10 {
                    assert_eq!(reheaded.byte(at), expected.byte(at));
                    assert_eq!(reheaded.half(at), expected.half(at));
                    assert_eq!(reheaded.word(at), expected.word(at));
                }
                assert_eq!(reheaded.word(u32::MAX), None);
            }
        }
        assert!(with_local_family(&[2, 0, 0, 0, 0x45], false).is_none());
        assert!(with_local_family(&[24, 0, 0], false).is_none());
    }
}
