// SPDX-License-Identifier: Apache-2.0
//! One interface that is captured.

use std::ffi::{CString, c_int};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use turboflow_packet::{Frame, LinkType};

use super::block::{self, Reading};
use super::ring::{Ring, RingSize};
use super::socket::{self, KernelCounts, PacketSocket};
use super::{InterfaceError, Offload, fanout, offloads};
use crate::batch::Batch;
use crate::filter::Program;

/// `ARPHRD_RAWIP`: bare IP packets, of mobile network cards.
const ARPHRD_RAWIP: u16 = 519;
/// Bytes in front of a frame for a VLAN tag to go back into.
const TAG_ROOM_BYTES: c_int = 4;

/// How an interface is captured.
#[derive(Clone, Debug, Default)]
pub struct InterfaceConfig {
    /// The ring. Default: 64 MiB.
    pub ring: RingSize,
    /// Bytes of a packet that are kept; `None` keeps all.
    pub snap_length_bytes: Option<u32>,
    /// Whether only frames for this host are wanted, not all that the interface sees.
    pub only_own_frames: bool,
    /// What the kernel lets through. What it leaves out is not counted.
    pub filter: Option<Program>,
}

/// Packets of an interface so far: `seen = delivered + copies + dropped`, once it is empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InterfaceCounters {
    /// Packets that passed the filter, as the kernel counts them, those dropped included.
    pub seen: u64,
    /// Packets for which the ring had no room, as the kernel counts them.
    pub dropped: u64,
    /// Packets handed out as frames.
    pub delivered: u64,
    /// Their bytes on the wire.
    pub delivered_bytes: u64,
    /// Second sights of a packet on loopback, passed over.
    pub copies: u64,
    /// Delivered packets that the kernel says it had merged from several, or that are too long for the wire.
    pub merged: u64,
}

impl std::ops::AddAssign for InterfaceCounters {
    /// Adds those of another ring of the interface.
    fn add_assign(&mut self, other: Self) {
        self.seen += other.seen;
        self.dropped += other.dropped;
        self.delivered += other.delivered;
        self.delivered_bytes += other.delivered_bytes;
        self.copies += other.copies;
        self.merged += other.merged;
    }
}

/// What an interface is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It is down; its packets come again when it is up.
    Down,
    /// There is no interface of its number any more.
    Gone,
    /// It is up.
    Up,
}

impl State {
    /// Whether nothing comes from it any more, whatever happens.
    #[must_use]
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Gone)
    }

    /// One that does not answer is on its way out.
    fn up_or_down(is_up: io::Result<bool>) -> Self {
        match is_up {
            Ok(true) => Self::Up,
            _ => Self::Down,
        }
    }
}

/// Tells what interfaces are doing that somebody else meters.
#[derive(Debug, Default)]
pub struct States {
    /// For all questions: making a socket takes longer than asking.
    socket: Option<OwnedFd>,
}

impl States {
    /// What the interface of that number is doing, whatever it is called by now: up, down or gone.
    ///
    /// # Errors
    /// When the kernel gives no socket to ask with.
    pub fn of(&mut self, index: u32) -> io::Result<State> {
        let socket = match self.socket.take() {
            Some(socket) => socket,
            None => socket::control_socket()?,
        };
        let socket = self.socket.insert(socket);
        let name = socket::name_of(socket, index.cast_signed());
        Ok(name.map_or(State::Gone, |name| {
            State::up_or_down(socket::is_up(socket, &name))
        }))
    }
}

/// An interface and its ring.
pub struct Interface {
    /// The name it was opened under.
    name: String,
    /// The name it has now.
    kernel_name: CString,
    index: c_int,
    reading: Reading,
    socket: PacketSocket,
    ring: Ring,
    counters: InterfaceCounters,
    last_ns: u64,
    state: State,
    frames: Vec<Frame<'static>>,
}

impl std::fmt::Debug for Interface {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Interface")
            .field("name", &self.name)
            .field("link_type", &self.reading.link_type)
            .field("state", &self.state)
            .field("counters", &self.counters)
            .finish_non_exhaustive()
    }
}

impl Interface {
    /// Starts capturing.
    ///
    /// # Errors
    /// Where there is no such interface, it may not be captured, or its frames are of a kind that
    /// TurboFlow does not read.
    pub fn open(name: &str, config: &InterfaceConfig) -> Result<Self, InterfaceError> {
        Self::open_filtered(name, config, filter(config).as_ref())
    }

