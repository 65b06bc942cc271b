// SPDX-License-Identifier: Apache-2.0
//! Attaches the program to interfaces with BPF links. The kernel closes them when this process
//! ends, however it ends.

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use libbpf_rs::libbpf_sys::{
    BPF_XDP, XDP_FLAGS_DRV_MODE, XDP_FLAGS_SKB_MODE, bpf_link_create, bpf_link_create_opts,
    bpf_link_detach, bpf_link_get_fd_by_id,
};
use libbpf_rs::query::{LinkInfoIter, LinkTypeInfo};
use libbpf_rs::{Xdp, XdpFlags};
use rustix::io::Errno;

use crate::interface::control_socket;
use crate::link::{Attachment, Link};
use crate::{KernelEngine, KernelError};

/// Where the program runs in the receive path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum XdpMode {
    /// Native if the driver supports it, else generic.
    #[default]
    Auto,
    /// In the driver, before the kernel creates a socket buffer.
    Native,
    /// After the driver: supported on every interface, and slower.
    Generic,
}

impl XdpMode {
    /// `native` or `generic`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Native => "native",
            Self::Generic => "generic",
        }
    }

    const fn flags(self) -> u32 {
        match self {
            Self::Auto => 0,
            Self::Native => XDP_FLAGS_DRV_MODE,
            Self::Generic => XDP_FLAGS_SKB_MODE,
        }
    }
}

impl KernelEngine {
    /// Attaches the program to all interfaces, or to none; returns the mode on each.
    ///
    /// # Errors
    /// Where an interface already has a program and `replaces` is not set, or its driver refuses
    /// this one. Programs that were replaced before the error are not put back; the error names
    /// them.
    pub fn attach(&mut self, mode: XdpMode, replaces: bool) -> Result<Vec<XdpMode>, KernelError> {
        let interfaces = self.interfaces.iter().enumerate();
        let with_programs =
            interfaces.map(|(place, (name, index))| (place, name, *index, program_on(*index)));
        // Interfaces without a program come first: if one of them fails, no other program has been
        // replaced.
        let (occupied, free): (Vec<_>, Vec<_>) =
            with_programs.partition(|(.., before)| before.is_some());
        let mut attached: Vec<_> = self.interfaces.iter().map(|_| None).collect();
        let mut taken_off = Vec::new();
        for (place, name, index, before) in free.into_iter().chain(occupied) {
            if let Some(id) = before {
                let name = name.clone();
                if !replaces {
                    let id = Some(id);
                    return Err(KernelError::Occupied { name, id });
                }
                take_off(&name, index, id).map_err(|error| error.although(&taken_off))?;
                taken_off.push((name, id));
            }
            let one = self.attach_one(name, index, mode);
            let one = one.map_err(|error| error.still_there(replaces).although(&taken_off))?;
            attached[place] = Some(one);
        }
        let (modes, links) = attached.into_iter().flatten().unzip();
        self.links = links;
        Ok(modes)
    }

    fn attach_one(
        &self,
        name: &str,
        index: u32,
        mode: XdpMode,
    ) -> Result<(XdpMode, Link), KernelError> {
        let wanted = match mode {
            // Kernels before 2025 accept a device-bound program in generic mode, and may crash from
            // it.
            XdpMode::Auto if self.is_bound => &[XdpMode::Native][..],
            XdpMode::Auto => &[XdpMode::Native, XdpMode::Generic],
            XdpMode::Native => &[XdpMode::Native],
            XdpMode::Generic => &[XdpMode::Generic],
        };
        let mut refused = None;
        for &mode in wanted {
            match self
                .link(index, mode)
                .and_then(|link| Link::new(link, index))
            {
                Ok(link) => return Ok((mode, link)),
                // The driver's error is more helpful than that of the second attempt.
                Err(error) => refused = refused.or(Some((mode, error))),
            }
        }
        let (mode, source) = refused.expect("one mode at least was tried");
        let needs = match &self.bridge {
            Some(_) => Needs::Redirects,
            None if self.is_bound => Needs::Metadata,
            None => Needs::Nothing,
        };
        Err(refusal(name, index, mode, source, needs))
    }

    /// The interfaces, in the order of `KernelConfig::interfaces`.
    pub fn interface_names(&self) -> impl Iterator<Item = &str> {
        self.interfaces.iter().map(|(name, _)| name.as_str())
    }

    /// Whether the program is still on its interfaces, in the order of `KernelConfig::interfaces`.
    /// Empty before it is attached, and after it was detached.
    pub fn attachments(&self) -> impl Iterator<Item = Attachment> {
        self.links.iter().map(Link::attachment)
    }

