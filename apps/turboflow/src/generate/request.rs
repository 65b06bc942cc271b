// SPDX-License-Identifier: Apache-2.0
//! Converts command-line options to traffic.

use std::path::Path;

use anyhow::bail;
use turboflow_workload::telemetry::{Carrier, Network, NetworkConfig};
use turboflow_workload::traffic::{FrameSizes, Skew, Traffic, TrafficConfig};
use turboflow_workload::workloads::{
    AdversarialConfig, Attack, DAY_NS, DataCenterConfig, InternetConfig, Kind, Placing, SeenAt,
    SiteConfig, Switch, Workload, WorkloadConfig,
};

use super::Generator;
use super::args::{AttackName, CarrierName, GenerateArgs, RouterName, Spread, WorkloadName};
use super::copies::Copies;

/// The kinds of traffic that options apply to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TrafficKind {
    Links,
    Own,
    Workload(WorkloadName),
}

impl TrafficKind {
    fn words(self) -> String {
        match self {
            Self::Links => "with --links".to_owned(),
            Self::Own => "without --workload".to_owned(),
            Self::Workload(name) => format!("with --workload {}", name.name()),
        }
    }
}

/// Packets, if neither their number nor a duration is given.
const PACKETS: u64 = 1_000_000;

impl GenerateArgs {
    /// The generator for these options.
    pub(super) fn generator(&self) -> anyhow::Result<Box<dyn Generator>> {
        self.refuse_other_formats()?;
        self.refuse_unused_options()?;
        if let (Some(links), Some(capture)) = (self.links, &self.read) {
            let copies = Copies::open(links, capture, self.packets, self.seed)?;
            return Ok(Box::new(copies));
        }
        let kind = match self.workload {
            None => return Ok(Box::new(Traffic::new(self.own_traffic()?)?)),
            Some(WorkloadName::ProbeStress) => {
                return Ok(Box::new(Traffic::new(self.probe_stress()?)?));
            }
            Some(WorkloadName::Telemetry) => {
                return Ok(Box::new(Network::new(&self.network())?));
            }
            Some(WorkloadName::Internet) => Kind::Internet(self.internet()),
            Some(WorkloadName::DcTor) => self.data_center(Switch::TopOfRack),
            Some(WorkloadName::DcAggregation) => self.data_center(Switch::Aggregation),
            Some(WorkloadName::Adversarial) => Kind::Adversarial(self.adversarial()?),
            Some(WorkloadName::Site) => Kind::Site(self.site()),
        };
        let is_bounded = self.packets.is_some() || self.duration.is_some();
        let (packets, duration_ns) = match kind {
            _ if is_bounded => (self.packets, self.duration_ns()),
            Kind::Site(_) => (None, Some(DAY_NS)),
            _ => (Some(PACKETS), None),
        };
        let config = WorkloadConfig {
            packets,
            duration_ns,
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

    /// An option that the traffic does not use is an error, because it would be ignored.
    fn refuse_unused_options(&self) -> anyhow::Result<()> {
        if self.speed.is_some() && self.interface.is_none() {
            bail!("--speed is of no use without -i: it says how fast packets are sent");
        }
        let now = match self.links {
            Some(_) => TrafficKind::Links,
            None => self
                .workload
                .map_or(TrafficKind::Own, TrafficKind::Workload),
        };
        for (option, is_given, belongs_to) in self.options_of_some_traffic() {
            if is_given && !belongs_to.contains(&now) {
                let names: Vec<_> = belongs_to.iter().map(|traffic| traffic.words()).collect();
                bail!(
                    "{option} is of no use {}, only {}: leave it out",
                    now.words(),
                    names.join(" or ")
                );
            }
        }
        for (option, share) in [
            ("--ipv6-share", self.ipv6_share),
            ("--vlan-share", self.vlan_share),
            ("--udp-share", self.udp_share),
        ] {
            if let Some(share) = share.filter(|share| !(0.0..=1.0).contains(share)) {
                bail!("{option} is {share}: a share lies between 0 and 1");
            }
        }
        self.refuse_without_collisions()
    }

    /// Refuses file names with the extension of another format.
    fn refuse_other_formats(&self) -> anyhow::Result<()> {
        let path = self.write.as_deref().unwrap_or_else(|| Path::new("-"));
        let extension = path.extension().and_then(|extension| extension.to_str());
        if let Some(other @ ("pcapng" | "ntar" | "gz" | "zst" | "bz2" | "xz")) = extension {
            bail!(
                "-w {}: the output is classic pcap, uncompressed, and not .{other}; call it .pcap",
                path.display()
            );
        }
        Ok(())
    }

    /// Options that apply to some kinds of traffic only: name, whether given, and the kinds.
    fn options_of_some_traffic(&self) -> [(&'static str, bool, &'static [TrafficKind]); 18] {
        use TrafficKind::{Own, Workload};
        use WorkloadName::{
            Adversarial, DcAggregation, DcTor, Internet, ProbeStress, Site, Telemetry,
        };
        const OWN: &[TrafficKind] = &[Own];
        const ATTACK: &[TrafficKind] = &[Workload(Adversarial)];
        const STRESS: &[TrafficKind] = &[Own, Workload(ProbeStress)];
        const SHARES: &[TrafficKind] = &[Own, Workload(ProbeStress), Workload(Internet)];
        const BIRTHS: &[TrafficKind] = &[
            Own,
            Workload(ProbeStress),
            Workload(Internet),
            Workload(Site),
        ];
        const FLOWS: &[TrafficKind] = &[Own, Workload(ProbeStress), Workload(Adversarial)];
        const DATA_CENTER: &[TrafficKind] = &[Workload(DcTor), Workload(DcAggregation)];
        const RATES: &[TrafficKind] = &[
            Own,
            Workload(Internet),
            Workload(ProbeStress),
            Workload(Adversarial),
        ];
        [
            ("--flows", self.flows.is_some(), FLOWS),
            (
                "--packets-per-second",
                self.packets_per_second.is_some(),
                RATES,
            ),
            (
                "--births-per-second",
                self.births_per_second.is_some(),
                BIRTHS,
            ),
            ("--seen-at", self.seen_at.is_some(), &[Workload(Site)]),
            ("--carrier", self.carrier.is_some(), &[Workload(Telemetry)]),
            ("--load", self.load.is_some(), DATA_CENTER),
            ("--attack", self.attack.is_some(), ATTACK),
            ("--meter-seed", self.meter_seed.is_some(), ATTACK),
            ("--table-slots", self.table_slots.is_some(), ATTACK),
            ("--into-slots", self.into_slots.is_some(), ATTACK),
            ("--traffic", self.traffic.is_some(), OWN),
            ("--zipf-exponent", self.zipf_exponent.is_some(), OWN),
            ("--train-length", self.train_length.is_some(), OWN),
            ("--size", self.size.is_some(), STRESS),
            ("--sizes", self.sizes.is_some(), OWN),
            ("--ipv6-share", self.ipv6_share.is_some(), SHARES),
            ("--vlan-share", self.vlan_share.is_some(), OWN),
            ("--udp-share", self.udp_share.is_some(), OWN),
        ]
    }

    fn refuse_without_collisions(&self) -> anyhow::Result<()> {
        if self.attack == Some(AttackName::Collisions) {
            return Ok(());
        }
        let given = [
            ("--meter-seed", self.meter_seed.is_some()),
            ("--table-slots", self.table_slots.is_some()),
            ("--into-slots", self.into_slots.is_some()),
        ];
        match given.into_iter().find(|(_, is_given)| *is_given) {
            Some((option, _)) => bail!("{option} is of no use without --attack collisions"),
            None => Ok(()),
        }
    }

    fn adversarial(&self) -> anyhow::Result<AdversarialConfig> {
        let slots = |asked: Option<u64>, usual: u32| {
            asked.map_or(Ok(usual), u32::try_from).map_err(|_| {
                anyhow::anyhow!("a table has at most {} slots; ask for fewer", u32::MAX)
            })
        };
        let attack = match self.attack {
            None => bail!(
                "--workload adversarial needs --attack with all-at-once, collisions or \
                 single-packets"
            ),
            Some(AttackName::SinglePackets) if self.flows.is_some() => bail!(
                "--flows is of no use with --attack single-packets, where every packet is a flow: \
                 leave it out"
            ),
            Some(AttackName::SinglePackets) => Attack::SinglePackets,
            Some(AttackName::AllAtOnce) => Attack::AllAtOnce {
                flows: self.flows.unwrap_or(100_000),
            },
            Some(AttackName::Collisions) => Attack::Collisions {
                flows: self.flows.unwrap_or(1_000),
                placing: self
                    .meter_seed
                    .map_or(Placing::Crc32, |seed| Placing::Engine { seed }),
                slots: slots(self.table_slots, 32_768)?,
                into_slots: slots(self.into_slots, 16)?,
            },
        };
        Ok(AdversarialConfig {
            attack,
            packets_per_second: self.packets_per_second.unwrap_or(10e6),
        })
    }

    fn internet(&self) -> InternetConfig {
        let usual = InternetConfig::default();
        InternetConfig {
            packets_per_second: self.packets_per_second.unwrap_or(usual.packets_per_second),
            flows_per_second: self.births_per_second.unwrap_or(usual.flows_per_second),
            ipv6_share: self.ipv6_share.unwrap_or(usual.ipv6_share),
        }
    }

    fn site(&self) -> SiteConfig {
        let seen_at = match self.seen_at {
            None | Some(RouterName::Headquarters) => SeenAt::Headquarters,
            Some(RouterName::Branch) => SeenAt::Branch,
        };
        let usual = SiteConfig::new(seen_at);
        SiteConfig {
            flows_per_second: self.births_per_second.unwrap_or(usual.flows_per_second),
            ..usual
        }
    }

    fn network(&self) -> NetworkConfig {
        let carrier = |name| match name {
            CarrierName::IntDscp => Carrier::IntByDscp,
            CarrierName::IntPort => Carrier::IntByPort,
            CarrierName::Report => Carrier::Report,
            CarrierName::Ioam => Carrier::Ioam,
        };
        NetworkConfig {
            carrier: self.carrier.map(carrier),
            packets: self.packets,
            duration_ns: self.duration_ns(),
            snap_length_bytes: self.snap_length,
            seed: self.seed,
        }
    }

    fn data_center(&self, switch: Switch) -> Kind {
        let usual = DataCenterConfig::new(switch);
        Kind::DataCenter(DataCenterConfig {
            load: self.load.unwrap_or(usual.load),
            ..usual
        })
    }

    /// The stress of the offload paper (section V): each packet belongs to a random active flow,
    /// and each second a tenth of the flows is replaced.
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

    /// Sets the number of packets, from the number or the duration given.
    fn with_packets(&self, config: TrafficConfig) -> anyhow::Result<TrafficConfig> {
        config.check()?;
        let in_time = |time: std::time::Duration| {
            // Packets are evenly spaced, and the first one is at time 0.
            (time.as_secs_f64() * config.packets_per_second).ceil() as u64
        };
        let packets = self.packets.or(self.duration.map(in_time));
        Ok(TrafficConfig {
            packets: packets.unwrap_or(PACKETS),
            ..config
        })
    }
}
