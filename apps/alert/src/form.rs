// SPDX-License-Identifier: Apache-2.0
//! Formats alerts for other programs.

use serde_json::{Map, Value, json};

use crate::{Alert, Severity};

/// An alert as an object. A webhook receives a list of them.
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
        let labels = alert.labels.iter();
        let labels = labels.map(|(name, label)| (label_name(name), label.clone().into()));
        let mut labels: Map<String, Value> = labels.collect();
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

/// A label name that Alertmanager accepts: `[a-zA-Z_][a-zA-Z0-9_]*`.
fn label_name(field: &str) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let mut name: String = field.chars().map(letter).collect();
    if !name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        name.insert(0, '_');
    }
    name
}

fn labels(alert: &Alert) -> Map<String, Value> {
    let labels = alert.labels.iter();
    let labels = labels.map(|(name, label)| (name.clone(), label.clone().into()));
    labels.collect()
}

/// The facility local0 (RFC 5424, section 6.2.1).
const LOCAL0: u8 = 16;

/// An alert as a syslog message (RFC 5424, section 6). The labels are structured data under the
/// enterprise number reserved for documentation.
#[must_use]
pub fn syslog(alert: &Alert) -> String {
    let severity = match alert.severity {
        Severity::Critical => 2,
        Severity::Warning => 4,
        Severity::Info => 6,
    };
    let mut parameters = format!(" value=\"{}\"", alert.value);
    for (name, label) in &alert.labels {
        let (name, label) = (parameter_name(name), escaped(&one_line(label)));
        parameters.push_str(&format!(" {name}=\"{label}\""));
    }
    format!(
        "<{}>1 {} - turboflow - {} [alert@32473{parameters}] {}",
        LOCAL0 * 8 + severity,
        alert.time,
        alert.rule,
        one_line(&alert.summary)
    )
}

/// Maximum length of a parameter name (RFC 5424, section 6.3.3).
const NAME_MAX: usize = 32;

/// A parameter name: printable ASCII without `=`, `]` and `"`.
fn parameter_name(field: &str) -> String {
    let letter = |c: char| match c {
        '=' | ']' | '"' => '_',
        c if c.is_ascii_graphic() => c,
        _ => '_',
    };
    field.chars().map(letter).take(NAME_MAX).collect()
}

/// Text without control characters, so that no part of it can pass as a separate message.
fn one_line(text: &str) -> String {
    let letter = |c: char| if c.is_control() { ' ' } else { c };
    text.chars().map(letter).collect()
}

/// Escapes the characters that would end a parameter (RFC 5424, section 6.3.3).
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
    fn names_of_labels_are_those_that_receivers_take() {
        let mut alert = alert();
        let named = |name: &str| (name.to_owned(), "a\nb".to_owned());
        alert.labels = ["src_addr/24", "first_ns:5m", "24h", "a=\"b\"] ä"]
            .map(named)
            .to_vec();
        alert.labels.push(named(&"long".repeat(10)));
        alert.summary = "two\nlines".to_owned();
        let sent = alertmanager(&[alert.clone()]);
        let labels = sent[0]["labels"].as_object().unwrap();
        for name in ["src_addr_24", "first_ns_5m", "_24h", "a__b____"] {
            assert_eq!(labels[name], "a\nb", "{name}");
        }
        assert_eq!(
            syslog(&alert),
            "<132>1 2024-03-01T12:30:00Z - turboflow - port-scan \
             [alert@32473 value=\"7\" src_addr/24=\"a b\" first_ns:5m=\"a b\" 24h=\"a b\" \
             a__b____=\"a b\" longlonglonglonglonglonglonglong=\"a b\"] two lines"
        );
        // In JSON, fields and values keep their original form.
        assert_eq!(json(&alert)["labels"]["src_addr/24"], "a\nb");
    }

    #[test]
    fn alertmanager_gets_a_name_and_a_severity() {
        let alerts = alertmanager(&[alert()]);
        assert_eq!(alerts[0]["labels"]["alertname"], "port-scan");
        assert_eq!(alerts[0]["labels"]["severity"], "warning");
        assert_eq!(alerts[0]["startsAt"], "2024-03-01T12:30:00Z");
    }
}
