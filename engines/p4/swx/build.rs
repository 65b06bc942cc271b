// SPDX-License-Identifier: Apache-2.0
//! Compiles and links the code that calls DPDK if the feature `dpdk` is enabled; otherwise does
//! nothing.

fn main() {
    println!("cargo::rerun-if-changed=c/pipeline.c");
    #[cfg(feature = "dpdk")]
    dpdk();
}

#[cfg(feature = "dpdk")]
fn dpdk() {
    // DPDK's own list of libraries includes every driver. Only two are linked.
    let found = pkg_config::Config::new()
        .cargo_metadata(false)
        .probe("libdpdk")
        .expect("DPDK is not here: install libdpdk-dev and pkg-config, or leave out `dpdk`");
    cc::Build::new()
        .file("c/pipeline.c")
        .includes(&found.include_paths)
        .flag("-include")
        .flag("rte_config.h")
        // DPDK's experimental functions may change. The compiler then reports that.
        .define("ALLOW_EXPERIMENTAL_API", None)
        .compile("turboflow-swx-pipeline");
    for folder in &found.link_paths {
        println!("cargo::rustc-link-search=native={}", folder.display());
    }
    println!("cargo::rustc-link-lib=dylib=rte_pipeline");
    println!("cargo::rustc-link-lib=dylib=rte_eal");
}
