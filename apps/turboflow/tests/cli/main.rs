// SPDX-License-Identifier: Apache-2.0
//! Runs the program from the outside, as users do.
#![allow(clippy::unwrap_used, reason = "in tests a panic is the report")]

mod alert;
mod alert_follow;
mod alert_rules;
mod align;
mod applications;
mod bad_input;
mod bridge;
mod cases;
mod certificates;
mod classify;
#[cfg(target_os = "linux")]
mod collect_faults;
#[cfg(target_os = "linux")]
mod collect_service;
#[cfg(target_os = "linux")]
mod collect_tls;
#[cfg(target_os = "linux")]
mod collecting;
mod collectors;
mod definition;
mod enrich;
mod faults;
mod filter;
mod fragments;
mod generate;
mod help;
mod identity;
mod invariance;
mod kafka;
mod lake;
mod log;
#[cfg(target_os = "linux")]
mod loss;
#[cfg(target_os = "linux")]
mod microflows;
mod outputs;
mod p4;
mod package;
mod pipes;
mod plan;
mod plan_offload;
mod plan_refusals;
#[cfg(target_os = "linux")]
mod probes;
mod pseudonyms;
mod reader;
mod record;
mod records;
mod replay;
mod reported;
mod rtl;
#[cfg(target_os = "linux")]
mod screen;
mod service;
mod show;
mod show_files;
mod sql;
#[cfg(target_os = "linux")]
mod stop;
mod support;
#[cfg(target_os = "linux")]
mod telemetry;
mod terminal;
mod texts;
mod tls;
mod top;
mod usage;
