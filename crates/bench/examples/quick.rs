//! Scratch.
fn main() {
    let only: Vec<u64> = std::env::args().skip(1).map(|a| a.parse().unwrap()).collect();
    for flows in only {
        for _ in 0..3 {
        for row in turboflow_bench::aggregate::run(flows, turboflow_bench::Skew::Uniform, 3_000_000).iter().take(2) {
            println!("{:>10} {:>9} {:7.1} M/s {:6.2} ns {:?}", row.design, row.flows, row.items_per_s/1e6, row.ns_per_item, row.bytes_per_flow);
        }}
    }
}
