// SPDX-License-Identifier: Apache-2.0
//! The arguments of `turboflow dashboard` and `turboflow report`. The program `turboflow`, which
//! passes them on, includes this file too, so that its help, completions and manual pages list
//! them.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

use crate::enrich_args::EnrichArgs;

/// The last line of `-h`, which fits on one screen.
const SHORT: &str = "--help has examples and exit codes.";

const DASHBOARD_EXAMPLES: &str = "\
Examples:
  A file
    turboflow dashboard flows.parquet
  A folder, whose new files are shown as they come, and the running program that writes them
    turboflow dashboard /var/lib/turboflow --live 127.0.0.1:9414
  With names, sites and countries, which are fields like all others
    turboflow dashboard flows --hosts /etc/hosts --networks sites.csv --country country.mmdb
  For other machines: with a token, behind a proxy that has a name and TLS
    head -c 24 /dev/urandom | base64 > token
    turboflow dashboard flows --listen 192.0.2.1:8415 --token-file token --host flows.example.org

Each number on the page comes with the `turboflow show` command that gives it. The address of the
page in the browser holds its whole state. Keys: / filter, 1 to 8 pages, [ and ] time, t theme.
The dashboard only reads. The page talks to this program, and to nothing else on the network.

Exit codes: 0 ended by a signal; 2 the files could not be read, or the address is not free.";

const REPORT_EXAMPLES: &str = "\
Examples:
  turboflow report flows.parquet -o report.html
  turboflow report 'flows/2024-03-01*.parquet' --where 'net 192.0.2.0/24' -o site.html

The file is self-contained and needs no server. It has the largest hosts, services and
conversations, traffic over time, the ledger, and the 1000 largest flow records.

Exit codes: 0 all well; 2 the files could not be read, or the report could not be written.";

/// Look at flow records in a browser: who talks, over what, and what is missing (turboflow-query).
///
/// One page with the numbers of `turboflow show`, only for this machine unless a token is set. Runs
/// in the program `turboflow-query`.
#[derive(Debug, Args)]
#[command(after_help = SHORT, after_long_help = DASHBOARD_EXAMPLES)]
pub(crate) struct DashboardArgs {
    /// Files of flow records with the same columns, folders of them, or patterns in quotes
    #[arg(value_name = "FILE", required_unless_present = "live")]
    pub(crate) files: Vec<PathBuf>,

    /// The metrics address of a running `turboflow record` or `turboflow run`, to follow it
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) live: Option<String>,

    /// A ledger that is not beside the records
    #[arg(long, value_name = "FILE.json")]
    pub(crate) ledger: Vec<PathBuf>,

    /// Where to listen
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8415")]
    pub(crate) listen: SocketAddr,

    /// A file with a token that clients have to know: 16 to 256 letters, digits or any of
    /// `-._~+/=`; needed if other machines can connect
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,

    /// A name by which clients reach this host, besides localhost and its address
    #[arg(long, value_name = "NAME")]
    pub(crate) host: Vec<String>,

    #[command(flatten)]
    pub(crate) enrich: EnrichArgs,
}

/// Write the dashboard of flow records into one HTML file, which opens anywhere (turboflow-query).
#[derive(Debug, Args)]
#[command(after_help = SHORT, after_long_help = REPORT_EXAMPLES)]
pub(crate) struct ReportArgs {
    /// Files of flow records with the same columns, folders of them, or patterns in quotes
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,

    /// The file to write; - is standard output
    #[arg(short, long, value_name = "FILE.html")]
    pub(crate) output: PathBuf,

    /// Only records that match, in the language of `turboflow show`
    #[arg(long = "where", value_name = "EXPR")]
    pub(crate) filter: Option<String>,

    /// A ledger that is not beside the records
    #[arg(long, value_name = "FILE.json")]
    pub(crate) ledger: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) enrich: EnrichArgs,
}
