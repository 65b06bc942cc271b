// SPDX-License-Identifier: Apache-2.0
//! Compiles and links what calls DPDK, if the feature `dpdk` is on; does nothing otherwise.

fn main() {
    println!("cargo::rerun-if-changed=c/pipeline.c");
    #[cfg(feature = "dpdk")]
    dpdk();
}

#[cfg(feature = "dpdk")]
fn dpdk() {
    // DPDK's own list of libraries has every driver: only two are linked.
    let found = pkg_config::Config::new()
        .cargo_metadata(false)
        .probe("libdpdk")
        .expect("DPDK is not here: install libdpdk-dev and pkg-config, or leave out `dpdk`");
    cc::Build::new()
        .file("c/pipeline.c")
        .includes(&found.include_paths)
        .flag("-include")
        .flag("rte_config.h")
        // What DPDK marks as experimental may change. The compiler then says so.
        .define("ALLOW_EXPERIMENTAL_API", None)
        .compile("turboflow-swx-pipeline");
    for folder in &found.link_paths {
        println!("cargo::rustc-link-search=native={}", folder.display());
    }
    println!("cargo::rustc-link-lib=dylib=rte_pipeline");
    println!("cargo::rustc-link-lib=dylib=rte_eal");
}
