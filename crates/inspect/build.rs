// SPDX-License-Identifier: Apache-2.0
//! Compiles the shim of nDPI and links the system's library if the feature `dpi` is on; does
//! nothing otherwise.
//!
//! Versions 4.2 to 5.x differ in function arguments and struct members, and 4.2 has no macro that
//! tells the version. So this script tests with the compiler what the headers have, and defines
//! macros for the shim accordingly.

fn main() {
    println!("cargo::rerun-if-changed=src/ndpi/shim.c");
    println!("cargo::rerun-if-env-changed=TURBOFLOW_NDPI_INCLUDE");
    println!("cargo::rerun-if-env-changed=TURBOFLOW_NDPI_LIBRARY");
    #[cfg(feature = "dpi")]
    ndpi::build();
}

#[cfg(feature = "dpi")]
mod ndpi {
    use std::io::Write;
    use std::path::{Path, PathBuf};
    use std::process::Stdio;

    /// The macros of the shim, each with the body of a function that compiles if the macro is to be
    /// defined. The body may use `module`, `flow` and `found`: the module, a flow, and a result.
    const QUESTIONS: [(&str, &str); 12] = [
        ("HAS_NESTED_PROTOCOL", "found.proto.app_protocol = 0;"),
        (
            "HAS_INPUT_INFO",
            "found = ndpi_detection_process_packet(module, flow, 0, 0, 0, 0);",
        ),
        (
            "HAS_BITMASK",
            "NDPI_PROTOCOL_BITMASK all; NDPI_BITMASK_SET_ALL(all);
             ndpi_set_protocol_detection_bitmask2(module, &all);",
        ),
        (
            "HAS_GUESS_CHOICE",
            "u_int8_t guessed; found = ndpi_detection_giveup(module, flow, 1, &guessed);",
        ),
        (
            "HAS_GUESS_REPORT",
            "u_int8_t guessed; found = ndpi_detection_giveup(module, flow, &guessed);",
        ),
        ("HAS_STATE", "return found.state == NDPI_STATE_CLASSIFIED;"),
        (
            "HAS_EXTRA_DISSECTION",
            "return ndpi_extra_dissection_possible(module, flow);",
        ),
        ("HAS_JA3", "return flow->protos.tls_quic.ja3_client[0];"),
        ("HAS_JA4", "return flow->protos.tls_quic.ja4_client[0];"),
        ("HAS_RISK_TEXTS", "return flow->num_risk_infos;"),
        (
            "HAS_NUM_PROTOCOLS",
            "return (int)ndpi_get_num_protocols(module);",
        ),
        (
            "HAS_CATEGORY_OF_RESULT",
            "return ndpi_get_proto_category(module, found);",
        ),
    ];

    pub(super) fn build() {
        let mut build = cc::Build::new();
        build.file("src/ndpi/shim.c").includes(link());
        build.flag_if_supported("-std=gnu11");
        let compiler = build.get_compiler();
        for (name, body) in QUESTIONS {
            if compiles(&compiler, body) {
                build.define(name, None);
            }
        }
        assert!(
            compiles(&compiler, "(void)module;"),
            "the headers of nDPI do not compile: reinstall libndpi-dev, or leave out `dpi`"
        );
        build.warnings(true).compile("turboflow-ndpi-shim");
        println!("cargo::rustc-link-lib=dylib=ndpi");
    }

    /// Tells cargo where the library is; returns the folders of its headers.
    fn link() -> Vec<PathBuf> {
        // A library in its own folder, for example to compare versions.
        if let Some(include) = std::env::var_os("TURBOFLOW_NDPI_INCLUDE") {
            if let Some(folder) = std::env::var_os("TURBOFLOW_NDPI_LIBRARY") {
                println!(
                    "cargo::rustc-link-search=native={}",
                    Path::new(&folder).display()
                );
            }
            return vec![include.into()];
        }
        let found = pkg_config::Config::new()
            .atleast_version("4.2")
            .cargo_metadata(false)
            .probe("libndpi")
            .unwrap_or_else(|error| {
                panic!(
                    "nDPI 4.2 or later is not here: install libndpi-dev and pkg-config, or leave out `dpi`\n{error}"
                )
            });
        for folder in &found.link_paths {
            println!("cargo::rustc-link-search=native={}", folder.display());
        }
        found.include_paths
    }

    /// Whether a function with this body compiles against the headers.
    fn compiles(compiler: &cc::Tool, body: &str) -> bool {
        let source = format!(
            "#include <ndpi_api.h>\n\
             int ask(struct ndpi_detection_module_struct *module, struct ndpi_flow_struct *flow) {{\n\
             ndpi_protocol found; (void)module; (void)flow; (void)found; {body} return 0; }}\n"
        );
        let mut child = compiler
            .to_command()
            .args([
                "-Werror=implicit-function-declaration",
                "-Werror=int-conversion",
                "-Werror=incompatible-pointer-types",
                "-fsyntax-only",
                "-xc",
                "-",
            ])
            .stdin(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("the C compiler does not run ({error}): install gcc"));
        let mut input = child.stdin.take().expect("it was asked for");
        // The compiler may stop reading at its first error.
        let _ = input.write_all(source.as_bytes());
        drop(input);
        child.wait().is_ok_and(|status| status.success())
    }
}
