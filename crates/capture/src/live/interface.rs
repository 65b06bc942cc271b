// SPDX-License-Identifier: Apache-2.0
//! Captures packets from one interface.

use std::ffi::{CString, c_int};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use turboflow_packet::{Frame, LinkType};

use super::block::{self, FrameFormat};
use super::ring::{Ring, RingSize};
use super::socket::{self, KernelCounts, PacketSocket};
use super::{InterfaceError, Offload, fanout, names, offloads};
use crate::batch::Batch;
use crate::filter::Program;

/// `ARPHRD_RAWIP`: bare IP packets, used by mobile network cards.
const ARPHRD_RAWIP: u16 = 519;
/// Bytes reserved before a frame, into which its VLAN tag can be inserted.
const TAG_ROOM_BYTES: c_int = 4;

/// How an interface is captured.
#[derive(Clone, Debug, Default)]
pub struct InterfaceConfig {
    /// Size of the ring. Default: 64 MiB.
    pub ring: RingSize,
    /// Maximum bytes to capture of each packet; `None` captures all.
    pub snap_length_bytes: Option<u32>,
    /// Whether to capture only frames for this host, instead of using promiscuous mode.
    pub only_own_frames: bool,
    /// Whether to leave out frames that this host sends (Linux 4.20; ignored before).
    pub only_incoming: bool,
    /// How long the kernel keeps packets in a block that is not full, in milliseconds, within the
    /// precision of its timers. `None`: the default, 20 ms.
    pub latency_ms: Option<u32>,
    /// The kernel's packet filter. Packets that it rejects are not counted.
    pub filter: Option<Program>,
}

/// Packet counters of an interface. At the end, `seen = delivered + copies + dropped`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InterfaceCounters {
    /// Packets that passed the filter, including dropped ones, as counted by the kernel.
    pub seen: u64,
    /// Packets dropped because the ring was full, as counted by the kernel.
    pub dropped: u64,
    /// Packets delivered as frames.
    pub delivered: u64,
    /// Bytes of delivered packets on the wire.
    pub delivered_bytes: u64,
    /// Duplicates of loopback packets, which are skipped.
    pub copies: u64,
    /// Delivered packets that the kernel reports as merged, or that are too long for the wire.
    pub merged: u64,
}

impl std::ops::AddAssign for InterfaceCounters {
    /// Adds the counters of another ring of the interface.
    fn add_assign(&mut self, other: Self) {
        self.seen += other.seen;
        self.dropped += other.dropped;
        self.delivered += other.delivered;
        self.delivered_bytes += other.delivered_bytes;
        self.copies += other.copies;
        self.merged += other.merged;
    }
}

/// The state of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It is down. Packets arrive again when it is up.
    Down,
    /// No interface has this index any more.
    Gone,
    /// It is up.
    Up,
}

impl State {
    /// Whether the interface can never deliver packets again.
    #[must_use]
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Gone)
    }

    /// An interface that does not answer is being removed and counts as down.
    fn up_or_down(is_up: io::Result<bool>) -> Self {
        match is_up {
            Ok(true) => Self::Up,
            _ => Self::Down,
        }
    }
}

/// Queries the state of interfaces that are not opened here, but metered by a remote engine.
#[derive(Debug, Default)]
pub struct States {
    /// Kept for all queries, because creating a socket takes longer than a query.
    socket: Option<OwnedFd>,
}

impl States {
    /// The state of the interface with that index, whatever its current name is.
    ///
    /// # Errors
    /// If the kernel does not provide a socket for the query.
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
    /// The name under which it was opened.
    name: String,
    /// Its current name.
    kernel_name: CString,
    index: c_int,
    format: FrameFormat,
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
            .field("link_type", &self.format.link_type)
            .field("state", &self.state)
            .field("counters", &self.counters)
            .finish_non_exhaustive()
    }
}

