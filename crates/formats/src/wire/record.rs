// SPDX-License-Identifier: Apache-2.0
//! Data records with templates, for IPFIX and NetFlow v9.

use std::collections::HashMap;

use turboflow_record::{Column, ColumnElement, FlowBatch, Value};

use super::applications::{Applications, is_application};
use super::body::{Body, SET_HEADER_BYTES};
use super::field::{Field, fits_ntp, is_flow_time, is_in_netflow9, is_tcp_flags};
use super::shape::{Presence, Shape, Shapes};
use super::template_ids::TemplateIds;
use super::uptime::{Fit, Uptime, latest_ms};
use super::{DataRecords, Encode, Protocol, Unexportable, Unit, WireOptions};

/// Maximum number of shapes with a template of their own. Further shapes share one template per
/// address family, in which every nullable value is a list of at most one element. So crafted
/// packets cannot make collectors hold an unbounded number of templates.
const MAX_SHAPES: usize = 64;

/// Octets of a template's id and field count, before its fields (RFC 7011, section 3.4.1).
const TEMPLATE_HEADER_BYTES: usize = 4;

/// Turns batches into templates and sets.
pub(super) struct Encoder {
    protocol: Protocol,
    columns: Vec<Column>,
    elements: Vec<ColumnElement>,
    shapes: Shapes,
    ids: TemplateIds,
    roles: Roles,
    templates: Vec<Template>,
    by_shape: HashMap<Shape, usize>,
    body: Body,
    uptime: Uptime,
    unexportable: Unexportable,
    applications: Applications,
    /// Fields that every record has and that do not come from a column.
    constants: Vec<Field>,
    /// Columns of times in NTP format.
    ntp_columns: Vec<usize>,
    /// The shapes of the current batch.
    batch_shapes: Vec<Shape>,
}

/// Columns that are counted, or that contain a record's start or end time.
#[derive(Clone, Copy, Debug, Default)]
struct Roles {
    packets: Option<usize>,
    octets: Option<usize>,
    start: Option<usize>,
    end: Option<usize>,
}

/// NetFlow v9 sets are padded to multiples of this. A record no longer than the padding would be
/// read in its place (RFC 3954, section 5.3).
const NETFLOW9_ALIGN_BYTES: usize = 4;

struct Template {
    id: u16,
    fields: Vec<Field>,
    min_bytes: usize,
}

impl Encoder {
    pub(super) fn new(
        protocol: Protocol,
        schema: &[Column],
        options: &WireOptions,
    ) -> Result<Self, String> {
        let align_bytes = match protocol {
            Protocol::Netflow9 => NETFLOW9_ALIGN_BYTES,
            _ => 1,
        };
        let shapes = Shapes::new(
            schema,
            |index| protocol == Protocol::Ipfix || is_in_netflow9(&options.elements[index]),
            |index| protocol == Protocol::Ipfix && is_tcp_flags(&options.elements[index]),
        );
        let mut encoder = Self {
            protocol,
            columns: schema.to_vec(),
            elements: options.elements.clone(),
            ids: TemplateIds::new(&shapes, &[], false),
            shapes,
            roles: Roles::of(&options.elements),
            templates: Vec::new(),
            by_shape: HashMap::new(),
            body: Body::new(options.message_bytes - protocol.header_bytes(), align_bytes),
            uptime: Uptime::default(),
            applications: Applications::new(&options.elements, options.applications.as_ref()),
            unexportable: Unexportable::default(),
            constants: constants(options),
            ntp_columns: Vec::new(),
            batch_shapes: Vec::new(),
        };
        encoder.check(schema)?;
        let fields = encoder.fields(|_, _| (Presence::Present, true));
        let ntp = fields.iter().filter(|field| field.is_ntp());
        encoder.ntp_columns = ntp.map(|field| field.column).collect();
        let fields = encoder.fields(|_, _| (Presence::Present, false));
        let has_applications = options.elements.iter().any(is_application);
        encoder.ids = TemplateIds::new(&encoder.shapes, &specifiers(&fields), has_applications);
        Ok(encoder)
    }

