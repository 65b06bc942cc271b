// SPDX-License-Identifier: Apache-2.0
//! The options for enrichment files, which tell more about addresses and ports. The program
//! `turboflow-query` includes this source file too, for the commands `dashboard` and `report`.

use std::path::PathBuf;

use clap::Args;
use turboflow_query::EnrichmentFiles;

/// Files of names, networks and databases.
#[derive(Debug, Args)]
#[command(next_help_heading = "More columns")]
pub(crate) struct EnrichArgs {
    /// Names of hosts, as in /etc/hosts: src_name and dst_name. Repeat for more
    #[arg(long, value_name = "FILE")]
    hosts: Vec<PathBuf>,

    /// Names of services, as in /etc/services: src_service and dst_service
    #[arg(long, value_name = "FILE")]
    services: Vec<PathBuf>,

    /// Sites and owners (CSV: network,site,owner): src_site, src_owner, dst_site, dst_owner
    #[arg(long, value_name = "FILE")]
    networks: Vec<PathBuf>,

    /// Autonomous systems (MaxMind database): src_as, src_as_name, dst_as and dst_as_name
    #[arg(long, value_name = "FILE.mmdb")]
    asn: Option<PathBuf>,

    /// Countries (database in MaxMind's format): src_country and dst_country
    #[arg(long, value_name = "FILE.mmdb")]
    country: Option<PathBuf>,
}

impl EnrichArgs {
    /// The enrichment files.
    pub(crate) fn files(&self) -> EnrichmentFiles {
        EnrichmentFiles {
            hosts: self.hosts.clone(),
            services: self.services.clone(),
            networks: self.networks.clone(),
            asn: self.asn.clone(),
            country: self.country.clone(),
        }
    }
}