    /// Starts capturing with several rings, each for a reader of its own: every packet is in one of
    /// them, and all packets of a pair of IP addresses in the same. They must be dropped together:
    /// those that are left would get the packets of one that is gone.
    ///
    /// # Errors
    /// As [`Self::open`], and where the kernel does not deal packets out.
    pub fn open_group(
        name: &str,
        config: &InterfaceConfig,
        rings: usize,
    ) -> Result<Vec<Self>, InterfaceError> {
        if rings == 1 {
            return Ok(vec![Self::open(name, config)?]);
        }
        let io = |what| {
            move |source| InterfaceError::Io {
                name: name.to_owned(),
                what,
                source,
            }
        };
        let (mut interfaces, mut group) = (Vec::new(), None);
        for _ in 0..rings {
            // Nothing is let in before all are there.
            let nothing = Program::take_nothing();
            let interface = Self::open_filtered(name, config, Some(&nothing))?;
            group = Some(interface.socket.join(group).map_err(io(
                "cannot be shared by several `source.readers` (kernels older than 6.13 want it up at the start)",
            ))?);
            interfaces.push(interface);
        }
        if let Some(first) = interfaces.first() {
            let program = fanout::program(rings, first.reading.link_type);
            let dealt = first.socket.deal_by(&program);
            dealt.map_err(io(
                "its packets cannot be dealt out to several `source.readers`",
            ))?;
        }
        let wanted = filter(config).unwrap_or_else(Program::take_everything);
        for interface in &interfaces {
            let opened = interface.socket.attach(&wanted);
            opened.map_err(io("filter refused"))?;
        }
        Ok(interfaces)
    }

    fn open_filtered(
        name: &str,
        config: &InterfaceConfig,
        filter: Option<&Program>,
    ) -> Result<Self, InterfaceError> {
        let (kernel_name, index) = find(name)?;
        let io = |what| {
            move |source| InterfaceError::Io {
                name: name.to_owned(),
                what,
                source,
            }
        };
        let socket = packet_socket(name)?;
        let reading = reading(name, &kernel_name, index, &socket)?;
        let version = libc::tpacket_versions::TPACKET_V3 as c_int;
        socket
            .set(libc::PACKET_VERSION, version)
            .map_err(io("no ring of version 3 (Linux 3.2 or newer)"))?;
        // Without it there is room by chance, with it for sure.
        let _ = socket.set(libc::PACKET_RESERVE, TAG_ROOM_BYTES);
        let ring = Ring::new(&socket, config.ring).map_err(|source| InterfaceError::Ring {
            name: name.to_owned(),
            size_bytes: config.ring.bytes(),
            source,
        })?;
        if reading.is_loopback {
            // Kernels before 4.20 do not know it; then they are passed over here.
            let _ = socket.set(libc::PACKET_IGNORE_OUTGOING, 1 as c_int);
        }
        if let Some(program) = filter {
            socket.attach(program).map_err(io("filter refused"))?;
        }
        socket.bind(index).map_err(io("cannot be bound"))?;
        if !config.only_own_frames {
            socket
                .make_promiscuous(index)
                .map_err(io("not promiscuous (try `source.promiscuous=false`)"))?;
        }
        let mut interface = Self {
            name: name.to_owned(),
            kernel_name,
            index,
            reading,
            socket,
            ring,
            counters: InterfaceCounters::default(),
            last_ns: 0,
            state: State::Up,
            frames: Vec::new(),
        };
        // One that is down has left an error at the socket.
        interface.look();
        Ok(interface)
    }

