// SPDX-License-Identifier: Apache-2.0
//! Runs a program as bmv2's `simple_switch` does, a frame at a time.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::ops::Range;

use turboflow_engine_p4::Port;

use crate::expression::{Expression, Values};
use crate::program::{ParserOp, Pipeline, Primitive, Program, Step, Target};

/// The program's `CPU_PORT`.
pub(crate) const CPU_PORT: u16 = 64;
/// What `mark_to_drop` sends a frame to.
const DROP_PORT: u128 = 511;
/// The type of a frame that was cloned in ingress.
const INGRESS_CLONE: u128 = 1;

/// A switch. Its clock stands still until it is set.
pub(crate) struct Switch {
    program: Program,
    registers: Vec<Vec<u64>>,
    frame: FrameState,
    /// The port of each clone session.
    sessions: HashMap<u128, u16>,
    pub(crate) now_us: u64,
    from_cpu: Vec<u8>,
    /// For the CPU.
    reports: VecDeque<Vec<u8>>,
}

/// What the program knows of a frame.
#[derive(Default)]
struct FrameState {
    fields: Vec<u128>,
    is_valid: Vec<bool>,
    stacked: Vec<usize>,
    /// Where the fields of variable width lie in the frame, by header.
    variable: Vec<Range<usize>>,
    /// Bytes that the parser has read.
    parsed: usize,
    truncated: Option<usize>,
    clone: Option<(u128, u128)>,
}

impl Switch {
    pub(crate) fn new(program: &str) -> Self {
        let program = Program::read(program);
        let registers = program.registers.iter();
        Self {
            registers: registers.map(|register| vec![0; register.size]).collect(),
            frame: FrameState::default(),
            sessions: HashMap::new(),
            now_us: 0,
            from_cpu: Vec::new(),
            reports: VecDeque::new(),
            program,
        }
    }

    /// Sends the clones of a session to the CPU.
    pub(crate) fn mirror_to_cpu(&mut self, session: u128) {
        self.sessions.insert(session, CPU_PORT);
    }

    /// Takes a frame that comes in by a port. Returns what leaves, by which port.
    pub(crate) fn receive(&mut self, port: u16, bytes: &[u8]) -> Vec<(u16, Vec<u8>)> {
        let standard = self.program.standard;
        let mut leaves = Vec::new();
        self.begin(port, bytes);
        self.run(|program| &program.ingress);
        let egress_spec = self.frame.fields[standard.egress_spec];
        let clone = self.frame.clone.take();
        let cloned = clone.and_then(|(session, list)| {
            let port = *self.sessions.get(&session)?;
            let list = &self.program.lists[&list];
            let kept: Vec<_> = list
                .iter()
                .map(|at| (*at, self.frame.fields[*at]))
                .collect();
            Some((port, kept))
        });
        if egress_spec != DROP_PORT {
            leaves.extend(self.leave(egress_spec, bytes));
        }
        if let Some((to, kept)) = cloned {
            // The frame as it came in.
            self.begin(port, bytes);
            for (at, value) in kept {
                self.frame.fields[at] = value;
            }
            self.frame.fields[standard.instance_type] = INGRESS_CLONE;
            leaves.extend(self.leave(to.into(), bytes));
        }
        leaves
    }

    /// A frame comes, and is parsed.
    fn begin(&mut self, port: u16, bytes: &[u8]) {
        let Self { program, frame, .. } = self;
        let standard = program.standard;
        frame.fields.clear();
        frame.fields.resize(program.masks.len(), 0);
        frame.is_valid.clear();
        frame.is_valid.resize(program.headers.len(), false);
        frame.stacked.clear();
        frame.stacked.resize(program.stacks, 0);
        frame.variable.resize(program.headers.len(), 0..0);
        frame.parsed = 0;
        frame.truncated = None;
        frame.clone = None;
        frame.fields[standard.ingress_port] = port.into();
        frame.fields[standard.packet_length] = bytes.len() as u128;
        frame.fields[standard.ingress_timestamp] = self.now_us.into();
        // An error ends the parser alone.
        let _ = frame.parse(program, bytes);
    }

    /// A frame goes through egress.
    fn leave(&mut self, port: u128, bytes: &[u8]) -> Option<(u16, Vec<u8>)> {
        let standard = self.program.standard;
        self.frame.fields[standard.egress_port] = port;
        self.frame.fields[standard.egress_spec] = port;
        self.run(|program| &program.egress);
        let is_dropped = self.frame.fields[standard.egress_spec] == DROP_PORT;
        (!is_dropped).then(|| (port as u16, self.frame.deparse(&self.program, bytes)))
    }

    fn run(&mut self, pipeline: impl Fn(&Program) -> &Pipeline) {
        let Self {
            program,
            registers,
            frame,
            ..
        } = self;
        let pipeline = pipeline(program);
        let mut next = pipeline.first;
        while let Some(at) = next {
            next = match &pipeline.steps[at] {
                Step::If {
                    condition,
                    then,
                    otherwise,
                } => {
                    if condition.is_true(&frame.values(&[])) {
                        *then
                    } else {
                        *otherwise
                    }
                }
                Step::Do {
                    action,
                    arguments,
                    next,
                } => {
                    frame.act(program, registers, &program.actions[*action], arguments);
                    *next
                }
            };
        }
    }
}

impl FrameState {
    const fn values<'a>(&'a self, arguments: &'a [u128]) -> Values<'a> {
        Values {
            fields: self.fields.as_slice(),
            is_valid: self.is_valid.as_slice(),
            stacked: self.stacked.as_slice(),
            arguments,
        }
    }

