//! Scratch.
fn main() {
    let a: Vec<String> = std::env::args().skip(1).collect();
    let options = turboflow_bench::Options { flows: a[1].split(',').map(|x| x.parse().unwrap()).collect(), items: a[2].parse().unwrap(), ..Default::default() };
    turboflow_bench::run(&a[0], &options, &mut |r| println!("{:>10} {:>14} {:>9} {:>8} {:7.1} M/s {:6.2} ns {:?} {:?}", r.bench, r.design, r.flows, r.traffic, r.items_per_s/1e6, r.ns_per_item, r.bytes_per_flow.map(|x|x as u64), r.microflows_per_packet)).unwrap();
}