    /// The frames of the next block, if the kernel has handed one over. The block before goes back
    /// to the kernel. Blocks without a frame are passed over.
    pub fn next_batch(&mut self) -> Option<Batch<'_>> {
        while let Some(header) = self.ring.peek() {
            if header.packets > 0 {
                return self.batch(header.packets as usize);
            }
            let _ = self.ring.take();
        }
        self.ring.give_back();
        None
    }

    fn batch(&mut self, packets: usize) -> Option<Batch<'_>> {
        let block = self.ring.take()?;
        let mut batch = Batch::take(&mut self.frames, packets);
        let counts = block::frames(block, self.reading, batch.frames_mut());
        self.counters.delivered += counts.packets;
        self.counters.delivered_bytes += counts.bytes;
        self.counters.copies += counts.copies;
        self.counters.merged += counts.merged;
        self.last_ns = counts.last_ns;
        Some(batch)
    }

    /// Time of the first packet that waits in a block handed over by the kernel.
    #[must_use]
    pub fn next_ns(&self) -> Option<u64> {
        self.ring.peek().map(|header| header.first_ns)
    }

    /// Largest time of a packet in the last batch.
    #[must_use]
    pub const fn last_ns(&self) -> u64 {
        self.last_ns
    }

    /// Whether every packet that the kernel has counted was delivered or dropped: none waits in
    /// the ring, not even in the block that the kernel is filling.
    ///
    /// # Errors
    /// When the kernel does not tell.
    pub fn is_empty(&mut self) -> io::Result<bool> {
        let InterfaceCounters {
            seen,
            dropped,
            delivered,
            copies,
            ..
        } = self.counters()?;
        Ok(seen == delivered + copies + dropped)
    }

    /// What was delivered and what was not, with the kernel's counts of this moment.
    ///
    /// # Errors
    /// When the kernel does not tell.
    pub fn counters(&mut self) -> io::Result<InterfaceCounters> {
        let KernelCounts { packets, dropped } = self.socket.take_counts()?;
        self.counters.seen += packets;
        self.counters.dropped += dropped;
        Ok(self.counters)
    }

    /// Packets that the kernel dropped, as of when it was asked last.
    #[must_use]
    pub const fn dropped(&self) -> u64 {
        self.counters.dropped
    }

    /// Lets no further packet in; those in the ring can still be read.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn close_intake(&self) -> io::Result<()> {
        self.socket.attach(&Program::take_nothing())
    }

    /// Looks whether the interface is up, whatever it is called by now.
    pub fn look(&mut self) -> State {
        if self.state == State::Gone {
            return State::Gone;
        }
        let _ = self.socket.take_error();
        // The number stays when somebody renames it, and another may have got its name.
        self.state = match self.socket.name_of(self.index) {
            None => State::Gone,
            Some(name) => {
                self.kernel_name = name;
                State::up_or_down(self.socket.is_up(&self.kernel_name))
            }
        };
        self.state
    }

    /// What it was doing when somebody looked last.
    #[must_use]
    pub const fn state(&self) -> State {
        self.state
    }

    /// Offloads with which one packet here may be several on the wire. Loopback has no wire.
    #[must_use]
    pub fn offloads(&self) -> Vec<Offload> {
        if self.reading.is_loopback {
            return Vec::new();
        }
        offloads::active(&self.socket, &self.kernel_name)
    }

    /// What messages and counters call it: the name it was opened under.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How its frames begin.
    #[must_use]
    pub const fn link_type(&self) -> LinkType {
        self.reading.link_type
    }

    /// The memory that its ring takes.
    #[must_use]
    pub const fn ring_bytes(&self) -> usize {
        self.ring.size().bytes()
    }

    /// How frames of an interface begin, before it is opened.
    ///
    /// # Errors
    /// As [`Interface::open`].
    pub fn link_type_of(name: &str) -> Result<LinkType, InterfaceError> {
        let (kernel_name, index) = find(name)?;
        let socket = packet_socket(name)?;
        Ok(reading(name, &kernel_name, index, &socket)?.link_type)
    }

    /// Whether there can be an interface of that name.
    ///
    /// # Errors
    /// Where the name stands for all of them.
    pub fn check_name(name: &str) -> Result<(), InterfaceError> {
        if name == "any" {
            let present = socket::names().join(", ");
            return Err(InterfaceError::Any { present });
        }
        Ok(())
    }

    /// What merges packets that come in by an interface, before they are captured or metered.
    ///
    /// # Errors
    /// As [`Interface::open`].
    pub fn merges_received(name: &str) -> Result<Vec<Offload>, InterfaceError> {
        let (kernel_name, _) = find(name)?;
        let mut active = offloads::active(&packet_socket(name)?, &kernel_name);
        active.retain(|offload| offload.merges_received());
        Ok(active)
    }

    /// How long an Ethernet frame may be that comes in by an interface: with two tags, which its MTU does not count.
    ///
    /// # Errors
    /// As [`Interface::open`].
    pub fn longest_frame_bytes(name: &str) -> Result<u32, InterfaceError> {
        const HEADER_AND_TAGS_BYTES: u32 = 14 + 2 * 4;
        let (kernel_name, _) = find(name)?;
        let mtu_bytes = packet_socket(name)?.mtu_bytes(&kernel_name);
        let mtu_bytes = mtu_bytes.map_err(|source| InterfaceError::Io {
            name: name.to_owned(),
            what: "no MTU",
            source,
        })?;
        Ok(mtu_bytes.saturating_add(HEADER_AND_TAGS_BYTES))
    }

    /// Whether the driver of an interface takes VLAN tags out of frames that come in (`ethtool -K IFACE rxvlan`). A capture puts them
    /// back; who sees frames earlier cannot.
    ///
    /// # Errors
    /// As [`Interface::open`].
    pub fn takes_tags_out(name: &str) -> Result<bool, InterfaceError> {
        let (kernel_name, _) = find(name)?;
        Ok(offloads::takes_tags_out(
            &packet_socket(name)?,
            &kernel_name,
        ))
    }
}

