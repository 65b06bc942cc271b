// SPDX-License-Identifier: Apache-2.0
//! `--engine collector`: the program's side of the engine that receives flow records from other
//! exporters.

mod closing;
mod listen;
mod tls;

use std::fs::File;
use std::io::Read;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{anyhow, bail};
use clap::Args;
use serde::{Deserialize, Serialize};
use turboflow_capture::CaptureFile;
use turboflow_engine::{Abilities, OwnCount, RemoteEngine};
use turboflow_engine_collector::{
    CollectorConfig, CollectorEngine, FileSource, MessageSource, StreamError,
};
use turboflow_merge::Layout;
use turboflow_run::{CountAboveZero, PipelineConfig, RunConfig, Time, list};

use super::options::{self, EngineOption, Options, WrittenAs, WrittenOptions};
use super::{Closing, EngineKind, OpenEngines, RemoteSetup, RereadByEngine};
use crate::keys::Key;
use crate::record::{is_stdin, open_stream};
use closing::Ended;
use listen::Listeners;
use tls::Identity;

/// `[engine.collector]`.
#[derive(Clone, Debug, PartialEq, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
#[command(next_help_heading = "Engine")]
pub(super) struct CollectorOptions {
    /// collector: addresses to listen on, such as udp://:4739, tcp://HOST:4739 or tls://:4740
    ///
    /// Separate several by commas. Without a host, every address of this machine. UDP accepts
    /// IPFIX, NetFlow v9, NetFlow v5 and sFlow on any port; TCP and TLS accept IPFIX. All accept
    /// microflow records from other TurboFlows.
    #[arg(long = "listen", value_name = "ADDRESS,...", value_delimiter = ',')]
    #[arg(hide_short_help = true)]
    #[serde(deserialize_with = "texts", skip_serializing_if = "Vec::is_empty")]
    listen: Vec<String>,

    /// collector: files of IPFIX or NetFlow v5 messages; `-` is standard input
    #[arg(id = "flows-from", long = "flows-from", value_name = "FILE", num_args = 1..)]
    #[arg(hide_short_help = true)]
    #[serde(
        deserialize_with = "list::deserialize",
        skip_serializing_if = "Vec::is_empty"
    )]
    from: Vec<PathBuf>,

    /// collector: longest time from the first packet of a record to its arrival
    ///
    /// Set it to the active timeout of the exporters and a little more, so that the records of a
    /// flow that they cut are joined. Later records are merged too, but into flow records of their
    /// own.
    #[arg(
        id = "collector-lag",
        long = "collector-lag",
        value_name = "TIME",
        default_value = "150s"
    )]
    #[arg(hide_short_help = true)]
    #[arg(value_parser = str::parse::<Time>)]
    lag: Time,

    /// collector: maximum records that wait for older ones
    ///
    /// A record takes 64 bytes, or 128 with IPv6. When the buffer is full, the oldest records are
    /// merged early.
    #[arg(
        id = "collector-records",
        long = "collector-records",
        value_name = "N",
        default_value = "1M"
    )]
    #[arg(hide_short_help = true)]
    #[arg(value_parser = str::parse::<CountAboveZero>)]
    records: CountAboveZero,

    /// collector: multiply packets and bytes of sampled records
    ///
    /// The factor is the sampling interval that the exporter announces. Without this option,
    /// packets and bytes count only the sample.
    #[arg(id = "scale-sampled", long = "scale-sampled", hide_short_help = true)]
    scale_sampled: bool,

    /// collector: accept only microflow records from other TurboFlows
    ///
    /// The definition may then have fields and features that flow records of other exporters do not
    /// contain. All senders need the same definition as this run.
    #[arg(
        id = "only-microflows",
        long = "only-microflows",
        hide_short_help = true
    )]
    only_microflows: bool,

    /// collector: its certificate for exporters over TLS, in PEM
    ///
    /// Intermediate certificates follow it in the file. SIGHUP reads it again.
    #[arg(id = "listen-cert", long = "listen-cert", value_name = "FILE.pem")]
    #[arg(hide_short_help = true)]
    #[serde(skip_serializing_if = "Option::is_none")]
    tls_cert: Option<PathBuf>,

    /// collector: private key for --listen-cert, in PEM, without a password
    #[arg(id = "listen-key", long = "listen-key", value_name = "FILE.pem")]
    #[arg(hide_short_help = true)]
    #[serde(skip_serializing_if = "Option::is_none")]
    tls_key: Option<PathBuf>,

    /// collector: CA certificates for exporters over TLS, in PEM
    ///
    /// Exporters then need a certificate from one of these CAs. Default: every exporter may send.
    #[arg(id = "listen-ca", long = "listen-ca", value_name = "FILE.pem")]
    #[arg(hide_short_help = true)]
    #[serde(skip_serializing_if = "Option::is_none")]
    tls_ca: Option<PathBuf>,
}