    fn set(&mut self, program: &Program, field: usize, value: u128) {
        self.fields[field] = value & program.masks[field];
    }

    /// Returns nothing after a parser error: the frame or a stack was too short.
    fn parse(&mut self, program: &Program, bytes: &[u8]) -> Option<()> {
        let mut next = Some(program.start);
        while let Some(at) = next {
            let state = &program.states[at];
            for op in &state.ops {
                match op {
                    ParserOp::Extract(header) => self.extract(program, *header, bytes)?,
                    ParserOp::ExtractNext(stack, headers) => {
                        let header = *headers.get(self.stacked[*stack])?;
                        self.extract(program, header, bytes)?;
                        self.stacked[*stack] += 1;
                    }
                    ParserOp::ExtractBits(header, bits) => {
                        let bits = bits.value(&self.values(&[]));
                        let length = usize::try_from(bits / 8).ok()?;
                        let end = self.parsed.checked_add(length)?;
                        self.variable[*header] = self.parsed..end;
                        bytes.get(self.parsed..end)?;
                        self.parsed = end;
                        self.is_valid[*header] = true;
                    }
                    ParserOp::Set(field, to) => {
                        let value = to.value(&self.values(&[]));
                        self.set(program, *field, value);
                    }
                }
            }
            let key = state
                .key
                .as_ref()
                .map_or(0, |key| key.value(&self.values(&[])));
            let mut transitions = state.transitions.iter();
            let taken = transitions.find(|(value, mask, _)| key & mask == *value);
            next = taken.and_then(|(_, _, next)| *next);
        }
        Some(())
    }

    fn extract(&mut self, program: &Program, header: usize, bytes: &[u8]) -> Option<()> {
        let fields = &program.headers[header].fields;
        let mut rest = bytes.get(self.parsed..)?;
        rest = rest.get(..program.headers[header].bytes)?;
        self.parsed += rest.len();
        for field in fields {
            let value;
            (value, rest) = rest.split_at(field.bytes);
            self.fields[field.at] = value
                .iter()
                .fold(0, |all, byte| all << 8 | u128::from(*byte));
        }
        self.is_valid[header] = true;
        Some(())
    }

    fn act(
        &mut self,
        program: &Program,
        registers: &mut [Vec<u64>],
        action: &[Primitive],
        arguments: &[u128],
    ) {
        let mut at = 0;
        while let Some(primitive) = action.get(at) {
            at += 1;
            let value = |expression: &Expression| expression.value(&self.values(arguments));
            match primitive {
                Primitive::AddHeader(header) => self.is_valid[*header] = true,
                Primitive::Assign(Target::Field(field), to) => {
                    let value = value(to);
                    self.set(program, *field, value);
                }
                Primitive::Assign(Target::Header(header), to) => {
                    self.is_valid[*header] = value(to) != 0;
                }
                Primitive::Clone { session, list } => {
                    self.clone = Some((value(session), value(list)));
                }
                Primitive::Hash { to, base, of, size } => {
                    let input = of.iter().flat_map(|of| (value(of) as u64).to_be_bytes());
                    let hash = value(base) + u128::from(crc32(input)) % value(size);
                    self.set(program, *to, hash);
                }
                Primitive::Jump(to) => at = *to,
                Primitive::JumpIfZero(of, to) => {
                    if value(of) == 0 {
                        at = *to;
                    }
                }
                Primitive::MarkToDrop => self.fields[program.standard.egress_spec] = DROP_PORT,
                Primitive::ReadRegister { to, register, at } => {
                    let value = registers[*register][value(at) as usize];
                    self.set(program, *to, value.into());
                }
                Primitive::Truncate(to) => self.truncated = Some(value(to) as usize),
                Primitive::WriteRegister {
                    register,
                    at,
                    value: written,
                } => {
                    let mask = u64::MAX >> (64 - program.registers[*register].bits);
                    registers[*register][value(at) as usize] = value(written) as u64 & mask;
                }
            }
        }
    }

    fn deparse(&self, program: &Program, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(bytes.len() + 256);
        for header in &program.order {
            if !self.is_valid[*header] {
                continue;
            }
            let fields = &program.headers[*header].fields;
            for field in fields {
                let value = self.fields[field.at].to_be_bytes();
                out.extend(&value[value.len() - field.bytes..]);
            }
            if fields.is_empty() {
                out.extend(&bytes[self.variable[*header].clone()]);
            }
        }
        out.extend(&bytes[self.parsed..]);
        out.truncate(self.truncated.unwrap_or(usize::MAX));
        out
    }
}

/// CRC32 as in Ethernet and bmv2, a bit at a time.
fn crc32(bytes: impl Iterator<Item = u8>) -> u32 {
    !bytes.fold(!0, |crc, byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| {
            (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg())
        })
    })
}

/// The CPU port.
impl Port for Switch {
    fn name(&self) -> &str {
        "v1model"
    }

    fn send(&mut self, parts: &[&[u8]]) {
        let mut bytes = std::mem::take(&mut self.from_cpu);
        bytes.clear();
        parts.iter().for_each(|part| bytes.extend(*part));
        for (port, frame) in self.receive(CPU_PORT, &bytes) {
            assert_eq!(port, CPU_PORT, "commands are answered where they come from");
            self.reports.push_back(frame);
        }
        self.from_cpu = bytes;
    }

    fn exchange(&mut self, wait: bool, take: &mut dyn FnMut(&[u8])) -> io::Result<bool> {
        let is_silent = self.reports.is_empty();
        self.reports.drain(..).for_each(|frame| take(&frame));
        // What has not come by now never will.
        Ok(!(wait && is_silent))
    }
}
