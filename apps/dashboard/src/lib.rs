// SPDX-License-Identifier: Apache-2.0
//! The dashboard: a page about files of flow records, and the server behind it.
//!
//! Every number comes from the query engine of `turboflow show` ([`turboflow_query`]), and every
//! answer includes the command that reproduces it. [`Server`] serves the embedded page and answers
//! questions in JSON. It reads only the files that it was given, writes nothing, and takes no path
//! from a request. [`report`] writes the page and its answers into a single file.
//!
//! [`Limits`] bounds the work and the memory that a client can cause.

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