    /// Checks that the largest template and the shortest record of that template fit in a message.
    fn check(&self, schema: &[Column]) -> Result<(), String> {
        if self.protocol == Protocol::Netflow9 {
            if schema
                .iter()
                .any(|column| column.name.starts_with("reverse_"))
            {
                return Err(
                    "it has no elements for the other direction of a biflow; use IPFIX, or \
                            leave biflows out"
                        .to_owned(),
                );
            }
            if !self.elements.iter().any(is_in_netflow9) {
                return Err("it has an element for none of the columns; use IPFIX".to_owned());
            }
        }
        if self.protocol == Protocol::Ipfix {
            self.check_elements()?;
        }
        let always = self.fields(|_, column| match column.nullable {
            true => (Presence::Absent, false),
            false => (Presence::Present, false),
        });
        let shortest: usize = always.iter().map(Field::min_bytes).sum();
        if self.protocol == Protocol::Netflow9 && shortest < NETFLOW9_ALIGN_BYTES {
            return Err(format!(
                "its records would have {shortest} bytes, which collectors cannot tell from \
                 padding; add a feature such as the count of packets, or use IPFIX"
            ));
        }
        let fields = self.fields(|_, _| (Presence::Present, true));
        let specifiers: usize = fields.iter().map(Field::specifier_bytes).sum();
        let values: usize = fields.iter().map(Field::min_bytes).sum();
        let needed = SET_HEADER_BYTES + (TEMPLATE_HEADER_BYTES + specifiers).max(values);
        let limit = self.body.limit_bytes();
        if needed > limit {
            return Err(format!(
                "a message would have to hold {} bytes of {} columns; raise `output.mtu`, or use TCP",
                needed + self.protocol.header_bytes(),
                schema.len()
            ));
        }
        Ok(())
    }

    /// Checks that no two columns have the same element, because a collector could not tell such
    /// columns apart.
    fn check_elements(&self) -> Result<(), String> {
        let mut names = HashMap::new();
        for (column, mapped) in self.columns.iter().zip(&self.elements) {
            let (element, name) = (&mapped.v4, &column.name);
            if element.id == 0 {
                return Err(format!(
                    "{name} has no information element: nth has none over both directions of a \
                     biflow, nor of the newest inputs; use a list, or another format"
                ));
            }
            if let Some(other) = names.insert((element.enterprise, element.id), name) {
                return Err(format!(
                    "{other} and {name} have the same information element, {}; leave one of them \
                     out, or use another format",
                    element.name
                ));
            }
        }
        Ok(())
    }

    /// The fields of the present columns. `presence_of` returns a column's presence, and whether
    /// the record is IPv6.
    fn fields(&self, presence_of: impl Fn(usize, &Column) -> (Presence, bool)) -> Vec<Field> {
        let mut fields = Vec::new();
        for (index, (column, element)) in self.columns.iter().zip(&self.elements).enumerate() {
            let (presence, v6) = presence_of(index, column);
            let is_known = self.protocol == Protocol::Ipfix || is_in_netflow9(element);
            if presence != Presence::Absent && is_known {
                let field = Field::new(self.protocol, index, column, element, v6);
                fields.push(match presence {
                    Presence::Narrow => field.in_one_octet(),
                    _ => field,
                });
            }
        }
        fields.extend(self.constants.iter().cloned());
        fields
    }