pub(super) fn find(name: &str) -> Result<(CString, c_int), InterfaceError> {
    Interface::check_name(name)?;
    let kernel_name = socket::kernel_name(name);
    let found = kernel_name.and_then(|name| socket::index_of(&name).map(|index| (name, index)));
    found.ok_or_else(|| InterfaceError::NotFound {
        name: name.to_owned(),
        present: socket::names().join(", "),
    })
}

pub(super) fn packet_socket(name: &str) -> Result<PacketSocket, InterfaceError> {
    let name = name.to_owned();
    PacketSocket::open().map_err(|source| match source.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => InterfaceError::PermissionDenied { name },
        _ => InterfaceError::Io {
            name,
            what: "no packet socket",
            source,
        },
    })
}

/// What the kernel is to let through: the filter asked for, or everything up to the snap length.
fn filter(config: &InterfaceConfig) -> Option<Program> {
    match (&config.filter, config.snap_length_bytes) {
        (Some(program), None) => Some(program.clone()),
        (Some(program), Some(bytes)) => Some(program.cut_to(bytes)),
        (None, Some(bytes)) => Some(Program::take_everything().cut_to(bytes)),
        (None, None) => None,
    }
}

fn reading(
    name: &str,
    kernel_name: &CString,
    index: c_int,
    socket: &PacketSocket,
) -> Result<Reading, InterfaceError> {
    let number = socket
        .hardware_type(kernel_name)
        .map_err(|source| InterfaceError::Io {
            name: name.to_owned(),
            what: "no hardware type",
            source,
        })?;
    let link_type = match number {
        libc::ARPHRD_ETHER | libc::ARPHRD_LOOPBACK => LinkType::Ethernet,
        ARPHRD_RAWIP
        | libc::ARPHRD_NONE
        | libc::ARPHRD_SIT
        | libc::ARPHRD_TUNNEL
        | libc::ARPHRD_TUNNEL6 => LinkType::Raw,
        _ => {
            return Err(InterfaceError::UnsupportedLinkType {
                name: name.to_owned(),
                number,
            });
        }
    };
    Ok(Reading {
        link_type,
        interface: index.cast_unsigned(),
        is_loopback: number == libc::ARPHRD_LOOPBACK,
    })
}

/// Waits until one of the interfaces has packets, at most so long, and looks at those of which the
/// kernel says that something has happened. Those that are gone are not waited for.
///
/// # Errors
/// When waiting itself fails.
pub fn wait(interfaces: &mut [Interface], timeout: Duration) -> io::Result<()> {
    // A block that this program holds looks to the kernel like one that is to be read.
    interfaces
        .iter_mut()
        .for_each(|interface| interface.ring.give_back());
    let entry = |interface: &Interface| libc::pollfd {
        fd: match interface.state {
            State::Gone => -1,
            State::Down | State::Up => interface.socket.as_raw_fd(),
        },
        events: libc::POLLIN,
        revents: 0,
    };
    let mut entries: Vec<_> = interfaces.iter().map(entry).collect();
    let timeout_ms = c_int::try_from(timeout.as_millis()).unwrap_or(c_int::MAX);
    socket::wait(&mut entries, timeout_ms)?;
    for (interface, entry) in interfaces.iter_mut().zip(&entries) {
        if entry.revents & libc::POLLERR != 0 || interface.state == State::Down {
            interface.look();
        }
    }
    Ok(())
}