/// Deserialises a list of texts, or a single text.
fn texts<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let paths: Vec<PathBuf> = list::deserialize(deserializer)?;
    let texts = paths
        .into_iter()
        .map(|path| path.to_string_lossy().into_owned());
    Ok(texts.collect())
}

impl Default for CollectorOptions {
    fn default() -> Self {
        Self {
            listen: Vec::new(),
            from: Vec::new(),
            lag: Time(Duration::from_secs(150)),
            records: CountAboveZero(1_000_000),
            scale_sampled: false,
            only_microflows: false,
            tls_cert: None,
            tls_key: None,
            tls_ca: None,
        }
    }
}

const LISTEN: &EngineOption =
    &EngineOption::of("engine.collector", "listen", "listen", "\"udp://:4739\"");
const FROM: &EngineOption =
    &EngineOption::of("engine.collector", "flows-from", "from", "\"flows.ipfix\"");
const LAG: &EngineOption = &EngineOption::of("engine.collector", "collector-lag", "lag", "\"35m\"");
const RECORDS: &EngineOption = &EngineOption::of(
    "engine.collector",
    "collector-records",
    "records",
    "4000000",
);
const SCALE: &EngineOption =
    &EngineOption::of("engine.collector", "scale-sampled", "scale-sampled", "true");
const ONLY_MICROFLOWS: &EngineOption = &EngineOption::of(
    "engine.collector",
    "only-microflows",
    "only-microflows",
    "true",
);
const TLS_CERT: &EngineOption = &EngineOption::of(
    "engine.collector",
    "listen-cert",
    "tls-cert",
    "\"/etc/turboflow/collector.pem\"",
);
const TLS_KEY: &EngineOption = &EngineOption::of(
    "engine.collector",
    "listen-key",
    "tls-key",
    "\"/etc/turboflow/collector.key\"",
);
const TLS_CA: &EngineOption = &EngineOption::of(
    "engine.collector",
    "listen-ca",
    "tls-ca",
    "\"/etc/turboflow/exporters.pem\"",
);

/// The engine of the crate `turboflow-engine-collector`.
pub(super) struct Collector;

impl Options for CollectorOptions {
    const ENGINE: &'static str = "collector";
}

/// Whether -r names the input files, as it does for `turboflow collect`.
static READS: AtomicBool = AtomicBool::new(false);

/// The option that names input files, as the user knows it.
fn files() -> Key {
    match READS.load(Ordering::Relaxed) {
        true => Key::Files,
        false => Key::Of(FROM),
    }
}

/// An address to listen at, as the user writes it.
pub(crate) fn example_to_listen() -> String {
    Key::Of(LISTEN).with("udp://:4739")
}

/// Turns the run into one that receives flow records: selects this engine, and gives it the run's
/// input files.
pub(crate) fn settle(run: &mut RunConfig) -> anyhow::Result<()> {
    READS.store(true, Ordering::Relaxed);
    CollectorOptions::ENGINE.clone_into(&mut run.engine.name);
    let mut options = options::read::<CollectorOptions>(&run.engine)?;
    if !options.from.is_empty() {
        bail!(
            "{} is of no use here: write {}",
            Key::Of(FROM),
            Key::Files.with("FILE")
        );
    }
    options.from.append(&mut run.source.files);
    options::put(&options, &mut run.engine)
}

impl EngineKind for Collector {
    fn abilities(&self) -> Abilities {
        turboflow_engine_collector::abilities()
    }

