// SPDX-License-Identifier: Apache-2.0
//! A program for bmv2, as `p4c` writes it in JSON, with all names resolved. Features that
//! TurboFlow's program does not use are refused by name.

use std::collections::HashMap;

use serde_json::Value;

use crate::expression::{Expression, expressions};

/// A field of fixed width.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field {
    pub(crate) at: usize,
    pub(crate) bytes: usize,
}

/// A header with its fields in order. A field of variable width is the only field of its header.
#[derive(Clone, Debug)]
pub(crate) struct Header {
    pub(crate) fields: Vec<Field>,
    pub(crate) bytes: usize,
}

/// The numbers that stand for names.
pub(crate) struct Names {
    headers: HashMap<String, usize>,
    fields: HashMap<(String, String), usize>,
    stacks: HashMap<String, (usize, Vec<String>)>,
    registers: HashMap<String, usize>,
    calculations: HashMap<String, Vec<Expression>>,
}

impl Names {
    pub(crate) fn header(&self, name: &Value) -> usize {
        self.headers[text(name)]
    }

    pub(crate) fn field(&self, header: &str, field: &Value) -> usize {
        self.fields[&(header.to_owned(), text(field).to_owned())]
    }

    /// The number of a stack, and its headers.
    pub(crate) fn stack(&self, name: &Value) -> (usize, &[String]) {
        let (stack, headers) = &self.stacks[text(name)];
        (*stack, headers)
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Target {
    Field(usize),
    Header(usize),
}

#[derive(Clone, Debug)]
pub(crate) enum Primitive {
    AddHeader(usize),
    Assign(Target, Expression),
    /// A copy of the frame in ingress or in egress, together with a list of fields.
    Clone {
        session: Expression,
        list: Expression,
    },
    /// CRC32 of 64-bit values, modulo `size`.
    Hash {
        to: usize,
        base: Expression,
        of: Vec<Expression>,
        size: Expression,
    },
    Jump(usize),
    JumpIfZero(Expression, usize),
    MarkToDrop,
    ReadRegister {
        to: usize,
        register: usize,
        at: Expression,
    },
    /// With this list of fields.
    Recirculate(Expression),
    Truncate(Expression),
    WriteRegister {
        register: usize,
        at: Expression,
        value: Expression,
    },
}

#[derive(Clone, Debug)]
pub(crate) struct State {
    pub(crate) ops: Vec<ParserOp>,
    pub(crate) key: Option<Expression>,
    /// For each transition: value, mask, next state.
    pub(crate) transitions: Vec<(u128, u128, Option<usize>)>,
}

#[derive(Clone, Debug)]
pub(crate) enum ParserOp {
    Extract(usize),
    /// Extracts into the next header of a stack.
    ExtractNext(usize, Vec<usize>),
    /// Extracts as many bits as the expression says.
    ExtractBits(usize, Expression),
    Set(usize, Expression),
}

/// A step of a pipeline. Tables get no entries, so a table is its default action.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    If {
        condition: Expression,
        then: Option<usize>,
        otherwise: Option<usize>,
    },
    Do {
        action: usize,
        arguments: Vec<u128>,
        next: Option<usize>,
    },
}

#[derive(Clone, Debug)]
pub(crate) struct Pipeline {
    pub(crate) first: Option<usize>,
    pub(crate) steps: Vec<Step>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Register {
    pub(crate) size: usize,
    pub(crate) bits: u32,
}

/// The program.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    /// The largest value of each field.
    pub(crate) masks: Vec<u128>,
    pub(crate) headers: Vec<Header>,
    pub(crate) stacks: usize,
    pub(crate) registers: Vec<Register>,
    pub(crate) actions: Vec<Vec<Primitive>>,
    pub(crate) start: usize,
    pub(crate) states: Vec<State>,
    pub(crate) ingress: Pipeline,
    pub(crate) egress: Pipeline,
    /// The headers in the order in which they leave.
    pub(crate) order: Vec<usize>,
    /// The fields that accompany a clone, by the number of their list.
    pub(crate) lists: HashMap<u128, Vec<usize>>,
    pub(crate) standard: Standard,
}

