// SPDX-License-Identifier: Apache-2.0
//! libpcap's compiler for filter expressions, which is loaded when needed.

use std::ffi::{CStr, CString, c_char, c_int, c_uint};
use std::ptr;

use libloading::{Library, Symbol};
use turboflow_packet::LinkType;

use super::program::{Instruction, InvalidProgram, Program};

/// Why a filter expression cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FilterError {
    /// libpcap rejects the expression.
    #[error("filter `{expression}`: {message}; `man pcap-filter` explains what can be written")]
    Expression {
        /// The expression.
        expression: String,
        /// libpcap's error message.
        message: String,
    },
    /// libpcap is not installed.
    #[error(
        "filter expressions need libpcap, which is not on this machine ({message}): install it \
         with `apt install libpcap0.8` (Debian, Ubuntu) or `dnf install libpcap` (Fedora, RHEL)"
    )]
    NoLibrary {
        /// The loader's error message.
        message: String,
    },
    /// The program that libpcap returned is invalid.
    #[error("filter `{expression}`: libpcap made a program that cannot run: {source}")]
    Program {
        /// The expression.
        expression: String,
        /// The fault in the program.
        source: InvalidProgram,
    },
}

/// File names of libpcap, oldest interface first. All functions used exist since 1.5.
const NAMES: [&str; 4] = [
    "libpcap.so.0.8",
    "libpcap.so.1",
    "libpcap.so",
    "libpcap.dylib",
];
/// Snap length of the compiled programs, as in tcpdump.
const SNAP_LENGTH_BYTES: c_int = 262_144;
/// The network mask is unknown; only `ip broadcast` would need it.
const NO_NETMASK: c_uint = 0xffff_ffff;
const ERROR_BYTES: usize = 256;
const DLT_EN10MB: c_int = 1;

/// A pointer to a `pcap_t`, which is opaque.
type PcapAddress = *mut u8;

#[repr(C)]
struct ProgramParts {
    length: c_uint,
    instructions: *mut InstructionParts,
}

#[repr(C)]
struct InstructionParts {
    code: u16,
    jump_true: u8,
    jump_false: u8,
    k: u32,
}

/// libpcap, loaded.
#[derive(Debug)]
pub struct Compiler {
    library: Library,
}

impl Compiler {
    /// Loads libpcap.
    ///
    /// # Errors
    /// If it is not installed.
    pub fn load() -> Result<Self, FilterError> {
        let mut message = String::new();
        for name in NAMES {
            // SAFETY: loading libpcap runs no code that matters, and its functions are called below
            // as its header declares them.
            match unsafe { Library::new(name) } {
                Ok(library) => return Ok(Self { library }),
                Err(error) if message.is_empty() => message = error.to_string(),
                Err(_) => {}
            }
        }
        Err(FilterError::NoLibrary { message })
    }

    /// Compiles an expression for frames from files.
    ///
    /// # Errors
    /// If libpcap rejects the expression.
    pub fn for_files(&self, expression: &str, data_link: u32) -> Result<Program, FilterError> {
        let handle = self.dead_handle(data_link.cast_signed())?;
        handle.compile(expression)
    }

    /// Compiles an expression for frames of an interface as the kernel filter sees them, with VLAN
    /// tags beside the frame. libpcap handles these only with a handle of the interface itself.
    ///
    /// # Errors
    /// If libpcap rejects the expression.
    pub fn for_interface(
        &self,
        expression: &str,
        name: &str,
        link_type: LinkType,
    ) -> Result<Program, FilterError> {
        if link_type == LinkType::Ethernet
            && let Some(handle) = self.interface_handle(name)?
        {
            return handle.compile(expression);
        }
        self.for_files(expression, data_link(link_type))
    }

