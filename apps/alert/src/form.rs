// SPDX-License-Identifier: Apache-2.0
//! Alerts as others read them.

use serde_json::{Map, Value, json};

use crate::{Alert, Severity};

/// An alert as an object: what a webhook gets, in a list.
#[must_use]
pub fn json(alert: &Alert) -> Value {
    json!({
        "rule": alert.rule,
        "severity": alert.severity.name(),
        "summary": alert.summary,
        "labels": labels(alert),
        "value": alert.value,
        "time": alert.time,
    })
}

/// Alerts for `POST /api/v2/alerts` of Alertmanager.
#[must_use]
pub fn alertmanager(alerts: &[Alert]) -> Value {
    let alerts = alerts.iter().map(|alert| {
        let mut labels = labels(alert);
        labels.insert("alertname".to_owned(), alert.rule.clone().into());
        labels.insert("severity".to_owned(), alert.severity.name().into());
        json!({
            "labels": labels,
            "annotations": { "summary": alert.summary, "value": alert.value.to_string() },
            "startsAt": alert.time,
        })
    });
    alerts.collect()
}

fn labels(alert: &Alert) -> Map<String, Value> {
    let labels = alert.labels.iter();
    let labels = labels.map(|(name, label)| (name.clone(), label.clone().into()));
    labels.collect()
}

/// The facility local0 (RFC 5424, section 6.2.1).
const LOCAL0: u8 = 16;

/// An alert as a message of syslog (RFC 5424, section 6). The labels are its structured data, under
/// the enterprise number of documentation.
#[must_use]
pub fn syslog(alert: &Alert) -> String {
    let severity = match alert.severity {
        Severity::Critical => 2,
        Severity::Warning => 4,
        Severity::Info => 6,
    };
    let mut parameters = format!(" value=\"{}\"", alert.value);
    for (name, label) in &alert.labels {
        let name: String = name
            .chars()
            .filter(|c| !matches!(c, ' ' | '=' | ']' | '"'))
            .collect();
        parameters.push_str(&format!(" {name}=\"{}\"", escaped(label)));
    }
    format!(
        "<{}>1 {} - turboflow - {} [alert@32473{parameters}] {}",
        LOCAL0 * 8 + severity,
        alert.time,
        alert.rule,
        alert.summary
    )
}

/// Escapes what ends a parameter (RFC 5424, section 6.3.3).
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        if matches!(letter, '"' | '\\' | ']') {
            escaped.push('\\');
        }
        escaped.push(letter);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alert() -> Alert {
        Alert {
            rule: "port-scan".to_owned(),
            severity: Severity::Warning,
            summary: "192.0.2.1 scans".to_owned(),
            labels: vec![("src_addr".to_owned(), "a\"]b".to_owned())],
            value: 7,
            time: "2024-03-01T12:30:00Z".to_owned(),
        }
    }

    #[test]
    fn messages_of_syslog_are_those_of_the_rfc() {
        assert_eq!(
            syslog(&alert()),
            "<132>1 2024-03-01T12:30:00Z - turboflow - port-scan \
             [alert@32473 value=\"7\" src_addr=\"a\\\"\\]b\"] 192.0.2.1 scans"
        );
    }

    #[test]
    fn alertmanager_gets_a_name_and_a_severity() {
        let alerts = alertmanager(&[alert()]);
        assert_eq!(alerts[0]["labels"]["alertname"], "port-scan");
        assert_eq!(alerts[0]["labels"]["severity"], "warning");
        assert_eq!(alerts[0]["startsAt"], "2024-03-01T12:30:00Z");
    }
}
