// SPDX-License-Identifier: Apache-2.0
//! Options templates, and the data that an exporter sends about itself.
//!
//! - Sampling 1:1. Without it, collectors drop the flows or multiply them by 0.
//! - Statistics of the metering process and the exporting process (RFC 7011, sections 4.1, 4.3):
//!   what was sent, and what was not.
//! - Type information of the enterprise elements in use (RFC 5610), so that a collector can name
//!   and decode unknown elements.
//! - Names and categories of the applications in records (RFC 6759).
//! - In files: the record definition, which tells a reader the name and type of every column. It
//!   uses elements of IANA, because decoders know their types: netgauze-flow-pkt reads an unknown
//!   element of variable length as 65,535 octets.

use turboflow_record::{Element, REVERSE_ENTERPRISE};

use super::field::{put_number, put_specifier};
use super::netflow9::SCOPE_SYSTEM;
use super::{Protocol, SessionCounters, ipfix, netflow9};

const SAMPLING: u16 = 256;
const METERING: u16 = 257;
const RELIABILITY: u16 = 258;
const TYPE_INFORMATION: u16 = 259;
const DEFINITION: u16 = 260;
/// The id of the first template of flow records. It must never change, because the ids of the
/// templates of some definitions depend on it.
pub(super) const FIRST_FLOW_TEMPLATE: u16 = 261;
/// The set of application names. It has the last id, which is never given to a template of flow
/// records if the definition contains applications.
pub(super) const APPLICATIONS: u16 = u16::MAX;

/// The elements of the options record that holds the record definition: observationDomainName,
/// which marks it as such; privateEnterpriseNumber; informationElementRangeBegin and
/// informationElementRangeEnd, which say what part of the text follows; and
/// informationElementDescription with that part of the text, in TOML.
pub(crate) const DEFINITION_ELEMENTS: [u16; 5] = [300, 346, 342, 343, 340];
/// Names of the observation domain of a file with uniflows, and of a file with biflows.
pub(crate) const DOMAIN_NAMES: [&str; 2] = ["turboflow flow records", "turboflow biflow records"];
/// Maximum length of a definition in octets.
const DEFINITION_BYTES_MAX: usize = 60_000;

/// Maximum length of a text in octets: names are short, and descriptions may be cut.
const MAX_TEXT_BYTES: usize = 200;
const VARIABLE: u16 = u16::MAX;

/// A record to be put in a set.
pub(super) struct SetRecord {
    pub(super) set: u16,
    pub(super) bytes: Vec<u8>,
    pub(super) is_data: bool,
}

/// The fields of an options template; the first `scopes` of them are its scope.
struct OptionsTemplate {
    id: u16,
    scopes: usize,
    fields: &'static [(u16, u16)],
}

/// selectorId; selectorAlgorithm 1 (systematic count-based), samplingPacketInterval,
/// samplingPacketSpace: 1 of every 1 packet, with 0 between (RFC 5477, section 8.2).
const IPFIX_SAMPLING: OptionsTemplate = OptionsTemplate {
    id: SAMPLING,
    scopes: 1,
    fields: &[(302, 8), (304, 2), (305, 4), (306, 4)],
};

/// observationDomainId, meteringProcessId; exportedMessageTotalCount,
/// exportedFlowRecordTotalCount, exportedOctetTotalCount (RFC 7011, section 4.1).
const IPFIX_METERING: OptionsTemplate = OptionsTemplate {
    id: METERING,
    scopes: 2,
    fields: &[(149, 4), (143, 4), (41, 8), (42, 8), (40, 8)],
};

/// exportingProcessId; notSentFlowTotalCount, notSentPacketTotalCount, notSentOctetTotalCount
/// (RFC 7011, section 4.3).
const IPFIX_RELIABILITY: OptionsTemplate = OptionsTemplate {
    id: RELIABILITY,
    scopes: 1,
    fields: &[(144, 4), (166, 8), (167, 8), (168, 8)],
};

/// informationElementId, privateEnterpriseNumber; type, semantics, units, name, description
/// (RFC 5610, section 3.9).
const IPFIX_TYPE_INFORMATION: OptionsTemplate = OptionsTemplate {
    id: TYPE_INFORMATION,
    scopes: 2,
    fields: &[
        (303, 2),
        (346, 4),
        (339, 1),
        (344, 1),
        (345, 2),
        (341, VARIABLE),
        (340, VARIABLE),
    ],
};

/// applicationId; applicationName, applicationCategoryName (RFC 6759, section 4.2).
const IPFIX_APPLICATIONS: OptionsTemplate = OptionsTemplate {
    id: APPLICATIONS,
    scopes: 1,
    fields: &[(95, 9), (96, VARIABLE), (372, VARIABLE)],
};

