// SPDX-License-Identifier: Apache-2.0
//! From what was typed to the traffic that is meant.

use anyhow::bail;
use turboflow_workload::traffic::{FrameSizes, Skew, Traffic, TrafficConfig};
use turboflow_workload::workloads::{
    DataCenterConfig, InternetConfig, Kind, Switch, Workload, WorkloadConfig,
};

use super::Generator;
use super::args::{GenerateArgs, Spread, WorkloadName};

/// Packets where neither their number nor a time was asked for.
const PACKETS: u64 = 1_000_000;

impl GenerateArgs {
    /// The generator that was asked for.
    pub(super) fn generator(&self) -> anyhow::Result<Box<dyn Generator>> {
        self.refuse_what_is_of_no_use()?;
        let kind = match self.workload {
            None => return Ok(Box::new(Traffic::new(self.own_traffic()?)?)),
            Some(WorkloadName::ProbeStress) => {
                return Ok(Box::new(Traffic::new(self.probe_stress()?)?));
            }
            Some(WorkloadName::Internet) => Kind::Internet(self.internet()),
            Some(WorkloadName::DcTor) => self.data_center(Switch::TopOfRack),
            Some(WorkloadName::DcAggregation) => self.data_center(Switch::Aggregation),
        };
        let otherwise = self.duration.is_none().then_some(PACKETS);
        let config = WorkloadConfig {
            packets: self.packets.or(otherwise),
            duration_ns: self.duration_ns(),
            snap_length_bytes: self.snap_length,
            seed: self.seed,
            ..WorkloadConfig::new(kind)
        };
        Ok(Box::new(Workload::new(&config)?))
    }

    fn duration_ns(&self) -> Option<u64> {
        let nanoseconds = self.duration?.as_nanos();
        Some(u64::try_from(nanoseconds).unwrap_or(u64::MAX))
    }

    /// An option that the traffic asked for does not know is an error: it would be ignored.
    fn refuse_what_is_of_no_use(&self) -> anyhow::Result<()> {
        use WorkloadName::{DcAggregation, DcTor, Internet, ProbeStress};
        let data_center: &[_] = &[Some(DcAggregation), Some(DcTor)];
        let (own, stress): (&[_], &[_]) = (&[None], &[None, Some(ProbeStress)]);
        let rates: &[_] = &[None, Some(ProbeStress), Some(Internet)];
        for (option, is_given, belongs_to) in [
            ("--flows", self.flows.is_some(), stress),
            (
                "--packets-per-second",
                self.packets_per_second.is_some(),
                rates,
            ),
            (
                "--births-per-second",
                self.births_per_second.is_some(),
                rates,
            ),
            ("--load", self.load.is_some(), data_center),
            ("--traffic", self.traffic.is_some(), own),
            ("--zipf-exponent", self.zipf_exponent.is_some(), own),
            ("--train-length", self.train_length.is_some(), own),
            ("--size", self.size.is_some(), stress),
            ("--sizes", self.sizes.is_some(), own),
            ("--ipv6-share", self.ipv6_share.is_some(), rates),
            ("--vlan-share", self.vlan_share.is_some(), own),
            ("--udp-share", self.udp_share.is_some(), own),
        ] {
            if !is_given || belongs_to.contains(&self.workload) {
                continue;
            }
            let names: Vec<_> = belongs_to
                .iter()
                .map(|name| match name {
                    None => "without --workload".to_owned(),
                    Some(name) => format!("with --workload {}", name.name()),
                })
                .collect();
            let now = self.workload.map_or_else(
                || "without --workload".to_owned(),
                |name| format!("with --workload {}", name.name()),
            );
            bail!(
                "{option} is of no use {now}, only {}: leave it out",
                names.join(" or ")
            );
        }
        Ok(())
    }

    fn internet(&self) -> InternetConfig {
        let usual = InternetConfig::default();
        InternetConfig {
            packets_per_second: self.packets_per_second.unwrap_or(usual.packets_per_second),
            flows_per_second: self.births_per_second.unwrap_or(usual.flows_per_second),
            ipv6_share: self.ipv6_share.unwrap_or(usual.ipv6_share),
        }
    }

    fn data_center(&self, switch: Switch) -> Kind {
        let usual = DataCenterConfig::new(switch);
        Kind::DataCenter(DataCenterConfig {
            load: self.load.unwrap_or(usual.load),
            ..usual
        })
    }

    /// As the offload paper stresses probes (section V): packets of any active flow in turn, and a
    /// tenth of the flows new every second.
    fn probe_stress(&self) -> anyhow::Result<TrafficConfig> {
        let flows = self.flows.unwrap_or(10_000);
        let config = TrafficConfig {
            flows,
            packets_per_second: self.packets_per_second.unwrap_or(10e6),
            births_per_second: self.births_per_second.unwrap_or(flows as f64 / 10.0),
            ..self.common_traffic()
        };
        self.with_packets(config)
    }

    fn own_traffic(&self) -> anyhow::Result<TrafficConfig> {
        let skew = match self.traffic {
            None | Some(Spread::Uniform) => {
                let given = [
                    ("--zipf-exponent", self.zipf_exponent.is_some()),
                    ("--train-length", self.train_length.is_some()),
                ];
                if let Some((option, _)) = given.into_iter().find(|(_, given)| *given) {
                    bail!(
                        "{option} is of no use without --traffic zipf: add that, or leave it out"
                    );
                }
                Skew::Uniform
            }
            Some(Spread::Zipf) => Skew::Zipf {
                exponent: self.zipf_exponent.unwrap_or(1.05),
                mean_train_length: self.train_length.unwrap_or(10.0),
            },
        };
        let usual = TrafficConfig::default();
        let config = TrafficConfig {
            flows: self.flows.unwrap_or(usual.flows),
            packets_per_second: self.packets_per_second.unwrap_or(usual.packets_per_second),
            births_per_second: self.births_per_second.unwrap_or(usual.births_per_second),
            skew,
            ..self.common_traffic()
        };
        self.with_packets(config)
    }

    fn common_traffic(&self) -> TrafficConfig {
        let one_size = FrameSizes::Fixed(self.size.unwrap_or(64));
        TrafficConfig {
            frame_sizes: self.sizes.clone().unwrap_or(one_size),
            ipv6_share: self.ipv6_share.unwrap_or(0.0),
            vlan_share: self.vlan_share.unwrap_or(0.0),
            udp_share: self.udp_share.unwrap_or(0.0),
            snap_length_bytes: self.snap_length,
            seed: self.seed,
            ..TrafficConfig::default()
        }
    }

    /// As many packets as were asked for, or as the time asked for holds.
    fn with_packets(&self, config: TrafficConfig) -> anyhow::Result<TrafficConfig> {
        config.check()?;
        let in_time = |time: std::time::Duration| {
            // Evenly spaced packets; the first comes at once.
            (time.as_secs_f64() * config.packets_per_second).ceil() as u64
        };
        let packets = self.packets.or(self.duration.map(in_time));
        Ok(TrafficConfig {
            packets: packets.unwrap_or(PACKETS),
            ..config
        })
    }
}
