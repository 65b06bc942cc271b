// SPDX-License-Identifier: Apache-2.0
//! System calls of a packet socket, and nothing else.

use std::ffi::{CStr, CString, c_char, c_int};
use std::io::{self, IoSlice};
use std::mem;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::{self, NonNull};

use crate::filter::{Instruction, Program};

/// A raw packet socket. It gets no packet before it is bound.
#[derive(Debug)]
pub(crate) struct PacketSocket(OwnedFd);

/// Frames handed over in one call.
pub(crate) const MESSAGES_AT_ONCE: usize = 64;

/// What the kernel has counted since it was asked last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct KernelCounts {
    /// Packets that passed the filter, those dropped included.
    pub(crate) packets: u64,
    /// Those for which there was no block.
    pub(crate) dropped: u64,
}

fn checked(outcome: c_int) -> io::Result<c_int> {
    if outcome < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(outcome)
    }
}

const fn length_of<T>() -> libc::socklen_t {
    mem::size_of::<T>() as libc::socklen_t
}

impl PacketSocket {
    /// A socket of no protocol.
    pub(crate) fn open() -> io::Result<Self> {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: no memory is passed.
        let descriptor = checked(unsafe { libc::socket(libc::AF_PACKET, kind, 0) })?;
        // SAFETY: the descriptor was just made and is nobody else's.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(descriptor) }))
    }

    fn set_at<T: Copy>(&self, level: c_int, option: c_int, value: T) -> io::Result<()> {
        let (value, length) = (ptr::from_ref(&value).cast(), length_of::<T>());
        // SAFETY: the kernel reads as many bytes as the value has.
        let outcome = unsafe { libc::setsockopt(self.0.as_raw_fd(), level, option, value, length) };
        checked(outcome).map(drop)
    }

    /// Sets an option of packet sockets.
    pub(crate) fn set<T: Copy>(&self, option: c_int, value: T) -> io::Result<()> {
        self.set_at(libc::SOL_PACKET, option, value)
    }

    /// # Safety
    /// Any bytes must make a `T`.
    unsafe fn get<T: Copy + Default>(&self, level: c_int, option: c_int) -> io::Result<T> {
        let mut value = T::default();
        let mut length = length_of::<T>();
        let at = ptr::from_mut(&mut value).cast();
        // SAFETY: the kernel writes at most as many bytes as the value has.
        let outcome =
            unsafe { libc::getsockopt(self.0.as_raw_fd(), level, option, at, &raw mut length) };
        checked(outcome)?;
        Ok(value)
    }

    /// What the kernel counted since the last call: asking sets its counters to zero.
    pub(crate) fn take_counts(&self) -> io::Result<KernelCounts> {
        // SAFETY: three numbers; the third, how often the ring was full, tells nothing that the
        // drops do not.
        let [packets, dropped, _] =
            unsafe { self.get::<[u32; 3]>(libc::SOL_PACKET, libc::PACKET_STATISTICS)? };
        Ok(KernelCounts {
            packets: u64::from(packets),
            dropped: u64::from(dropped),
        })
    }

    /// The error that waits at the socket, if any; asking takes it away.
    pub(crate) fn take_error(&self) -> Option<io::Error> {
        // SAFETY: one number.
        match unsafe { self.get::<c_int>(libc::SOL_SOCKET, libc::SO_ERROR) } {
            Ok(0) => None,
            Ok(number) => Some(io::Error::from_raw_os_error(number)),
            Err(error) => Some(error),
        }
    }

    /// Leaves out, in the kernel, what the program does not take.
    pub(crate) fn attach(&self, program: &Program) -> io::Result<()> {
        self.set_program(libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, program)
    }

    fn set_program(&self, level: c_int, option: c_int, program: &Program) -> io::Result<()> {
        let mut instructions: Vec<libc::sock_filter> =
            program.instructions().iter().map(kernel_form).collect();
        let program = libc::sock_fprog {
            len: instructions.len() as u16,
            filter: instructions.as_mut_ptr(),
        };
        self.set_at(level, option, program)
    }

    /// Shares the packets of its interface with the other sockets of a group, or founds one; gives
    /// the group. Until there is a program all packets go to the founder.
    pub(crate) fn join(&self, group: Option<u16>) -> io::Result<u16> {
        let kind = libc::PACKET_FANOUT_CBPF;
        let (id, kind) = match group {
            Some(id) => (id, kind),
            None => (0, kind | libc::PACKET_FANOUT_FLAG_UNIQUEID),
        };
        self.set(libc::PACKET_FANOUT, u32::from(id) | (kind << 16))?;
        // SAFETY: one number.
        let joined = unsafe { self.get::<u32>(libc::SOL_PACKET, libc::PACKET_FANOUT)? };
        Ok(joined as u16)
    }