/// SAMPLING_INTERVAL 1, SAMPLING_ALGORITHM 1 (RFC 3954, section 8).
const NETFLOW9_SAMPLING: OptionsTemplate = OptionsTemplate {
    id: SAMPLING,
    scopes: 1,
    fields: &[(SCOPE_SYSTEM, 4), (34, 4), (35, 1)],
};

/// TOTAL_BYTES_EXP, TOTAL_PKTS_EXP, TOTAL_FLOWS_EXP.
const NETFLOW9_STATISTICS: OptionsTemplate = OptionsTemplate {
    id: METERING,
    scopes: 1,
    fields: &[(SCOPE_SYSTEM, 4), (40, 4), (41, 4), (42, 4)],
};

impl OptionsTemplate {
    /// The template record, as in RFC 7011, section 3.4.2.2, or RFC 3954, section 6.1, which
    /// measures scope and options in octets.
    fn record(&self, protocol: Protocol) -> SetRecord {
        let mut bytes = self.id.to_be_bytes().to_vec();
        let (all, scopes) = (self.fields.len() as u16, self.scopes as u16);
        let (numbers, set) = match protocol {
            Protocol::Ipfix => ([all, scopes], ipfix::OPTIONS_TEMPLATE_SET),
            _ => (
                [4 * scopes, 4 * (all - scopes)],
                netflow9::OPTIONS_TEMPLATE_SET,
            ),
        };
        for number in numbers {
            bytes.extend_from_slice(&number.to_be_bytes());
        }
        for (id, length) in self.fields {
            put_specifier(&mut bytes, *id, None, *length);
        }
        SetRecord {
            set,
            bytes,
            is_data: false,
        }
    }

    /// A data record of numbers.
    fn data_record(&self, values: &[u64]) -> SetRecord {
        let mut bytes = Vec::new();
        for ((_, length), value) in self.fields.iter().zip(values) {
            // NetFlow v9's 32-bit counters wrap.
            let mask = u64::MAX >> (64 - 8 * u32::from((*length).min(8)));
            put_number(&mut bytes, value & mask, *length);
        }
        SetRecord {
            set: self.id,
            bytes,
            is_data: true,
        }
    }
}

/// The options templates of a protocol.
pub(super) fn templates(
    protocol: Protocol,
    has_enterprise: bool,
    has_applications: bool,
) -> Vec<SetRecord> {
    let mut templates = match protocol {
        Protocol::Ipfix => vec![&IPFIX_SAMPLING, &IPFIX_METERING, &IPFIX_RELIABILITY],
        Protocol::Netflow9 => vec![&NETFLOW9_SAMPLING, &NETFLOW9_STATISTICS],
        Protocol::Netflow5 => Vec::new(),
    };
    if has_enterprise && protocol == Protocol::Ipfix {
        templates.push(&IPFIX_TYPE_INFORMATION);
    }
    if has_applications && protocol == Protocol::Ipfix {
        templates.push(&IPFIX_APPLICATIONS);
    }
    templates
        .into_iter()
        .map(|template| template.record(protocol))
        .collect()
}

/// Options that do not change: sampling and type information.
pub(super) fn descriptions(
    protocol: Protocol,
    domain: u32,
    elements: &[Element],
) -> Vec<SetRecord> {
    match protocol {
        Protocol::Ipfix => {
            let sampling = IPFIX_SAMPLING.data_record(&[0, 1, 1, 0]);
            let types = elements.iter().map(type_information);
            std::iter::once(sampling).chain(types).collect()
        }
        Protocol::Netflow9 => vec![NETFLOW9_SAMPLING.data_record(&[u64::from(domain), 1, 1])],
        Protocol::Netflow5 => Vec::new(),
    }
}

/// Whether a set holds options templates. Each options template is sent in a set of its own,
/// because pmacct 1.7.7 misreads anything after the first options template of a set.
pub(super) const fn is_template_set(set: u16) -> bool {
    matches!(
        set,
        ipfix::OPTIONS_TEMPLATE_SET | netflow9::OPTIONS_TEMPLATE_SET
    )
}

