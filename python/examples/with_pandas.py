# SPDX-License-Identifier: Apache-2.0
"""The addresses that send the most bytes, with pandas: `python with_pandas.py office.pcap`."""

import sys

import turboflow

flows = turboflow.read(sys.argv[1]).read_pandas()
senders = flows.groupby("src_addr")[["packets", "bytes"]].sum()
print(senders.nlargest(5, "bytes"))
print("bytes in all:", flows["bytes"].sum())