/// Fields of the standard metadata.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Standard {
    pub(crate) ingress_port: usize,
    pub(crate) egress_spec: usize,
    pub(crate) egress_port: usize,
    pub(crate) packet_length: usize,
    pub(crate) ingress_timestamp: usize,
    pub(crate) egress_timestamp: usize,
    pub(crate) queue_depth: usize,
    pub(crate) queue_time: usize,
    pub(crate) instance_type: usize,
}

impl Program {
    pub(crate) fn read(source: &str) -> Self {
        let json: Value = serde_json::from_str(source).expect("the program is JSON");
        for absent in [
            "meter_arrays",
            "counter_arrays",
            "extern_instances",
            "checksums",
        ] {
            assert!(
                items(&json[absent]).is_empty(),
                "{absent} are not supported"
            );
        }
        let mut masks = Vec::new();
        let (mut names, headers) = headers(&json, &mut masks);
        for calculation in items(&json["calculations"]) {
            assert_eq!(
                calculation["algo"], "crc32",
                "another hash is not supported"
            );
            let input = expressions(&names, &calculation["input"]);
            let name = text(&calculation["name"]).to_owned();
            names.calculations.insert(name, input);
        }
        let registers = items(&json["register_arrays"])
            .iter()
            .map(|register| Register {
                size: size(&register["size"]),
                bits: size(&register["bitwidth"]) as u32,
            });
        let actions = items(&json["actions"])
            .iter()
            .enumerate()
            .map(|(at, action)| {
                assert_eq!(size(&action["id"]), at, "actions are in order");
                let primitives = items(&action["primitives"]).iter();
                primitives.map(|json| primitive(&names, json)).collect()
            });
        let lists = items(&json["field_lists"]).iter().map(|list| {
            let fields = items(&list["elements"])
                .iter()
                .map(|element| &element["value"]);
            let fields = fields.map(|field| names.field(text(&field[0]), &field[1]));
            (size(&list["id"]) as u128, fields.collect())
        });
        let standard = |field: &str| names.field("standard_metadata", &Value::from(field));
        let parser = &json["parsers"][0];
        let (start, states) = parser_states(&names, parser);
        let order = items(&json["deparsers"][0]["order"]).iter();
        Self {
            masks,
            headers,
            stacks: names.stacks.len(),
            registers: registers.collect(),
            actions: actions.collect(),
            start,
            states,
            ingress: pipeline(&names, &json, "ingress"),
            egress: pipeline(&names, &json, "egress"),
            order: order.map(|name| names.header(name)).collect(),
            lists: lists.collect(),
            standard: Standard {
                ingress_port: standard("ingress_port"),
                egress_spec: standard("egress_spec"),
                egress_port: standard("egress_port"),
                packet_length: standard("packet_length"),
                ingress_timestamp: standard("ingress_global_timestamp"),
                egress_timestamp: standard("egress_global_timestamp"),
                queue_depth: standard("enq_qdepth"),
                queue_time: standard("deq_timedelta"),
                instance_type: standard("instance_type"),
            },
        }
    }
}

pub(crate) fn items(json: &Value) -> &[Value] {
    json.as_array().map_or(&[], Vec::as_slice)
}

pub(crate) fn text(json: &Value) -> &str {
    json.as_str()
        .unwrap_or_else(|| panic!("{json} is not text"))
}

/// A number in hexadecimal digits.
pub(crate) fn number(json: &Value) -> u128 {
    let digits = text(json).strip_prefix("0x");
    let value = digits.and_then(|digits| u128::from_str_radix(digits, 16).ok());
    value.unwrap_or_else(|| panic!("{json} is not a number"))
}

fn size(json: &Value) -> usize {
    json.as_u64()
        .unwrap_or_else(|| panic!("{json} is not a size")) as usize
}

