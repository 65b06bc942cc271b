# SPDX-License-Identifier: Apache-2.0
"""The services with the most bytes, with Polars: `python with_polars.py office.pcap`."""

import sys

import polars as pl
import turboflow

flows = pl.from_arrow(turboflow.read(sys.argv[1], biflow=True))
total = pl.col("bytes") + pl.col("reverse_bytes")
services = flows.group_by("protocol", "dst_port").agg(pl.len().alias("flows"), total.sum().alias("bytes"))
print(services.sort("bytes", descending=True).head(5))
print("bytes in all:", services["bytes"].sum())
