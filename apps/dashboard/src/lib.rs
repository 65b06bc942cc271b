// SPDX-License-Identifier: Apache-2.0
//! The dashboard: one page over files of flow records, and what answers it.
//!
//! Every number comes from the executor of `turboflow show` ([`turboflow_query`]), and every answer
//! has the command that gives it. [`Server`] serves the page, which is built in, and answers
//! questions in JSON; it reads the files that it was given, writes nothing, and takes no path from
//! a request. [`report`] writes the page and its answers into one file.
//!
//! What a client can make it keep or do is bounded by [`Limits`].

#![forbid(unsafe_code)]

mod answer;
mod assets;
mod connections;
mod error;
mod files;
mod guard;
mod ledger;
mod limits;
mod links;
mod live;
mod panel;
mod plan;
mod pool;
mod question;
mod report;
mod routes;
mod series;
mod server;
mod store;
mod token;

pub use error::DashboardError;
pub use limits::Limits;
pub use report::{Reported, report};
pub use server::{Options, Server};
pub use token::Token;