/// The headers, and the numbers of all names except those of calculations.
fn headers(json: &Value, masks: &mut Vec<u128>) -> (Names, Vec<Header>) {
    let types: HashMap<_, _> = items(&json["header_types"])
        .iter()
        .map(|of| (text(&of["name"]), items(&of["fields"])))
        .collect();
    let mut names = Names {
        headers: HashMap::new(),
        fields: HashMap::new(),
        stacks: HashMap::new(),
        registers: HashMap::new(),
        calculations: HashMap::new(),
    };
    let mut headers = Vec::new();
    for (number, header) in items(&json["headers"]).iter().enumerate() {
        let name = text(&header["name"]);
        let mut fields = Vec::new();
        for field in types[text(&header["header_type"])] {
            let Some(bits) = field[1].as_u64() else {
                continue;
            };
            assert!(bits <= 64, "{field} of {name} has more than 64 bits");
            fields.push(Field {
                at: masks.len(),
                bytes: bits as usize / 8,
            });
            let of = (name.to_owned(), text(&field[0]).to_owned());
            names.fields.insert(of, masks.len());
            masks.push((1 << bits) - 1);
            let is_whole = bits.is_multiple_of(8) || header["metadata"] == true;
            assert!(is_whole, "{field} of {name} is not made of whole bytes");
        }
        names.headers.insert(name.to_owned(), number);
        let bytes = fields.iter().map(|field| field.bytes).sum();
        headers.push(Header { fields, bytes });
    }
    for (number, stack) in items(&json["header_stacks"]).iter().enumerate() {
        let members = items(&stack["header_ids"]).iter();
        let members = members.map(|id| text(&json["headers"][size(id)]["name"]).to_owned());
        let name = text(&stack["name"]).to_owned();
        names.stacks.insert(name, (number, members.collect()));
    }
    for (number, register) in items(&json["register_arrays"]).iter().enumerate() {
        let name = text(&register["name"]).to_owned();
        names.registers.insert(name, number);
    }
    (names, headers)
}

fn primitive(names: &Names, json: &Value) -> Primitive {
    let parameters = items(&json["parameters"]);
    let expression = |at: usize| Expression::read(names, &parameters[at]);
    let named = |at: usize| &parameters[at]["value"];
    let field = |at: usize| match target(names, &parameters[at]) {
        Target::Field(field) => field,
        Target::Header(_) => panic!("{json} needs a field"),
    };
    match text(&json["op"]) {
        "add_header" => Primitive::AddHeader(names.header(named(0))),
        "assign" => Primitive::Assign(target(names, &parameters[0]), expression(1)),
        "clone_ingress_pkt_to_egress" | "clone_egress_pkt_to_egress" => Primitive::Clone {
            session: expression(0),
            list: expression(1),
        },
        "modify_field_with_hash_based_offset" => Primitive::Hash {
            to: field(0),
            base: expression(1),
            of: names.calculations[text(named(2))].clone(),
            size: expression(3),
        },
        "_jump" => Primitive::Jump(number(named(0)) as usize),
        "_jump_if_zero" => Primitive::JumpIfZero(expression(0), number(named(1)) as usize),
        "mark_to_drop" => Primitive::MarkToDrop,
        "recirculate" => Primitive::Recirculate(expression(0)),
        "register_read" => Primitive::ReadRegister {
            to: field(0),
            register: names.registers[text(named(1))],
            at: expression(2),
        },
        "register_write" => Primitive::WriteRegister {
            register: names.registers[text(named(0))],
            at: expression(1),
            value: expression(2),
        },
        "truncate" => Primitive::Truncate(expression(0)),
        other => panic!("the primitive `{other}` is not supported"),
    }
}

fn target(names: &Names, json: &Value) -> Target {
    match Expression::read(names, json) {
        Expression::Field(field) => Target::Field(field),
        Expression::IsValid(header) => Target::Header(header),
        other => panic!("{other:?} cannot be written"),
    }
}