    fn dead_handle(&self, data_link: c_int) -> Result<Pcap<'_>, FilterError> {
        type OpenDead = unsafe extern "C" fn(c_int, c_int) -> PcapAddress;
        let open = self.symbol::<OpenDead>(b"pcap_open_dead\0")?;
        // SAFETY: declared so in <pcap/pcap.h>; it takes two numbers.
        let handle = unsafe { open(data_link, SNAP_LENGTH_BYTES) };
        self.owned(handle).ok_or_else(|| FilterError::NoLibrary {
            message: "it gives no handle".to_owned(),
        })
    }

    /// A handle of an Ethernet interface. `None` if libpcap cannot open it, or it is not Ethernet.
    fn interface_handle(&self, name: &str) -> Result<Option<Pcap<'_>>, FilterError> {
        type Create = unsafe extern "C" fn(*const c_char, *mut c_char) -> PcapAddress;
        type Activate = unsafe extern "C" fn(PcapAddress) -> c_int;
        let create = self.symbol::<Create>(b"pcap_create\0")?;
        let activate = self.symbol::<Activate>(b"pcap_activate\0")?;
        let data_link = self.symbol::<Activate>(b"pcap_datalink\0")?;
        let Ok(name) = CString::new(name) else {
            return Ok(None);
        };
        let mut error = [0; ERROR_BYTES];
        // SAFETY: declared so in <pcap/pcap.h>; the name ends in a 0, and errors take at most
        // PCAP_ERRBUF_SIZE bytes, which is 256.
        let handle = unsafe { create(name.as_ptr(), error.as_mut_ptr()) };
        let Some(handle) = self.owned(handle) else {
            return Ok(None);
        };
        // SAFETY: the handle is alive; both functions take nothing else.
        let is_ethernet =
            unsafe { activate(handle.handle) >= 0 && data_link(handle.handle) == DLT_EN10MB };
        Ok(is_ethernet.then_some(handle))
    }

    fn owned(&self, handle: PcapAddress) -> Option<Pcap<'_>> {
        (!handle.is_null()).then_some(Pcap {
            compiler: self,
            handle,
        })
    }

    fn symbol<T>(&self, name: &[u8]) -> Result<Symbol<'_, T>, FilterError> {
        // SAFETY: the types of the symbols are those that <pcap/pcap.h> declares.
        let symbol = unsafe { self.library.get(name) };
        symbol.map_err(|error| FilterError::NoLibrary {
            message: error.to_string(),
        })
    }
}

/// libpcap's number of a link type. If several numbers share a link type, one with equal headers.
pub(super) const fn data_link(link_type: LinkType) -> u32 {
    match link_type {
        LinkType::Null => 0,
        LinkType::Ethernet => 1,
        LinkType::Ppp => 9,
        LinkType::Raw => 12,
        LinkType::LinuxCooked => 113,
        LinkType::RawIpv4 => 228,
        LinkType::RawIpv6 => 229,
        LinkType::LinuxCooked2 => 276,
    }
}

/// A handle, which is closed when dropped.
struct Pcap<'a> {
    compiler: &'a Compiler,
    handle: PcapAddress,
}

impl Pcap<'_> {
    fn compile(&self, expression: &str) -> Result<Program, FilterError> {
        type Compile = unsafe extern "C" fn(
            PcapAddress,
            *mut ProgramParts,
            *const c_char,
            c_int,
            c_uint,
        ) -> c_int;
        type Free = unsafe extern "C" fn(*mut ProgramParts);
        let compile = self.compiler.symbol::<Compile>(b"pcap_compile\0")?;
        let free = self.compiler.symbol::<Free>(b"pcap_freecode\0")?;
        let refused = |message: String| FilterError::Expression {
            expression: expression.to_owned(),
            message,
        };
        let text = CString::new(expression)
            .map_err(|_| refused("it holds a byte of value 0".to_owned()))?;
        let mut parts = ProgramParts {
            length: 0,
            instructions: ptr::null_mut(),
        };
        let optimise = 1;
        // SAFETY: the handle is alive, the text ends in a 0, and `parts` is a `bpf_program`.
        let outcome = unsafe {
            compile(
                self.handle,
                &raw mut parts,
                text.as_ptr(),
                optimise,
                NO_NETMASK,
            )
        };
        if outcome != 0 {
            return Err(refused(self.error()?));
        }
        let instructions = if parts.instructions.is_null() {
            Vec::new()
        } else {
            // SAFETY: compiling succeeded, so there are as many instructions as it says.
            let parts =
                unsafe { std::slice::from_raw_parts(parts.instructions, parts.length as usize) };
            parts.iter().map(InstructionParts::read).collect()
        };
        // SAFETY: compiled above, and not used again.
        unsafe { free(&raw mut parts) };
        Program::new(instructions).map_err(|source| FilterError::Program {
            expression: expression.to_owned(),
            source,
        })
    }

    fn error(&self) -> Result<String, FilterError> {
        type GetError = unsafe extern "C" fn(PcapAddress) -> *const c_char;
        let get = self.compiler.symbol::<GetError>(b"pcap_geterr\0")?;
        // SAFETY: the handle is alive, and holds a text that ends in a 0.
        let text = unsafe { CStr::from_ptr(get(self.handle)) };
        Ok(text.to_string_lossy().into_owned())
    }
}

impl Drop for Pcap<'_> {
    fn drop(&mut self) {
        type Close = unsafe extern "C" fn(PcapAddress);
        if let Ok(close) = self.compiler.symbol::<Close>(b"pcap_close\0") {
            // SAFETY: the handle is alive, and not used again.
            unsafe { close(self.handle) };
        }
    }
}

impl InstructionParts {
    const fn read(&self) -> Instruction {
        Instruction {
            code: self.code,
            jump_true: self.jump_true,
            jump_false: self.jump_false,
            k: self.k,
        }
    }
}