    /// Lets a program say which socket of the group gets a packet, by its number in order of joining.
    pub(crate) fn deal_by(&self, program: &Program) -> io::Result<()> {
        self.set_program(libc::SOL_PACKET, libc::PACKET_FANOUT_DATA, program)
    }

    /// Starts the packets of an interface.
    pub(crate) fn bind(&self, interface_index: c_int) -> io::Result<()> {
        self.bind_for(interface_index, libc::ETH_P_ALL as u16)
    }

    /// Sends to an interface from now on, and gets no packets of it.
    pub(crate) fn bind_to_send(&self, interface_index: c_int) -> io::Result<()> {
        self.bind_for(interface_index, 0)
    }

    fn bind_for(&self, interface_index: c_int, protocol: u16) -> io::Result<()> {
        let address = libc::sockaddr_ll {
            sll_family: libc::AF_PACKET as u16,
            sll_protocol: protocol.to_be(),
            sll_ifindex: interface_index,
            sll_hatype: 0,
            sll_pkttype: 0,
            sll_halen: 0,
            sll_addr: [0; 8],
        };
        let length = length_of::<libc::sockaddr_ll>();
        // SAFETY: the kernel reads the address, whose length is given.
        let outcome =
            unsafe { libc::bind(self.0.as_raw_fd(), ptr::from_ref(&address).cast(), length) };
        checked(outcome).map(drop)
    }