    fn abilities_in(&self, run: &RunConfig) -> anyhow::Result<Abilities> {
        let options = options::read::<CollectorOptions>(&run.engine)?;
        Ok(match options.only_microflows {
            true => turboflow_engine_collector::abilities_of_microflows(),
            false => self.abilities(),
        })
    }

    fn is_built(&self) -> bool {
        true
    }

    fn about(&self) -> &'static str {
        "flow records from routers and other probes: IPFIX, NetFlow, sFlow (turboflow collect)"
    }

    fn options(&self) -> &'static [&'static EngineOption] {
        &[
            LISTEN,
            FROM,
            LAG,
            RECORDS,
            SCALE,
            ONLY_MICROFLOWS,
            TLS_CERT,
            TLS_KEY,
            TLS_CA,
        ]
    }

    fn meters_interfaces(&self) -> bool {
        false
    }

    fn listen_option(&self) -> Option<&'static EngineOption> {
        Some(LISTEN)
    }

    fn file_options(&self) -> &'static [&'static EngineOption] {
        &[FROM]
    }

    fn written(&self) -> Option<&'static dyn WrittenOptions> {
        Some(&WrittenAs::<CollectorOptions>::HERE)
    }

    fn remote_engine(&self, run: &RunConfig) -> anyhow::Result<Option<Box<dyn RemoteSetup>>> {
        Ok(Some(Box::new(CollectorSetup {
            options: options::read(&run.engine)?,
            identity: Identity::default(),
        })))
    }
}

impl CollectorOptions {
    fn config(&self, config: &PipelineConfig) -> CollectorConfig {
        let lag_ns = u64::try_from(self.lag.0.as_nanos()).unwrap_or(u64::MAX);
        CollectorConfig {
            lag_ns: (!self.listen.is_empty()).then_some(lag_ns),
            most_records: usize::try_from(self.records.0).unwrap_or(usize::MAX),
            cell_ns: config.timeouts.cell_ns(config.max_age_ns),
            window_ns: config.timeouts.align_ns.and_then(NonZeroU64::new),
            icmp_ports: config.icmp_ports,
            scales_sampled: self.scale_sampled,
            only_microflows: self.only_microflows,
        }
    }
}

/// The parsed options of a run.
struct CollectorSetup {
    options: CollectorOptions,
    /// The certificate shown to exporters over TLS.
    identity: Identity,
}

/// Adds to an error what the file is, if it is of another kind.
fn with_kind(error: &StreamError, path: &Path) -> anyhow::Error {
    let mut begin = [0; 4];
    // A pipe may never be opened a second time.
    if !path.is_file()
        || File::open(path)
            .and_then(|mut file| file.read_exact(&mut begin))
            .is_err()
    {
        return anyhow!("{error}");
    }
    let hint = match &begin {
        _ if CaptureFile::open(path).is_ok() => {
            "it is a capture of packets: `turboflow record -r FILE` meters it"
        }
        [0x1f, 0x8b, ..] | [0x28, 0xb5, 0x2f, 0xfd] => "it is compressed: unpack it first",
        b"PAR1" | b"src_" => {
            "it has flow records: `turboflow show` and `turboflow replay` read them"
        }
        _ => return anyhow!("{error}"),
    };
    anyhow!("{error}: {hint}")
}

impl RemoteSetup for CollectorSetup {
    fn unknown_options(&self, run: &RunConfig) -> Vec<String> {
        options::given([
            (options::has_ring_size(run), Key::RingSize),
            (!run.source.promiscuous, Key::Promiscuous),
            (run.source.snap_length.is_some(), Key::SnapLength),
            (run.source.readers.0 > 1, Key::Readers),
            (run.engine.microflow_slots.is_some(), Key::MicroflowSlots),
        ])
    }

    fn has_room(&self, layout: &Layout) -> anyhow::Result<()> {
        let refused = turboflow_engine_collector::refused(layout);
        if let Some(what) = refused.filter(|_| !self.options.only_microflows) {
            bail!(
                "flow records of other exporters do not contain {what}: leave it out of the \
                 definition, or accept only microflow records from TurboFlow ({})",
                Key::Of(ONLY_MICROFLOWS)
            );
        }
        Ok(())
    }

