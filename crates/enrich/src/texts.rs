// SPDX-License-Identifier: Apache-2.0
//! Parses text files with one line per host, service or network.

use std::collections::HashMap;
use std::net::IpAddr;

use turboflow_record::{Network, clean_text, protocol_number};

use crate::EnrichError;
use crate::networks::{Networks, Place};

/// The words of each line, with the number of the line, without comments that start with `#`.
fn lines(text: &str) -> impl Iterator<Item = (usize, Vec<&str>)> {
    let lines = text.lines().enumerate().map(|(index, line)| {
        let said = line.split('#').next().unwrap_or_default();
        (index + 1, said.split_whitespace().collect::<Vec<_>>())
    });
    lines.filter(|(_, words)| !words.is_empty())
}

fn wrong(line: usize, reason: String) -> EnrichError {
    EnrichError::Line { line, reason }
}

/// A name in a form that a record can hold.
fn name(line: usize, text: &str) -> Result<String, EnrichError> {
    let clean = clean_text(text);
    match !text.is_empty() && clean == text {
        true => Ok(text.to_owned()),
        false => Err(wrong(
            line,
            format!("{text:?} is not a name: write up to 255 bytes without control characters"),
        )),
    }
}

pub(crate) fn hosts(text: &str, to: &mut HashMap<IpAddr, String>) -> Result<(), EnrichError> {
    for (line, words) in lines(text) {
        let [address, host, ..] = words[..] else {
            let reason = "write an address and a name, such as 192.0.2.1 router".to_owned();
            return Err(wrong(line, reason));
        };
        // A zone belongs to an interface of this host, not to the address in a record.
        let plain = address.split('%').next().unwrap_or_default();
        let parsed = plain.parse().map_err(|_| {
            let reason = format!(
                "{address:?} is not an address: write an address and a name, such as 192.0.2.1 router"
            );
            wrong(line, reason)
        })?;
        to.entry(parsed).or_insert(name(line, host)?);
    }
    Ok(())
}

pub(crate) fn services(text: &str, to: &mut HashMap<(u8, u16), String>) -> Result<(), EnrichError> {
    for (line, words) in lines(text) {
        let refused = || {
            let reason = "write a name, a port and a protocol, such as https 443/tcp".to_owned();
            wrong(line, reason)
        };
        let [service, port, ..] = words[..] else {
            return Err(refused());
        };
        let (port, protocol) = port.split_once('/').ok_or_else(refused)?;
        let port = port.parse().map_err(|_| refused())?;
        // Protocols without ports, such as `ddp`, are in /etc/services, too.
        let Some(protocol) = protocol_number(protocol) else {
            continue;
        };
        let protocol = u8::try_from(protocol).map_err(|_| refused())?;
        to.entry((protocol, port)).or_insert(name(line, service)?);
    }
    Ok(())
}

const HEADER: [&str; 3] = ["network", "site", "owner"];

pub(crate) fn networks(text: &str, to: &mut Networks) -> Result<(), EnrichError> {
    let mut lines = text
        .lines()
        .enumerate()
        .map(|(index, line)| (index + 1, line));
    let header = lines.next().map_or("", |(_, line)| line);
    if header.split(',').map(str::trim).ne(HEADER) {
        let reason = format!("{header:?} is not a header: write {}", HEADER.join(","));
        return Err(wrong(1, reason));
    }
    for (line, text) in lines {
        if text.trim().is_empty() {
            continue;
        }
        let fields = fields(text).ok_or_else(|| {
            wrong(
                line,
                "a quote is not closed: write \"a, b\", and \"\" for a quote".to_owned(),
            )
        })?;
        let [written, site, owner] = &fields[..] else {
            let reason = format!("it has {} fields: write {}", fields.len(), HEADER.join(","));
            return Err(wrong(line, reason));
        };
        let network = Network::parse(written).ok_or_else(|| {
            wrong(
                line,
                format!("{written:?} is not a network: write one such as 10.1.0.0/16"),
            )
        })?;
        let given = written
            .split_once('/')
            .and_then(|(_, length)| length.parse().ok());
        let length = given.unwrap_or(if network.first().is_ipv4() { 32 } else { 128 });
        let optional = |text: &String| match text.is_empty() {
            true => Ok(None),
            false => name(line, text).map(Some),
        };
        let place = Place {
            site: optional(site)?,
            owner: optional(owner)?,
        };
        if !to.add(network, length, place) {
            return Err(wrong(
                line,
                format!("{network} is there twice: leave one of them out"),
            ));
        }
    }
    Ok(())
}

/// The fields of a CSV line (RFC 4180), trimmed; `None` if a quote is not closed.
fn fields(line: &str) -> Option<Vec<String>> {
    let (mut fields, mut field, mut in_quotes) = (Vec::new(), String::new(), false);
    let mut letters = line.trim_end_matches('\r').chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' if in_quotes && letters.peek() == Some(&'"') => {
                field.push('"');
                letters.next();
            }
            '"' => in_quotes = !in_quotes,
            ',' if !in_quotes => fields.push(std::mem::take(&mut field)),
            other => field.push(other),
        }
    }
    fields.push(field);
    (!in_quotes).then(|| fields.iter().map(|field| field.trim().to_owned()).collect())
}