    /// Hands frames to the interface; says how many of them, from the first on, it took.
    pub(crate) fn send(&self, frames: &[IoSlice<'_>]) -> io::Result<usize> {
        // SAFETY: a header of zeros is one without name, buffers and control data.
        let mut messages: [libc::mmsghdr; MESSAGES_AT_ONCE] = unsafe { mem::zeroed() };
        let count = frames.len().min(MESSAGES_AT_ONCE);
        for (message, frame) in messages.iter_mut().zip(frames) {
            // A slice to write from is the kernel's `iovec`, as its documentation promises.
            message.msg_hdr.msg_iov = ptr::from_ref(frame).cast_mut().cast();
            message.msg_hdr.msg_iovlen = 1;
        }
        let descriptor = self.0.as_raw_fd();
        // SAFETY: the kernel reads as many headers as are given, writes their lengths, and only
        // reads the frames, which live in the caller.
        let sent =
            checked(unsafe { libc::sendmmsg(descriptor, messages.as_mut_ptr(), count as u32, 0) })?;
        Ok(sent as usize)
    }

    /// Asks the interface for frames to other stations too, for as long as the socket lives.
    pub(crate) fn make_promiscuous(&self, interface_index: c_int) -> io::Result<()> {
        let membership = libc::packet_mreq {
            mr_ifindex: interface_index,
            mr_type: libc::PACKET_MR_PROMISC as u16,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        self.set(libc::PACKET_ADD_MEMBERSHIP, membership)
    }

    /// Maps the socket's ring.
    pub(crate) fn map(&self, bytes: usize) -> io::Result<NonNull<u8>> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let descriptor = self.0.as_raw_fd();
        // SAFETY: a new mapping at an address that the kernel chooses touches no other memory.
        let memory = unsafe {
            libc::mmap(
                ptr::null_mut(),
                bytes,
                protection,
                libc::MAP_SHARED,
                descriptor,
                0,
            )
        };
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        NonNull::new(memory.cast()).ok_or_else(|| io::Error::other("mapped at address 0"))
    }

    fn ask(&self, name: &CStr, request: libc::c_ulong, argument: Union) -> io::Result<Union> {
        ask(&self.0, name, request, argument)
    }

    /// The kernel's number of the kind of interface (ARPHRD).
    pub(crate) fn hardware_type(&self, name: &CStr) -> io::Result<u16> {
        let answer = self.ask(name, libc::SIOCGIFHWADDR as _, Union { ifru_ifindex: 0 })?;
        // SAFETY: this request answers with an address, whose family is the type.
        Ok(unsafe { answer.ifru_hwaddr.sa_family })
    }

    /// The most bytes behind a link header.
    pub(crate) fn mtu_bytes(&self, name: &CStr) -> io::Result<u32> {
        let answer = self.ask(name, libc::SIOCGIFMTU as _, Union { ifru_ifindex: 0 })?;
        // SAFETY: this request answers with a length.
        Ok(unsafe { answer.ifru_mtu }.cast_unsigned())
    }

    /// Whether the interface is up.
    pub(crate) fn is_up(&self, name: &CStr) -> io::Result<bool> {
        is_up(&self.0, name)
    }

    /// What an interface is called now, if there is one of that number.
    pub(crate) fn name_of(&self, index: c_int) -> Option<CString> {
        name_of(&self.0, index)
    }

    /// The answer to a question of ethtool's that is answered by one number.
    pub(crate) fn ethtool(&self, name: &CStr, command: u32) -> io::Result<u32> {
        let mut value = [command, 0];
        let argument = Union {
            ifru_data: value.as_mut_ptr().cast(),
        };
        self.ask(name, libc::SIOCETHTOOL as _, argument)?;
        Ok(value[1])
    }
}

type Union = libc::__c_anonymous_ifr_ifru;

/// A socket that nothing comes from, to ask about interfaces. It needs no right.
pub(crate) fn control_socket() -> io::Result<OwnedFd> {
    let kind = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC;
    // SAFETY: no memory is passed.
    let descriptor = checked(unsafe { libc::socket(libc::AF_INET, kind, 0) })?;
    // SAFETY: the descriptor was just made and is nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// Whether the interface is up.
pub(crate) fn is_up(socket: &OwnedFd, name: &CStr) -> io::Result<bool> {
    let answer = ask(
        socket,
        name,
        libc::SIOCGIFFLAGS as _,
        Union { ifru_ifindex: 0 },
    )?;
    // SAFETY: this request answers with flags.
    let flags = unsafe { answer.ifru_flags };
    Ok(c_int::from(flags) & libc::IFF_UP != 0)
}

fn ask(
    socket: &OwnedFd,
    name: &CStr,
    request: libc::c_ulong,
    argument: Union,
) -> io::Result<Union> {
    let mut question = libc::ifreq {
        ifr_name: [0; libc::IFNAMSIZ],
        ifr_ifru: argument,
    };
    // The last byte stays 0: the kernel would not know a longer name either.
    let bytes = name.to_bytes().iter().take(libc::IFNAMSIZ - 1);
    for (to, from) in question.ifr_name.iter_mut().zip(bytes) {
        *to = from.cast_signed();
    }
    answer(socket, request, question).map(|answer| answer.ifr_ifru)
}

fn answer(
    socket: &OwnedFd,
    request: libc::c_ulong,
    mut question: libc::ifreq,
) -> io::Result<libc::ifreq> {
    // SAFETY: every request that this file makes takes an `ifreq`, and what it points to, if
    // anything, lives in the caller.
    let outcome = unsafe { libc::ioctl(socket.as_raw_fd(), request as _, &raw mut question) };
    checked(outcome)?;
    Ok(question)
}

impl AsRawFd for PacketSocket {
    fn as_raw_fd(&self) -> c_int {
        self.0.as_raw_fd()
    }
}

const fn kernel_form(instruction: &Instruction) -> libc::sock_filter {
    libc::sock_filter {
        code: instruction.code,
        jt: instruction.jump_true,
        jf: instruction.jump_false,
        k: instruction.k,
    }
}

/// The number of an interface, if there is one of that name.
pub(crate) fn index_of(name: &CStr) -> Option<c_int> {
    // SAFETY: the name ends in a 0.
    match unsafe { libc::if_nametoindex(name.as_ptr()) } {
        0 => None,
        index => Some(index.cast_signed()),
    }
}

/// What an interface is called now, if there is one of that number. By the socket at hand: libc's way makes one for every question.
pub(crate) fn name_of(socket: &OwnedFd, index: c_int) -> Option<CString> {
    let question = libc::ifreq {
        ifr_name: [0; libc::IFNAMSIZ],
        ifr_ifru: Union {
            ifru_ifindex: index,
        },
    };
    let answer = answer(socket, libc::SIOCGIFNAME as _, question).ok()?;
    let bytes = answer.ifr_name.map(c_char::cast_unsigned);
    CStr::from_bytes_until_nul(&bytes).ok().map(CStr::to_owned)
}

/// The names of all interfaces.
pub(crate) fn names() -> Vec<String> {
    let mut names = Vec::new();
    // SAFETY: no memory is passed.
    let list = unsafe { libc::if_nameindex() };
    if list.is_null() {
        return names;
    }
    let mut entry = list;
    // SAFETY: the list ends with an entry without a name; the names before it end in a 0 and live
    // until the list is freed, which nothing here outlives.
    unsafe {
        while !(*entry).if_name.is_null() {
            let name = CStr::from_ptr((*entry).if_name);
            names.push(name.to_string_lossy().into_owned());
            entry = entry.add(1);
        }
        libc::if_freenameindex(list);
    }
    names
}

/// A name as the kernel takes it; `None` where no interface can be called so.
pub(crate) fn kernel_name(name: &str) -> Option<CString> {
    let fits = !name.is_empty() && name.len() < libc::IFNAMSIZ;
    fits.then(|| CString::new(name).ok()).flatten()
}

/// Waits until one of the sockets has a block or an error, at most so long. An interrupted wait is
/// a short one.
pub(crate) fn wait(sockets: &mut [libc::pollfd], timeout_ms: c_int) -> io::Result<()> {
    let count = sockets.len() as libc::nfds_t;
    // SAFETY: the kernel reads and writes as many entries as there are.
    match checked(unsafe { libc::poll(sockets.as_mut_ptr(), count, timeout_ms) }) {
        Err(error) if error.kind() != io::ErrorKind::Interrupted => Err(error),
        _ => Ok(()),
    }
}
