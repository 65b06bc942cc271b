// SPDX-License-Identifier: Apache-2.0
//! System calls on a packet socket.

use std::ffi::{CStr, CString, c_char, c_int};
use std::io::{self, IoSlice};
use std::mem;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::{self, NonNull};

use crate::filter::{Instruction, Program};

/// A raw packet socket. It receives no packets until it is bound.
#[derive(Debug)]
pub(crate) struct PacketSocket(OwnedFd);

/// The most frames passed to the kernel in one call.
pub(crate) const MESSAGES_AT_ONCE: usize = 64;

/// The kernel's counts since the last query.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct KernelCounts {
    /// Packets that passed the filter, including dropped ones.
    pub(crate) packets: u64,
    /// Packets dropped because no block was free.
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
    /// Opens a socket without a protocol.
    pub(crate) fn open() -> io::Result<Self> {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: no memory is passed.
        let descriptor = checked(unsafe { libc::socket(libc::AF_PACKET, kind, 0) })?;
        // SAFETY: the descriptor was just created and has no other owner.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(descriptor) }))
    }

    fn set_at<T: Copy>(&self, level: c_int, option: c_int, value: T) -> io::Result<()> {
        let (value, length) = (ptr::from_ref(&value).cast(), length_of::<T>());
        // SAFETY: the kernel reads as many bytes as the value has.
        let outcome = unsafe { libc::setsockopt(self.0.as_raw_fd(), level, option, value, length) };
        checked(outcome).map(drop)
    }

    /// Sets an option at the packet level.
    pub(crate) fn set<T: Copy>(&self, option: c_int, value: T) -> io::Result<()> {
        self.set_at(libc::SOL_PACKET, option, value)
    }

    /// # Safety
    /// Any bytes must be a valid `T`.
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

    /// The counts since the last call. The kernel resets them on each query.
    pub(crate) fn take_counts(&self) -> io::Result<KernelCounts> {
        // SAFETY: three numbers. The third, how often the ring was full, adds nothing to the number
        // of dropped packets.
        let [packets, dropped, _] =
            unsafe { self.get::<[u32; 3]>(libc::SOL_PACKET, libc::PACKET_STATISTICS)? };
        Ok(KernelCounts {
            packets: u64::from(packets),
            dropped: u64::from(dropped),
        })
    }

    /// Takes the pending error of the socket, if any.
    pub(crate) fn take_error(&self) -> Option<io::Error> {
        // SAFETY: one number.
        match unsafe { self.get::<c_int>(libc::SOL_SOCKET, libc::SO_ERROR) } {
            Ok(0) => None,
            Ok(number) => Some(io::Error::from_raw_os_error(number)),
            Err(error) => Some(error),
        }
    }

    /// Attaches a filter.
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

    /// Joins a fanout group, or founds one, and returns the group. Until it has a program, all
    /// packets go to the founder.
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

    /// Sets the program that selects the socket of a packet, by its number in order of joining.
    pub(crate) fn set_fanout_program(&self, program: &Program) -> io::Result<()> {
        self.set_program(libc::SOL_PACKET, libc::PACKET_FANOUT_DATA, program)
    }

    /// Starts receiving packets of an interface.
    pub(crate) fn bind(&self, interface_index: c_int) -> io::Result<()> {
        self.bind_for(interface_index, libc::ETH_P_ALL as u16)
    }

    /// Binds to an interface for sending only.
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

    /// Passes frames to the interface and returns how many it accepted, counted from the first.
    pub(crate) fn send(&self, frames: &[IoSlice<'_>]) -> io::Result<usize> {
        // SAFETY: an all-zero header has no name, buffers or control data.
        let mut messages: [libc::mmsghdr; MESSAGES_AT_ONCE] = unsafe { mem::zeroed() };
        let count = frames.len().min(MESSAGES_AT_ONCE);
        for (message, frame) in messages.iter_mut().zip(frames) {
            // `IoSlice` is ABI-compatible with the kernel's `iovec`, as its documentation
            // guarantees.
            message.msg_hdr.msg_iov = ptr::from_ref(frame).cast_mut().cast();
            message.msg_hdr.msg_iovlen = 1;
        }
        let descriptor = self.0.as_raw_fd();
        // SAFETY: the kernel reads that many headers, writes their lengths, and only reads the
        // frames, which the caller borrows.
        let sent =
            checked(unsafe { libc::sendmmsg(descriptor, messages.as_mut_ptr(), count as u32, 0) })?;
        Ok(sent as usize)
    }

    /// Makes the interface promiscuous for as long as the socket exists.
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
        // SAFETY: a new mapping at an address chosen by the kernel affects no other memory.
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

    /// The kernel's number for the hardware type (ARPHRD).
    pub(crate) fn hardware_type(&self, name: &CStr) -> io::Result<u16> {
        let answer = self.ask(name, libc::SIOCGIFHWADDR as _, Union { ifru_ifindex: 0 })?;
        // SAFETY: the result of this request is an address, whose family is the type.
        Ok(unsafe { answer.ifru_hwaddr.sa_family })
    }

    /// The MTU, in bytes.
    pub(crate) fn mtu_bytes(&self, name: &CStr) -> io::Result<u32> {
        let answer = self.ask(name, libc::SIOCGIFMTU as _, Union { ifru_ifindex: 0 })?;
        // SAFETY: the result of this request is a length.
        Ok(unsafe { answer.ifru_mtu }.cast_unsigned())
    }

    /// Whether the interface is up.
    pub(crate) fn is_up(&self, name: &CStr) -> io::Result<bool> {
        is_up(&self.0, name)
    }

    /// The current name of the interface with that index, if it exists.
    pub(crate) fn name_of(&self, index: c_int) -> Option<CString> {
        name_of(&self.0, index)
    }

    /// The result of an ethtool query that returns one number.
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

/// A socket for queries about interfaces. It receives nothing and needs no privileges.
pub(crate) fn control_socket() -> io::Result<OwnedFd> {
    let kind = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC;
    // SAFETY: no memory is passed.
    let descriptor = checked(unsafe { libc::socket(libc::AF_INET, kind, 0) })?;
    // SAFETY: the descriptor was just created and has no other owner.
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
    // SAFETY: the result of this request is flags.
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
    // The last byte stays 0: the kernel does not allow longer names either.
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
    // SAFETY: every request in this file takes an `ifreq`. Memory that it points to is borrowed
    // from the caller.
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

/// The index of the interface with that name, if it exists.
pub(crate) fn index_of(name: &CStr) -> Option<c_int> {
    // SAFETY: the name is null-terminated.
    match unsafe { libc::if_nametoindex(name.as_ptr()) } {
        0 => None,
        index => Some(index.cast_signed()),
    }
}

/// The current name of the interface with that index, if it exists. Uses the given socket; libc's
/// function would create one for every query.
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
    // SAFETY: the list ends with an entry without a name. The names before it are null-terminated
    // and live until the list is freed at the end of this block.
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

/// A name in the kernel's form; `None` if no interface can have it.
pub(crate) fn kernel_name(name: &str) -> Option<CString> {
    let fits = !name.is_empty() && name.len() < libc::IFNAMSIZ;
    fits.then(|| CString::new(name).ok()).flatten()
}

/// Waits until one of the sockets has a block or an error, or until the timeout. Returns early if
/// interrupted.
pub(crate) fn wait(sockets: &mut [libc::pollfd], timeout_ms: c_int) -> io::Result<()> {
    let count = sockets.len() as libc::nfds_t;
    // SAFETY: the kernel reads and writes `count` entries.
    match checked(unsafe { libc::poll(sockets.as_mut_ptr(), count, timeout_ms) }) {
        Err(error) if error.kind() != io::ErrorKind::Interrupted => Err(error),
        _ => Ok(()),
    }
}