/// What has been sent so far, and what could not be sent.
pub(super) fn statistics(
    protocol: Protocol,
    domain: u32,
    counters: &SessionCounters,
) -> Vec<SetRecord> {
    let (process, sent) = (u64::from(domain), counters);
    match protocol {
        Protocol::Ipfix => vec![
            IPFIX_METERING.data_record(&[process, process, sent.messages, sent.flows, sent.bytes]),
            IPFIX_RELIABILITY.data_record(&[
                process,
                sent.flows_not_sent,
                sent.packets_not_sent,
                sent.octets_not_sent,
            ]),
        ],
        Protocol::Netflow9 => {
            vec![NETFLOW9_STATISTICS.data_record(&[process, sent.bytes, sent.messages, sent.flows])]
        }
        Protocol::Netflow5 => Vec::new(),
    }
}

/// Whether an element needs type information. Reverse elements (RFC 5103) do not: they are in
/// IANA's registry.
pub(super) fn is_our_own(element: &Element) -> bool {
    let enterprise = element.enterprise;
    element.id != 0 && enterprise.is_some_and(|enterprise| enterprise != REVERSE_ENTERPRISE)
}

/// The definition of the records in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileDefinition {
    /// The definition as TOML.
    pub(crate) text: String,
    pub(crate) is_biflow: bool,
    /// The enterprise of its elements.
    pub(crate) enterprise: u32,
}

impl FileDefinition {
    /// The options template whose scope is the observation domain, the types of its elements, and
    /// the records. Empty if the definition is too long.
    ///
    /// ```text
    /// observationDomainId (149) | observationDomainName (300) | privateEnterpriseNumber (346)
    /// | informationElementRangeBegin (342) | informationElementRangeEnd (343)
    /// | informationElementDescription (340)
    /// ```
    ///
    /// The text is split into parts, one per record: netgauze-flow-pkt does not read the long form
    /// of lengths, which begins at 255 octets.
    pub(super) fn records(&self, domain: u32) -> Vec<SetRecord> {
        if self.text.len() > DEFINITION_BYTES_MAX {
            return Vec::new();
        }
        let mut template = DEFINITION.to_be_bytes().to_vec();
        for number in [6u16, 1] {
            template.extend_from_slice(&number.to_be_bytes());
        }
        put_specifier(&mut template, 149, None, 4);
        for (element, length) in DEFINITION_ELEMENTS
            .into_iter()
            .zip([VARIABLE, 4, 8, 8, VARIABLE])
        {
            put_specifier(&mut template, element, None, length);
        }
        let mut records = vec![SetRecord {
            set: ipfix::OPTIONS_TEMPLATE_SET,
            bytes: template,
            is_data: false,
        }];
        let end = self.text.len() as u64;
        let parts = self.text.as_bytes().chunks(PART_BYTES).enumerate();
        records.extend(parts.map(|(part, text)| {
            let mut bytes = domain.to_be_bytes().to_vec();
            put_text(
                &mut bytes,
                DOMAIN_NAMES[usize::from(self.is_biflow)].as_bytes(),
            );
            bytes.extend_from_slice(&self.enterprise.to_be_bytes());
            let begin = (part * PART_BYTES) as u64;
            bytes.extend_from_slice(&begin.to_be_bytes());
            bytes.extend_from_slice(&end.to_be_bytes());
            put_text(&mut bytes, text);
            SetRecord {
                set: DEFINITION,
                bytes,
                is_data: true,
            }
        }));
        records
    }
}

/// Octets of the definition in one record.
const PART_BYTES: usize = 240;

/// Appends a text preceded by its length (RFC 7011, section 7). Returns false if it is too long for
/// any form of length.
pub(super) fn put_text(to: &mut Vec<u8>, text: &[u8]) -> bool {
    match (u8::try_from(text.len()), u16::try_from(text.len())) {
        (Ok(short), _) if short < u8::MAX => to.push(short),
        (_, Ok(long)) => {
            to.push(u8::MAX);
            to.extend_from_slice(&long.to_be_bytes());
        }
        _ => return false,
    }
    to.extend_from_slice(text);
    true
}

fn type_information(element: &Element) -> SetRecord {
    let [high, low] = (element.units as u16).to_be_bytes();
    let types = [element.data_type as u8, element.semantics as u8, high, low];
    let mut bytes = element.id.to_be_bytes().to_vec();
    bytes.extend_from_slice(&element.enterprise.unwrap_or(0).to_be_bytes());
    bytes.extend_from_slice(&types);
    for text in [&element.name, &element.description] {
        let end = (0..=text.len().min(MAX_TEXT_BYTES))
            .rev()
            .find(|end| text.is_char_boundary(*end));
        let text = &text.as_bytes()[..end.unwrap_or(0)];
        bytes.push(text.len() as u8);
        bytes.extend_from_slice(text);
    }
    SetRecord {
        set: TYPE_INFORMATION,
        bytes,
        is_data: true,
    }
}