    fn check(&self, _: &RunConfig, _: &PipelineConfig, layout: &Layout) -> anyhow::Result<()> {
        self.has_room(layout)?;
        let CollectorOptions { from, listen, .. } = &self.options;
        if from.is_empty() && listen.is_empty() {
            bail!(
                "engine `collector` needs exporters: add {} or {}",
                example_to_listen(),
                files().with("FILE")
            );
        }
        if !from.is_empty() && !listen.is_empty() {
            bail!(
                "{} and {} are two sources: leave one out",
                Key::Of(LISTEN),
                files()
            );
        }
        if from.iter().filter(|path| is_stdin(path)).count() > 1 {
            bail!("standard input ({} -) can be read only once", files());
        }
        if self.options.only_microflows && self.options.scale_sampled {
            bail!(
                "{} is for records of other exporters, and {} refuses those: leave one out",
                Key::Of(SCALE),
                Key::Of(ONLY_MICROFLOWS)
            );
        }
        if !from.is_empty() && self.options.lag != CollectorOptions::default().lag {
            bail!(
                "{} is for records from a network: those of a file need none; leave it out",
                Key::Of(LAG)
            );
        }
        if !from.is_empty() && self.options.only_microflows {
            bail!(
                "{} is for records from a network: for files of microflow records, use \
                 `turboflow record` with {}",
                Key::Of(ONLY_MICROFLOWS),
                Key::Engine.with("records")
            );
        }
        tls::check(self.options.files(Listeners::check(listen)?)?.as_ref())
    }

    fn open(
        &self,
        run: &RunConfig,
        config: &PipelineConfig,
        layout: &Layout,
    ) -> anyhow::Result<OpenEngines> {
        self.check(run, config, layout)?;
        let CollectorOptions { from, listen, .. } = &self.options;
        let mut sources: Vec<Box<dyn MessageSource>> = Vec::new();
        for (session, path) in from.iter().enumerate() {
            let mut file = FileSource::new(path, open_stream(path)?, session as u64);
            file.begin(layout)
                .map_err(|error| with_kind(&error, path))?;
            sources.push(Box::new(file));
        }
        if !listen.is_empty() {
            // Before root is dropped, because only root may be able to read a private key.
            if let Some(files) = self.options.files(Listeners::check(listen)?)? {
                self.identity.read(&files)?;
            }
            let listeners = Listeners::open(listen, self.identity.clone(), run.service.quiet)?;
            sources.push(Box::new(listeners));
        }
        let name = match &sources[..] {
            [source] => source.name(),
            sources => format!("{} files", sources.len()),
        };
        let own = self.options.config(config);
        let engines = sources.into_iter().map(|source| {
            Box::new(CollectorEngine::new(source, layout, own)) as Box<dyn RemoteEngine>
        });
        Ok(OpenEngines {
            name,
            engines: engines.collect(),
            held: Vec::new(),
            captures: Default::default(),
        })
    }

    fn why_records_are_lost(&self) -> String {
        "the sequence numbers of exporters show that they did not arrive".to_owned()
    }

    fn why_frames_are_lost(&self) -> Option<&'static str> {
        Some(
            "are missing: the probe reports that its capture dropped them, or their microflow \
             records did not arrive here; the ledger of the probe tells more",
        )
    }

    fn shortcomings(&self, counts: &[OwnCount]) -> Vec<String> {
        Ended(counts).shortcomings(&Key::Of(LAG), &Key::Of(SCALE))
    }

    fn closing(&self, counts: &[OwnCount], _: u64) -> Closing {
        Ended(counts).closing(self.options.listen.is_empty())
    }

    fn check_outputs(&self, run: &RunConfig) -> anyhow::Result<()> {
        let outputs = run.outputs.iter().map(|output| output.to.as_path());
        Listeners::check_outputs(&self.options.listen, outputs)
    }

    /// The certificate may expire while the collector runs.
    fn reread(&self) -> Option<RereadByEngine> {
        let has_tls = Listeners::check(&self.options.listen).ok()?;
        let files = self.options.files(has_tls).ok()??;
        Some(self.identity.reread(files))
    }
}