    /// The index of the template of a shape, which is created and emitted if it is new. `None` if
    /// NetFlow v9, which has no lists, has reached the limit on templates.
    fn template(&mut self, shape: Shape, emit: &mut dyn FnMut(Unit)) -> Option<usize> {
        if let Some(index) = self.by_shape.get(&shape) {
            return Some(*index);
        }
        let exact = self.templates.len() < MAX_SHAPES && !self.shapes.overflows;
        if !exact && self.protocol == Protocol::Netflow9 {
            return None;
        }
        // The inverted key keeps shared templates apart from the exact template of "all absent".
        let key = if exact {
            shape
        } else {
            !self.shapes.family_only(shape)
        };
        if let Some(index) = self.by_shape.get(&key) {
            return Some(*index);
        }
        let fields = self.fields_of(shape, exact);
        let specifiers = specifiers(&fields);
        let id = self.ids.next(&self.shapes, shape, exact, &specifiers);
        let mut bytes = Vec::new();
        bytes.extend_from_slice(&id.to_be_bytes());
        bytes.extend_from_slice(&(fields.len() as u16).to_be_bytes());
        bytes.extend_from_slice(&specifiers);
        emit(Unit::Template(bytes));
        self.templates.push(Template {
            id,
            min_bytes: fields.iter().map(Field::min_bytes).sum(),
            fields,
        });
        self.by_shape.insert(key, self.templates.len() - 1);
        Some(self.templates.len() - 1)
    }

    /// The fields of a shape: exactly its present values, or every nullable value as an optional
    /// one.
    fn fields_of(&self, shape: Shape, exact: bool) -> Vec<Field> {
        // The family of a record is that of the first address that it has.
        let family = (0..self.columns.len()).map(|index| self.shapes.presence(shape, index));
        let v6 = family
            .into_iter()
            .find(|presence| matches!(presence, Presence::V4 | Presence::V6))
            == Some(Presence::V6);
        let mut fields = self.fields(|index, _| match self.shapes.presence(shape, index) {
            Presence::V4 => (Presence::Present, false),
            Presence::V6 => (Presence::Present, true),
            presence if exact || self.is_address(index) => (presence, v6),
            _ => (Presence::Present, v6),
        });
        if !exact {
            for field in &mut fields {
                if self.columns[field.column].nullable {
                    *field = field.clone().optional();
                }
            }
        }
        fields
    }

    fn is_address(&self, index: usize) -> bool {
        self.columns[index].kind == turboflow_record::ColumnKind::Address
    }

    fn row(&mut self, batch: &FlowBatch, row: usize, template: usize, emit: &mut dyn FnMut(Unit)) {
        if self.protocol == Protocol::Netflow9 && !self.fit_uptime(batch, row, emit) {
            return;
        }
        if !self.fits_ntp(batch, row) {
            self.unexportable.out_of_range += 1;
            return;
        }
        if self.protocol == Protocol::Ipfix {
            let emit = |record| emit(Unit::Name(record));
            self.applications.name_new(batch, row, emit);
        }
        for attempt in 0..2 {
            let mark = self.body.open(self.templates[template].id);
            let fits_format = self.write(batch, row, template);
            if fits_format && self.body.fits() {
                self.count(batch, row);
                return;
            }
            self.body.roll_back(mark);
            // A record that does not fit in an empty body never fits.
            if attempt == 0 && fits_format && !self.body.is_empty() {
                self.flush(emit);
            } else {
                break;
            }
        }
        self.unexportable.too_large += 1;
    }

    #[inline]
    fn write(&mut self, batch: &FlowBatch, row: usize, template: usize) -> bool {
        let (template, boot_ms) = (&self.templates[template], self.uptime.boot_ms());
        let applications = &self.applications;
        let out = self.body.bytes();
        out.reserve(template.min_bytes);
        let mut fields = template.fields.iter();
        fields.all(|field| {
            let value = match batch.value(row, field.column) {
                Value::Text(name) if field.is_application() => {
                    Value::Unsigned(applications.number(name).into())
                }
                value => value,
            };
            field.write(value, boot_ms, out)
        })
    }

    fn fits_ntp(&self, batch: &FlowBatch, row: usize) -> bool {
        let mut values = self
            .ntp_columns
            .iter()
            .map(|&column| batch.value(row, column));
        values.all(|value| match value {
            Value::Unsigned(ns) => fits_ntp(ns),
            Value::List(times_ns) => times_ns.iter().all(|&ns| fits_ntp(ns)),
            _ => true,
        })
    }