impl Interface {
    /// Starts capturing.
    ///
    /// # Errors
    /// If there is no such interface, permission is denied, or TurboFlow cannot parse its frames.
    pub fn open(name: &str, config: &InterfaceConfig) -> Result<Self, InterfaceError> {
        Self::open_filtered(name, config, filter(config).as_ref())
    }

    /// Starts capturing with several rings, one per reader. Every packet is in one ring, and all
    /// packets between two IP addresses are in the same ring. Drop all of them together: otherwise
    /// the remaining rings get the packets of the dropped ones.
    ///
    /// # Errors
    /// Those of [`Self::open`], and if the kernel cannot distribute packets.
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
            // No packet enters until all rings exist.
            let nothing = Program::take_nothing();
            let interface = Self::open_filtered(name, config, Some(&nothing))?;
            group = Some(interface.socket.join(group).map_err(io(
                "cannot be shared by several `source.readers` (kernels older than 6.13 want it up at the start)",
            ))?);
            interfaces.push(interface);
        }
        if let Some(first) = interfaces.first() {
            let program = fanout::program(rings, first.format.link_type);
            let dealt = first.socket.set_fanout_program(&program);
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
        let format = frame_format(name, &kernel_name, index, &socket)?;
        let version = libc::tpacket_versions::TPACKET_V3 as c_int;
        socket
            .set(libc::PACKET_VERSION, version)
            .map_err(io("no ring of version 3 (Linux 3.2 or newer)"))?;
        // Without this option there may or may not be room for the tag; with it there always is.
        let _ = socket.set(libc::PACKET_RESERVE, TAG_ROOM_BYTES);
        let ring = Ring::new(&socket, config.ring, config.latency_ms).map_err(|source| {
            InterfaceError::Ring {
                name: name.to_owned(),
                size_bytes: config.ring.bytes(),
                source,
            }
        })?;
        if format.is_loopback || config.only_incoming {
            // Kernels before 4.20 lack this option. Then copies are skipped when the block is read.
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
            format,
            socket,
            ring,
            counters: InterfaceCounters::default(),
            last_ns: 0,
            state: State::Up,
            frames: Vec::new(),
        };
        // Binding to an interface that is down leaves an error at the socket.
        interface.look();
        Ok(interface)
    }

    /// The frames of the next block that the kernel has completed, if any. The previous block is
    /// returned to the kernel. Blocks without frames are skipped.
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
        let counts = block::frames(block, self.format, batch.frames_mut());
        self.counters.delivered += counts.packets;
        self.counters.delivered_bytes += counts.bytes;
        self.counters.copies += counts.copies;
        self.counters.merged += counts.merged;
        self.last_ns = counts.last_ns;
        Some(batch)
    }

    /// Time of the first packet in the next completed block.
    #[must_use]
    pub fn next_ns(&self) -> Option<u64> {
        self.ring.peek().map(|header| header.first_ns)
    }

    /// Largest timestamp in the last batch.
    #[must_use]
    pub const fn last_ns(&self) -> u64 {
        self.last_ns
    }

    /// Whether all packets that the kernel counted were delivered or dropped, so that none is left
    /// in the ring, including the block that the kernel is filling.
    ///
    /// # Errors
    /// If the kernel does not answer.
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

    /// The counters, with the kernel's current counts.
    ///
    /// # Errors
    /// If the kernel does not answer.
    pub fn counters(&mut self) -> io::Result<InterfaceCounters> {
        let KernelCounts { packets, dropped } = self.socket.take_counts()?;
        self.counters.seen += packets;
        self.counters.dropped += dropped;
        Ok(self.counters)
    }

    /// Packets dropped by the kernel, as of the last query.
    #[must_use]
    pub const fn dropped(&self) -> u64 {
        self.counters.dropped
    }

    /// Lets no more packets into the ring. Those in it can still be read.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn close_intake(&self) -> io::Result<()> {
        self.socket.attach(&Program::take_nothing())
    }

    /// Updates and returns the state of the interface, whatever its current name is.
    pub fn look(&mut self) -> State {
        if self.state == State::Gone {
            return State::Gone;
        }
        let _ = self.socket.take_error();
        // A renamed interface keeps its index, and another interface may have taken its name.
        self.state = match self.socket.name_of(self.index) {
            None => State::Gone,
            Some(name) => {
                self.kernel_name = name;
                State::up_or_down(self.socket.is_up(&self.kernel_name))
            }
        };
        self.state
    }

    /// The state at the last update.
    #[must_use]
    pub const fn state(&self) -> State {
        self.state
    }

    /// Active offloads by which one captured packet may be several on the wire. Empty for loopback,
    /// which has no wire.
    #[must_use]
    pub fn offloads(&self) -> Vec<Offload> {
        if self.format.is_loopback {
            return Vec::new();
        }
        offloads::active(&self.socket, &self.kernel_name)
    }

    /// The name in messages and counters: the one under which it was opened.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The link-layer header type of its frames.
    #[must_use]
    pub const fn link_type(&self) -> LinkType {
        self.format.link_type
    }

    /// Size of its ring in bytes.
    #[must_use]
    pub const fn ring_bytes(&self) -> usize {
        self.ring.size().bytes()
    }

    /// The link-layer header type of an interface that is not open yet.
    ///
    /// # Errors
    /// See [`Interface::open`].
    pub fn link_type_of(name: &str) -> Result<LinkType, InterfaceError> {
        let (kernel_name, index) = find(name)?;
        let socket = packet_socket(name)?;
        Ok(frame_format(name, &kernel_name, index, &socket)?.link_type)
    }

    /// Checks that a name can be that of an interface.
    ///
    /// # Errors
    /// If the name stands for all interfaces.
    pub fn check_name(name: &str) -> Result<(), InterfaceError> {
        if name == "any" {
            let present = socket::names().join(", ");
            return Err(InterfaceError::Any { present });
        }
        Ok(())
    }

    /// Active offloads that merge received packets before they are captured or metered.
    ///
    /// # Errors
    /// See [`Interface::open`].
    pub fn merges_received(name: &str) -> Result<Vec<Offload>, InterfaceError> {
        let (kernel_name, _) = find(name)?;
        let mut active = offloads::active(&packet_socket(name)?, &kernel_name);
        active.retain(|offload| offload.merges_received());
        Ok(active)
    }

    /// The longest Ethernet frame that an interface can receive, including two tags, which do not
    /// count towards its MTU.
    ///
    /// # Errors
    /// See [`Interface::open`].
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

    /// Whether the driver removes VLAN tags from received frames (`ethtool -K IFACE rxvlan`). A
    /// capture inserts them again; a program that sees frames earlier cannot.
    ///
    /// # Errors
    /// See [`Interface::open`].
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
    names::find(name).ok_or_else(|| InterfaceError::NotFound {
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

/// The kernel filter: the configured one, or one that accepts every packet up to the snap length.
fn filter(config: &InterfaceConfig) -> Option<Program> {
    match (&config.filter, config.snap_length_bytes) {
        (Some(program), None) => Some(program.clone()),
        (Some(program), Some(bytes)) => Some(program.cut_to(bytes)),
        (None, Some(bytes)) => Some(Program::take_everything().cut_to(bytes)),
        (None, None) => None,
    }
}

fn frame_format(
    name: &str,
    kernel_name: &CString,
    index: c_int,
    socket: &PacketSocket,
) -> Result<FrameFormat, InterfaceError> {
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
    Ok(FrameFormat {
        link_type,
        interface: index.cast_unsigned(),
        is_loopback: number == libc::ARPHRD_LOOPBACK,
    })
}

/// Waits until one of the interfaces has packets, at most `timeout`. Updates the state of those for
/// which the kernel reports an event. Does not wait for interfaces that are gone.
///
/// # Errors
/// If waiting fails.
pub fn wait(interfaces: &mut [Interface], timeout: Duration) -> io::Result<()> {
    // The kernel considers a block that this program holds as readable.
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
