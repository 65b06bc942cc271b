// SPDX-License-Identifier: Apache-2.0
//! What the browser gets: built from `web` into `dist`, and part of this program.

/// A built-in file: its path, its type, its content.
pub(crate) struct Asset {
    pub(crate) path: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) content: &'static [u8],
}

/// All that can be asked for.
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

/// The page of a report, with script and style in it, and [`PLACE`] where its answers go.
pub(crate) const REPORT: &str = include_str!("../dist/report.html");

/// Where the answers go.
pub(crate) const PLACE: &str = "{{ANSWERS}}";
