// SPDX-License-Identifier: Apache-2.0
//! The files that the browser loads: built from `web` into `dist`, and embedded in the program.

/// An embedded file: its path, media type and content.
pub(crate) struct Asset {
    pub(crate) path: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) content: &'static [u8],
}

/// All embedded files that can be requested.
pub(crate) const ASSETS: [Asset; 4] = [
    Asset {
        path: "/",
        kind: "text/html; charset=utf-8",
        content: include_bytes!("../dist/index.html"),
    },
    Asset {
        path: "/app.js",
        kind: "text/javascript; charset=utf-8",
        content: include_bytes!("../dist/app.js"),
    },
    Asset {
        path: "/app.css",
        kind: "text/css; charset=utf-8",
        content: include_bytes!("../dist/app.css"),
    },
    Asset {
        path: "/icon.svg",
        kind: "image/svg+xml",
        content: include_bytes!("../dist/icon.svg"),
    },
];

/// The page of a report, including its script and style. [`PLACE`] marks where the answers go.
pub(crate) const REPORT: &str = include_str!("../dist/report.html");

/// Placeholder for the answers.
pub(crate) const PLACE: &str = "{{ANSWERS}}";