    /// Whether the record's times can be expressed as uptimes. If the origin of uptimes has to
    /// move, the buffered records are emitted first.
    fn fit_uptime(&mut self, batch: &FlowBatch, row: usize, emit: &mut dyn FnMut(Unit)) -> bool {
        let ms = |column: Option<usize>| number(batch, row, column).map(|ns| ns / 1_000_000);
        let (start, end) = (ms(self.roles.start), ms(self.roles.end));
        let (Some(start), Some(end)) = (start.or(end), end.or(start)) else {
            return true;
        };
        let before = self.uptime;
        match self.uptime.fit(start.min(end), end.max(start)) {
            Fit::Same => true,
            Fit::Moved => {
                let after = std::mem::replace(&mut self.uptime, before);
                self.flush(emit);
                self.uptime = after;
                true
            }
            Fit::Never => {
                self.unexportable.out_of_range += 1;
                false
            }
        }
    }

    #[inline]
    fn count(&mut self, batch: &FlowBatch, row: usize) {
        let of = |column| number(batch, row, column).unwrap_or(0);
        let (packets, octets) = (of(self.roles.packets), of(self.roles.octets));
        let latest = number(batch, row, self.roles.end.or(self.roles.start));
        let data: &mut DataRecords = self.body.tally();
        data.records += 1;
        data.flows += 1;
        data.packets = data.packets.wrapping_add(packets);
        data.octets = data.octets.wrapping_add(octets);
        let latest_ms = latest.map_or(0, |ns| latest_ms(ns / 1_000_000));
        data.latest_ms = data.latest_ms.max(latest_ms);
    }
}

/// The field specifiers of a template.
fn specifiers(fields: &[Field]) -> Vec<u8> {
    let mut bytes = Vec::new();
    fields.iter().for_each(|field| field.specify(&mut bytes));
    bytes
}

/// `ingressInterface` and `egressInterface`, if there are no columns for them.
fn constants(options: &WireOptions) -> Vec<Field> {
    const INGRESS: u16 = 10;
    const EGRESS: u16 = 14;
    let is_interface = |column: &ColumnElement| {
        column.v4.enterprise.is_none() && [INGRESS, EGRESS].contains(&column.v4.id)
    };
    match options.interface {
        Some(index) if !options.elements.iter().any(is_interface) => {
            vec![Field::constant(INGRESS, index), Field::constant(EGRESS, 0)]
        }
        _ => Vec::new(),
    }
}

impl Encode for Encoder {
    fn encode(&mut self, batch: &FlowBatch, emit: &mut dyn FnMut(Unit)) {
        let mut shapes = std::mem::take(&mut self.batch_shapes);
        self.shapes.of_batch(batch, &mut shapes);
        let mut known: Option<(Shape, Option<usize>)> = None;
        for (row, shape) in shapes.iter().enumerate() {
            let template = match known {
                Some((before, template)) if before == *shape => template,
                _ => self.template(*shape, emit),
            };
            known = Some((*shape, template));
            match template {
                Some(template) => self.row(batch, row, template, emit),
                None => self.unexportable.no_template += 1,
            }
        }
        self.batch_shapes = shapes;
    }

    fn flush(&mut self, emit: &mut dyn FnMut(Unit)) {
        if !self.body.is_empty() {
            let mut data = self.body.take();
            data.boot_ms = self.uptime.boot_ms();
            emit(Unit::Data(data));
        }
    }

    fn unexportable(&self) -> Unexportable {
        self.unexportable
    }
}

impl Roles {
    fn of(elements: &[ColumnElement]) -> Self {
        let iana = |ids: &[u16]| {
            elements
                .iter()
                .position(|column| column.v4.enterprise.is_none() && ids.contains(&column.v4.id))
        };
        let time = |parity: u16| {
            elements
                .iter()
                .position(|column| is_flow_time(&column.v4) && column.v4.id % 2 == parity)
        };
        Self {
            packets: iana(&[2]),
            octets: iana(&[1]),
            start: time(0),
            end: time(1),
        }
    }
}

#[inline]
fn number(batch: &FlowBatch, row: usize, column: Option<usize>) -> Option<u64> {
    match batch.value(row, column?) {
        Value::Unsigned(number) => Some(number),
        _ => None,
    }
}
