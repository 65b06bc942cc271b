// SPDX-License-Identifier: Apache-2.0
//! Hands a program to DPDK and runs it.

use std::ffi::{CStr, CString, c_char, c_int};
use std::ptr;

use anyhow::{Context, bail};

use crate::spec::{Part, Spec};

/// `struct swx` in `c/pipeline.c`.
#[repr(C)]
struct Swx {
    _opaque: [u8; 0],
}

unsafe extern "C" {
    fn swx_start(processors: *const c_char) -> c_int;
    fn swx_new(fd: c_int) -> *mut Swx;
    fn swx_struct(
        swx: *mut Swx,
        name: *const c_char,
        fields: *const *const c_char,
        bits: *const u32,
        count: u32,
        last_varies: c_int,
    ) -> c_int;
    fn swx_header(swx: *mut Swx, name: *const c_char, of: *const c_char) -> c_int;
    fn swx_metadata(swx: *mut Swx, of: *const c_char) -> c_int;
    fn swx_registers(swx: *mut Swx, name: *const c_char, count: u32, value: u64) -> c_int;
    fn swx_action(
        swx: *mut Swx,
        name: *const c_char,
        args: *const c_char,
        instructions: *mut *const c_char,
        count: u32,
    ) -> c_int;
    fn swx_apply(swx: *mut Swx, instructions: *mut *const c_char, count: u32) -> c_int;
    fn swx_run(swx: *mut Swx) -> c_int;
}

/// The processors on which the thread may run, in DPDK's notation: all of them.
fn processors() -> CString {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let processors: Vec<String> = (0..processors).map(|at| at.to_string()).collect();
    c_string(&format!("0@({})", processors.join(",")))
}

/// Runs the program until the stream ends.
pub(crate) fn run(spec: &Spec, fd: c_int) -> anyhow::Result<()> {
    // SAFETY: the argument is a zero-terminated string.
    if unsafe { swx_start(processors().as_ptr()) } != 0 {
        bail!("DPDK does not start here");
    }
    // SAFETY: DPDK was started.
    let swx = unsafe { swx_new(fd) };
    if swx.is_null() {
        bail!("DPDK has no room for a pipeline");
    }
    for part in &spec.parts {
        // SAFETY: the pipeline is not built before its last part.
        let status = unsafe { configure(swx, part) };
        refused(status).with_context(|| format!("DPDK refuses {}", part_name(part)))?;
    }
    // SAFETY: the pipeline is built: `apply` is the last part of every program.
    refused(unsafe { swx_run(swx) }).context("the stream")
}

/// Hands a part to DPDK, which copies it.
///
/// # Safety
/// `swx` must be a pipeline that is not built yet.
unsafe fn configure(swx: *mut Swx, part: &Part) -> c_int {
    match part {
        Part::Struct {
            name,
            fields,
            last_varies,
        } => {
            let names: Vec<CString> = fields.iter().map(|(name, _)| c_string(name)).collect();
            let bits: Vec<u32> = fields.iter().map(|(_, bits)| *bits).collect();
            let (name, names) = (c_string(name), pointers(&names));
            let (names, count) = (names.as_ptr(), bits.len() as u32);
            // SAFETY: there are as many names and bits as the count says.
            unsafe {
                let last_varies = c_int::from(*last_varies);
                swx_struct(swx, name.as_ptr(), names, bits.as_ptr(), count, last_varies)
            }
        }
        Part::Header { name, of } => {
            let (name, of) = (c_string(name), c_string(of));
            // SAFETY: the arguments are zero-terminated strings.
            unsafe { swx_header(swx, name.as_ptr(), of.as_ptr()) }
        }
        // SAFETY: the argument is a zero-terminated string.
        Part::Metadata { of } => unsafe { swx_metadata(swx, c_string(of).as_ptr()) },
        Part::Registers { name, count, value } => {
            // SAFETY: the argument is a zero-terminated string.
            unsafe { swx_registers(swx, c_string(name).as_ptr(), *count, *value) }
        }
        Part::Action {
            name,
            args,
            instructions,
        } => {
            let (name, args) = (c_string(name), args.as_deref().map(c_string));
            let args = args.as_deref().map_or(ptr::null(), CStr::as_ptr);
            let instructions: Vec<CString> = strings(instructions);
            let mut pointers = pointers(&instructions);
            let count = pointers.len() as u32;
            // SAFETY: there are as many instructions as the count says.
            unsafe { swx_action(swx, name.as_ptr(), args, pointers.as_mut_ptr(), count) }
        }
        Part::Apply { instructions } => {
            let instructions: Vec<CString> = strings(instructions);
            let mut pointers = pointers(&instructions);
            // SAFETY: there are as many instructions as the count says.
            unsafe { swx_apply(swx, pointers.as_mut_ptr(), pointers.len() as u32) }
        }
    }
}

fn part_name(part: &Part) -> String {
    match part {
        Part::Struct { name, .. } => format!("the structure {name}"),
        Part::Header { name, .. } => format!("the header {name}"),
        Part::Metadata { .. } => "the metadata".to_owned(),
        Part::Registers { name, .. } => format!("the registers {name}"),
        Part::Action { name, .. } => format!("the action {name}"),
        Part::Apply { .. } => "the instructions".to_owned(),
    }
}

/// A negative status is an error number.
fn refused(status: c_int) -> anyhow::Result<()> {
    match status {
        0 => Ok(()),
        status => Err(std::io::Error::from_raw_os_error(status.wrapping_abs()).into()),
    }
}

fn strings(texts: &[String]) -> Vec<CString> {
    texts.iter().map(|text| c_string(text)).collect()
}

fn pointers(strings: &[CString]) -> Vec<*const c_char> {
    strings.iter().map(|string| string.as_ptr()).collect()
}

/// The text up to a zero byte; our texts contain none.
fn c_string(text: &str) -> CString {
    let bytes: Vec<u8> = text.bytes().take_while(|byte| *byte != 0).collect();
    CString::new(bytes).expect("it ends before the first zero")
}
