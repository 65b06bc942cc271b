// SPDX-License-Identifier: Apache-2.0
//! The part of the answer about flow offload.

use turboflow_plan::offload::{Bottleneck, Host, OffloadPlan, Place, Use};

use super::answer::{a_second, amount, bits, columns, cores, memory, percent};

/// One sentence about what the table changes.
pub(super) fn sentence(plan: &OffloadPlan) -> String {
    let stays = match plan.offloaded_share {
        share if share < 1.0 => format!("{} of the flows get a row, and ", percent(share)),
        _ => String::new(),
    };
    let use_of = |of: Bottleneck| plan.uses.iter().find(|one| one.of == of);
    let limit = use_of(plan.first_limit).map_or_else(String::new, |first| {
        format!(" The first limit is {}.", used(first))
    });
    format!(
        "With the flow table of {}, {stays}{} of the packets reach the host, which needs {} with \
         inspection and {} without, instead of {} and {} without the table.{limit}",
        plan.card.name,
        percent(plan.inspected.packet_share),
        cores(plan.inspected.cores),
        amount(plan.uninspected.cores),
        amount(plan.software_inspected.cores),
        amount(plan.software.cores),
    )
}

/// A resource in use, such as `new flows: 1.2 M/s needed, 1.0 M/s available`.
fn used(one: &Use) -> String {
    let show = shown(one.of);
    let (needed, available) = (show(one.needed), show(one.available));
    format!("{}: {needed} needed, {available} available", name(one.of))
}

const fn name(of: Bottleneck) -> &'static str {
    match of {
        Bottleneck::Rows => "rows",
        Bottleneck::Births => "new flows",
        Bottleneck::HostCores => "host cores",
        Bottleneck::Bus => "bus",
    }
}

fn shown(of: Bottleneck) -> fn(f64) -> String {
    match of {
        Bottleneck::Rows | Bottleneck::HostCores => amount,
        Bottleneck::Births => a_second,
        Bottleneck::Bus => bits,
    }
}

/// How full the table is, and the load of the host with and without it.
pub(super) fn tables(plan: &OffloadPlan) -> String {
    let mut text = format!("\nWith a flow table for all links: {}\n", plan.card.name);
    let mut table = columns(["", "needed", "available", "used"]);
    for one in &plan.uses {
        let show = shown(one.of);
        table.push(vec![
            name(one.of).to_owned(),
            show(one.needed),
            show(one.available),
            percent(one.share),
        ]);
    }
    text += &table.render(None);
    text += "\nThe host, with the table and without it\n";
    text += &hosts(plan);
    let share = percent(plan.offloaded_share);
    text += &format!("Flows that get a row: {share}.");
    text += &match (plan.card.place, plan.bus_bits_per_second_saved()) {
        (Place::Host, _) => {
            " The table is in the host, so every packet crosses the bus.".to_owned()
        }
        (Place::Card, Some(saved)) => format!(" Saved on the bus: {}.", bits(saved)),
        (Place::Card, None) => String::new(),
    };
    if let Some(bytes) = plan.host_bytes {
        text += &format!(" Memory of the host for its flows: {}.", memory(bytes));
    }
    text + "\n"
}

fn hosts(plan: &OffloadPlan) -> String {
    let all = [
        &plan.inspected,
        &plan.uninspected,
        &plan.software_inspected,
        &plan.software,
    ];
    let names = ["", "table, inspection", "table", "inspection", "neither"];
    let mut table = columns(names);
    let mut row = |name: &str, show: &dyn Fn(&Host) -> String| {
        let cells = all.iter().map(|host| show(host));
        table.push(std::iter::once(name.to_owned()).chain(cells).collect());
    };
    row("packets at the host", &|host| {
        a_second(host.packets_per_second)
    });
    row("of all packets", &|host| percent(host.packet_share));
    row("cores", &|host| amount(host.cores));
    if plan.software.bus_bits_per_second.is_some() {
        let load = |host: &Host| host.bus_bits_per_second.map_or_else(String::new, bits);
        row("bus load", &load);
    }
    table.render(None)
}
