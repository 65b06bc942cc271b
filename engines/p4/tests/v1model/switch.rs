// SPDX-License-Identifier: Apache-2.0
//! Runs a program like bmv2's `simple_switch`, one frame at a time.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::ops::Range;

use turboflow_engine_p4::Port;

use crate::expression::{Expression, Values};
use crate::program::{ParserOp, Pipeline, Primitive, Program, Step, Target};

/// The program's `CPU_PORT`.
pub(crate) const CPU_PORT: u16 = 64;
/// How much a frame may grow before it is truncated, in bytes.
const MOST_GROWTH_BYTES: usize = 512;
/// The port to which `mark_to_drop` sends a frame.
const DROP_PORT: u128 = 511;
/// The types of frames that did not arrive on a port.
const INGRESS_CLONE: u128 = 1;
const EGRESS_CLONE: u128 = 2;
const RECIRCULATED: u128 = 4;

/// A switch. Its clock stands still until it is set.
pub(crate) struct Switch {
    program: Program,
    registers: Vec<Vec<u64>>,
    frame: FrameState,
    /// The port of each clone session.
    sessions: HashMap<u128, u16>,
    pub(crate) now_us: u64,
    /// What every frame meets in its queue: number of frames, and time to wait in microseconds.
    pub(crate) queue: (u32, u32),
    from_cpu: Vec<u8>,
    /// Reports for the CPU.
    reports: VecDeque<Vec<u8>>,
}

/// The program's state for a frame.
#[derive(Default)]
struct FrameState {
    fields: Vec<u128>,
    is_valid: Vec<bool>,
    stacked: Vec<usize>,
    /// Positions of the fields of variable width in the frame, by header.
    variable: Vec<Range<usize>>,
    /// Number of bytes that the parser has read.
    parsed: usize,
    truncated: Option<usize>,
    /// Clone session and number of the field list.
    clone: Option<(u128, u128)>,
    /// Number of the field list.
    recirculate: Option<u128>,
}

/// A frame inside the switch, and the fields that accompany it.
struct OnItsWay {
    came_by: u16,
    /// The port to which a clone goes; `None`: the frame goes to ingress.
    to: Option<u16>,
    bytes: Vec<u8>,
    kept: Vec<(usize, u128)>,
    instance_type: u128,
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
            queue: (0, 0),
            from_cpu: Vec::new(),
            reports: VecDeque::new(),
            program,
        }
    }

    /// Sends the clones of a session to the CPU.
    pub(crate) fn mirror_to_cpu(&mut self, session: u128) {
        self.sessions.insert(session, CPU_PORT);
    }

    /// Takes a frame that arrives on a port. Returns the frames that leave, with their ports.
    pub(crate) fn receive(&mut self, port: u16, bytes: &[u8]) -> Vec<(u16, Vec<u8>)> {
        let mut leaves = Vec::new();
        let mut frames = VecDeque::from([OnItsWay {
            came_by: port,
            to: None,
            bytes: bytes.to_vec(),
            kept: Vec::new(),
            instance_type: 0,
        }]);
        while let Some(frame) = frames.pop_front() {
            self.begin(&frame);
            let to = match frame.to {
                Some(port) => port.into(),
                None => self.ingress(),
            };
            frames.extend(self.cloned(&frame, INGRESS_CLONE));
            if to == DROP_PORT {
                continue;
            }
            let left = self.egress(to, &frame.bytes);
            let as_it_leaves = OnItsWay {
                bytes: left.as_ref().map_or(Vec::new(), |(_, bytes)| bytes.clone()),
                ..frame
            };
            frames.extend(self.cloned(&as_it_leaves, EGRESS_CLONE));
            match self.frame.recirculate {
                Some(list) => frames.push_back(OnItsWay {
                    to: None,
                    kept: self.kept(list),
                    instance_type: RECIRCULATED,
                    ..as_it_leaves
                }),
                None => leaves.extend(left),
            }
        }
        leaves
    }

    /// Starts processing a frame, and parses it.
    fn begin(&mut self, on_its_way: &OnItsWay) {
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
        frame.recirculate = None;
        let bytes = &on_its_way.bytes;
        for (field, value) in &on_its_way.kept {
            frame.fields[*field] = *value;
        }
        frame.fields[standard.ingress_port] = on_its_way.came_by.into();
        frame.fields[standard.packet_length] = bytes.len() as u128;
        frame.fields[standard.instance_type] = on_its_way.instance_type;
        if on_its_way.instance_type == 0 {
            frame.fields[standard.ingress_timestamp] = self.now_us.into();
        }
        // An error ends only the parser.
        let _ = frame.parse(program, bytes);
    }

    /// Returns the port that the frame goes to.
    fn ingress(&mut self) -> u128 {
        self.run(|program| &program.ingress);
        self.frame.fields[self.program.standard.egress_spec]
    }

    fn egress(&mut self, port: u128, bytes: &[u8]) -> Option<(u16, Vec<u8>)> {
        let standard = self.program.standard;
        let fields = &mut self.frame.fields;
        let (depth, time_us) = self.queue;
        fields[standard.egress_port] = port;
        fields[standard.egress_spec] = port;
        fields[standard.queue_depth] = depth.into();
        fields[standard.queue_time] = time_us.into();
        fields[standard.egress_timestamp] = (self.now_us + u64::from(time_us)).into();
        self.run(|program| &program.egress);
        let is_dropped = self.frame.fields[standard.egress_spec] == DROP_PORT;
        (!is_dropped).then(|| (port as u16, self.frame.deparse(&self.program, bytes)))
    }

    fn kept(&self, list: u128) -> Vec<(usize, u128)> {
        let list = self.program.lists[&list].iter();
        list.map(|at| (*at, self.frame.fields[*at])).collect()
    }

    /// The clone of a frame, if there is one and its session has a port.
    fn cloned(&mut self, of: &OnItsWay, instance_type: u128) -> Option<OnItsWay> {
        let (session, list) = self.frame.clone.take()?;
        Some(OnItsWay {
            came_by: of.came_by,
            to: Some(*self.sessions.get(&session)?),
            bytes: of.bytes.clone(),
            kept: self.kept(list),
            instance_type,
        })
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
                Primitive::Recirculate(list) => self.recirculate = Some(value(list)),
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
        assert!(out.len() <= bytes.len() + MOST_GROWTH_BYTES, "bmv2 aborts");
        out.truncate(self.truncated.unwrap_or(usize::MAX));
        out
    }
}

/// CRC32 as in Ethernet and bmv2, computed bit by bit.
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
        // What has not arrived by now never will.
        Ok(!(wait && is_silent))
    }
}