    fn link(&self, index: u32, mode: XdpMode) -> io::Result<OwnedFd> {
        let program = self
            .object
            .progs()
            .find(|program| program.name() == self.program_name())
            .ok_or(io::ErrorKind::NotFound)?;
        let options = bpf_link_create_opts {
            sz: size_of::<bpf_link_create_opts>() as _,
            flags: mode.flags(),
            ..Default::default()
        };
        let program = program.as_fd().as_raw_fd();
        // SAFETY: the options live for the call, and contain their own size.
        let fd = unsafe { bpf_link_create(program, index as i32, BPF_XDP, &options) };
        if fd < 0 {
            return Err(io::Error::from_raw_os_error(-fd));
        }
        // SAFETY: the link was created just now, and has no other owner.
        Ok(unsafe { OwnedFd::from_raw_fd(fd) })
    }
}

/// Capabilities that only some drivers have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Needs {
    Nothing,
    /// Providing metadata of frames.
    Metadata,
    /// Sending frames that were redirected from another interface.
    Redirects,
}

fn refusal(name: &str, index: u32, mode: XdpMode, source: io::Error, needs: Needs) -> KernelError {
    let name = name.to_owned();
    // Another program was attached first, or replacing was not requested. BUSY: a program in this
    // mode; EXIST: a program in another mode.
    if [Errno::BUSY, Errno::EXIST]
        .map(|error| Some(error.raw_os_error()))
        .contains(&source.raw_os_error())
    {
        let id = program_on(index);
        return KernelError::Occupied { name, id };
    }
    let mend = match mode {
        _ if source.kind() == io::ErrorKind::PermissionDenied => match needs {
            Needs::Redirects | Needs::Metadata => "it needs root or CAP_NET_ADMIN",
            _ => "it needs root or CAP_NET_ADMIN; `engine.name=software` needs CAP_NET_RAW alone",
        },
        _ if needs == Needs::Redirects => {
            "both ports of a bridge need a driver with native XDP, and the driver of this port \
             does not support it, or not with these settings (see `ip link show` and `ethtool -k`)"
        }
        _ if needs == Needs::Metadata => {
            "metadata of the driver, such as `hardware_timestamp`, needs native mode"
        }
        XdpMode::Native => {
            "`engine.xdp.mode=generic` and `engine.name=software` work on every interface"
        }
        _ => "`engine.name=software` works on every interface",
    };
    KernelError::Attach {
        name,
        mode: mode.name(),
        source,
        mend,
    }
}

/// The id of the program on an interface.
fn program_on(index: u32) -> Option<u32> {
    let anything = Xdp::new(control_socket().ok()?.as_fd()).query_id(index as i32, XdpFlags::NONE);
    anything.ok().filter(|id| *id != 0)
}

/// Detaches another program, whether a link holds it or not.
fn take_off(name: &str, index: u32, program: u32) -> Result<(), KernelError> {
    let failed = |source| KernelError::Attach {
        name: name.to_owned(),
        mode: XdpMode::Auto.name(),
        source,
        mend: "the program on it could not be detached: try `ip link set dev IFACE xdp off`",
    };
    // Links are listed for all network namespaces, and each namespace has its own interface
    // indexes.
    let link = LinkInfoIter::default().find_map(|link| match link.info {
        LinkTypeInfo::Xdp(xdp) if xdp.ifindex == index && link.prog_id == program => Some(link.id),
        _ => None,
    });
    if let Some(id) = link {
        return detach_link(id).map_err(failed);
    }
    let no_program = control_socket().map_err(|error| failed(error.into()))?;
    let xdp = Xdp::new(no_program.as_fd());
    let taken = xdp.detach(index as i32, XdpFlags::DRV_MODE);
    let taken = taken.and_then(|()| xdp.detach(index as i32, XdpFlags::SKB_MODE));
    taken.map_err(|error| failed(io::Error::other(error)))
}

fn detach_link(id: u32) -> io::Result<()> {
    // SAFETY: takes and returns integers.
    let fd = unsafe { bpf_link_get_fd_by_id(id) };
    if fd < 0 {
        return Err(io::Error::from_raw_os_error(-fd));
    }
    // SAFETY: the descriptor was opened just now, and has no other owner.
    let link = unsafe { OwnedFd::from_raw_fd(fd) };
    // SAFETY: takes and returns integers; the descriptor is open.
    match unsafe { bpf_link_detach(link.as_raw_fd()) } {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(-error)),
    }
}