fn parser_states(names: &Names, parser: &Value) -> (usize, Vec<State>) {
    let states = items(&parser["parse_states"]);
    let by_name = |name: &Value| {
        let name = name.as_str()?;
        let found = states.iter().position(|state| state["name"] == name);
        Some(found.unwrap_or_else(|| panic!("there is no state `{name}`")))
    };
    let start = by_name(&parser["init_state"]).expect("a parser has a start");
    let states = states.iter().map(|state| {
        let keys = expressions(names, &state["transition_key"]);
        assert!(
            keys.len() < 2,
            "transitions by several values are not supported"
        );
        let transitions = items(&state["transitions"]).iter().map(|transition| {
            let next = by_name(&transition["next_state"]);
            match text(&transition["type"]) {
                "default" => (0, 0, next),
                "hexstr" if transition["mask"].is_null() => {
                    (number(&transition["value"]), u128::MAX, next)
                }
                "hexstr" => {
                    let mask = number(&transition["mask"]);
                    (number(&transition["value"]) & mask, mask, next)
                }
                other => panic!("transitions of type `{other}` are not supported"),
            }
        });
        let ops = items(&state["parser_ops"]).iter();
        State {
            ops: ops.map(|op| parser_op(names, op)).collect(),
            transitions: transitions.collect(),
            key: keys.into_iter().next(),
        }
    });
    (start, states.collect())
}

fn parser_op(names: &Names, json: &Value) -> ParserOp {
    let parameters = items(&json["parameters"]);
    let to = &parameters[0];
    match (text(&json["op"]), text(&to["type"])) {
        ("extract", "regular") => ParserOp::Extract(names.header(&to["value"])),
        ("extract", "stack") => {
            let (stack, headers) = names.stack(&to["value"]);
            let headers = headers.iter().map(|name| names.headers[name]);
            ParserOp::ExtractNext(stack, headers.collect())
        }
        ("extract_VL", "regular") => ParserOp::ExtractBits(
            names.header(&to["value"]),
            Expression::read(names, &parameters[1]),
        ),
        ("set", "field") => match target(names, to) {
            Target::Field(field) => ParserOp::Set(field, Expression::read(names, &parameters[1])),
            Target::Header(_) => panic!("{json} sets no field"),
        },
        (op, of) => panic!("`{op}` of `{of}` in a parser is not supported"),
    }
}

fn pipeline(names: &Names, json: &Value, name: &str) -> Pipeline {
    let mut pipelines = items(&json["pipelines"]).iter();
    let found = pipelines.find(|pipeline| pipeline["name"] == name);
    let json = found.unwrap_or_else(|| panic!("there is no pipeline `{name}`"));
    let (tables, conditionals) = (items(&json["tables"]), items(&json["conditionals"]));
    let step = |name: &Value| {
        let name = name.as_str()?;
        let mut steps = tables.iter().chain(conditionals);
        let found = steps.position(|step| step["name"] == name);
        Some(found.unwrap_or_else(|| panic!("there is no step `{name}`")))
    };
    let tables = tables.iter().map(|table| {
        let entry = &table["default_entry"];
        let action = size(&entry["action_id"]);
        let chosen = items(&table["action_ids"]).iter();
        let chosen = chosen
            .zip(items(&table["actions"]))
            .find(|(id, _)| size(id) == action);
        let (_, action_name) = chosen.expect("a table has its default action");
        assert!(
            items(&table["entries"]).is_empty(),
            "entries are not supported"
        );
        let next = &table["next_tables"];
        assert!(next.get("__MISS__").is_none(), "hits are not supported");
        Step::Do {
            action,
            arguments: items(&entry["action_data"]).iter().map(number).collect(),
            next: step(
                next.get(text(action_name))
                    .unwrap_or(&table["base_default_next"]),
            ),
        }
    });
    let conditionals = conditionals.iter().map(|conditional| Step::If {
        condition: Expression::read(names, &conditional["expression"]),
        then: step(&conditional["true_next"]),
        otherwise: step(&conditional["false_next"]),
    });
    Pipeline {
        first: step(&json["init_table"]),
        steps: tables.chain(conditionals).collect(),
    }
}
