# SPDX-License-Identifier: Apache-2.0
"""Feature sets of other flow meters, with the column names of those meters.

The program computes the values that `nfstream.toml` and `cicflowmeter.toml` define. They are exact,
however a flow was split into microflow records. This module only does arithmetic on each flow record:
it converts units, and computes sample standard deviations and sums of both directions.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute

FOLDER = Path(__file__).parent

# The TCP flags, from the lowest bit up.
FLAGS = ("fin", "syn", "rst", "psh", "ack", "urg", "ece", "cwr")
# The first value of each bin of `flags` in the definitions.
BINS = np.array([*range(97), *range(128, 161), *range(192, 225)])
NS_PER_MS, NS_PER_US, NS_PER_S = 1_000_000, 1_000, 1_000_000_000


@dataclass(frozen=True)
class FeatureSet:
    """The definition and options for the program, and the columns made of its records."""

    definition: Path
    options: dict
    schema: pa.Schema
    columns: Callable[["Record"], dict]

    def convert(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Converts the program's records to records of this feature set."""
        columns = self.columns(Record(batch))
        arrays = [pa.array(columns[field.name], type=field.type, from_pandas=True) for field in self.schema]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


class Record:
    """Gives access to the columns of a batch, as arrays."""

    def __init__(self, batch: pa.RecordBatch):
        self._batch = batch

    def column(self, name: str) -> pa.Array:
        return self._batch.column(name)

    def number(self, name: str) -> np.ndarray:
        """A column as floats. 0 if no packet carried the input, as in the other meters."""
        return self.column(name).cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False)

    def whole(self, name: str) -> np.ndarray:
        """A column as integers, timestamps in nanoseconds. 0 if no packet carried the input."""
        column = self.column(name)
        column = column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column
        return column.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)

    def bins(self, name: str) -> np.ndarray:
        """A histogram as a matrix: a row for each record, a column for each bin."""
        column = self.column(name)
        values = column.flatten().cast(pa.int64()).to_numpy(zero_copy_only=False)
        return values.reshape(len(column), -1)

    def flag(self, name: str, bit: int) -> np.ndarray:
        """Numbers of packets with a flag. NaN if there are packets in a bin that does not determine it."""
        first, behind = BINS, np.append(BINS[1:], 1 << 12)
        span = 1 << bit
        # A bin determines the bit if it is equal in all values of the bin.
        same = (first // span == (behind - 1) // span) & (first < 224)
        has = (first >> bit & 1 == 1) & same
        bins = self.bins(name)
        counts = (bins @ has).astype(float)
        counts[(bins @ ~same) > 0] = np.nan
        return counts


def deviation(variance: np.ndarray, count: np.ndarray) -> np.ndarray:
    """The sample standard deviation, from the population variance. 0 for fewer than two values."""
    several = np.maximum(count, 2)
    return np.where(count > 1, np.sqrt(variance * several / (several - 1)), 0.0)


def ratio(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """The quotient, or 0 if the divisor is 0."""
    return np.where(below > 0, above / np.where(below > 0, below, 1), 0.0)


# NFStream's prefixes, and the prefixes of our columns: both directions, forward, reverse.
DIRECTIONS = {"bidirectional": "both_", "src2dst": "", "dst2src": "reverse_"}


def _sizes_and_gaps(record: Record) -> dict:
    """Packets, flags, sizes (bytes), gaps and times (ns), for each direction and for both together."""
    packets = {way: record.whole(f"{ours}packets") for way, ours in list(DIRECTIONS.items())[1:]}
    there, back = packets["src2dst"], packets["dst2src"]
    packets["bidirectional"] = there + back
    ways = {}
    for way, ours in DIRECTIONS.items():
        count = packets[way]
        gaps = np.maximum(count - 1, 0)
        way_of = {
            "packets": count,
            "variance": record.number(f"{ours}variance_size"),
            "gap_min": record.whole(f"{ours}gap_min"),
            "gap_max": record.whole(f"{ours}gap_max"),
            "gap_mean": record.number(f"{ours}gap_mean"),
            "gap_deviation": deviation(record.number(f"{ours}gap_variance"), gaps),
        }
        if way != "bidirectional":
            way_of |= {name: record.number(f"{ours}{name}_size") for name in ("min", "max", "mean")}
            way_of |= {name: record.whole(f"{ours}{name}_ns") for name in ("first", "last")}
        way_of["deviation"] = deviation(way_of["variance"], count)
        ways[way] = way_of
    first, second, both = ways["src2dst"], ways["dst2src"], ways["bidirectional"]
    is_both = (there > 0) & (back > 0)
    both["min"] = np.where(is_both, np.minimum(first["min"], second["min"]), first["min"] + second["min"])
    both["max"] = np.maximum(first["max"], second["max"])
    both["mean"] = ratio(first["mean"] * there + second["mean"] * back, there + back)
    both["first"] = np.where(is_both, np.minimum(first["first"], second["first"]), first["first"] + second["first"])
    both["last"] = np.maximum(first["last"], second["last"])
    for bit, name in enumerate(FLAGS):
        first[name], second[name] = record.flag("flags", bit), record.flag("reverse_flags", bit)
        both[name] = first[name] + second[name]
    return ways


def _nfstream(record: Record) -> dict:
    ways = _sizes_and_gaps(record)
    ways["src2dst"]["bytes"], ways["dst2src"]["bytes"] = record.whole("bytes"), record.whole("reverse_bytes")
    ways["bidirectional"]["bytes"] = record.whole("bytes") + record.whole("reverse_bytes")
    source = record.column("src_addr")
    macs = {"src": record.column("source_mac"), "dst": record.column("destination_mac")}
    vlan, inner_vlan = record.whole("vlan"), record.whole("inner_vlan")
    columns = {
        "expiration_id": (record.whole("end_reason") == 2).astype(np.int64),
        "src_ip": source,
        "dst_ip": record.column("dst_addr"),
        "src_port": record.whole("src_port"),
        "dst_port": record.whole("dst_port"),
        "protocol": record.whole("protocol"),
        "ip_version": np.where(pa.compute.match_substring(source, ":").to_numpy(zero_copy_only=False), 6, 4),
        "vlan_id": np.where(inner_vlan > 0, inner_vlan, vlan),
    }
    for end, mac in macs.items():
        mac = mac.fill_null("00:00:00:00:00:00")
        columns[f"{end}_mac"] = mac
        columns[f"{end}_oui"] = pa.compute.utf8_slice_codeunits(mac, 0, 8)
    for way, of in ways.items():
        first_ms, last_ms = of["first"] // NS_PER_MS, of["last"] // NS_PER_MS
        columns |= {
            f"{way}_first_seen_ms": first_ms,
            f"{way}_last_seen_ms": last_ms,
            f"{way}_duration_ms": last_ms - first_ms,
            f"{way}_packets": of["packets"],
            f"{way}_bytes": of["bytes"],
            f"{way}_min_ps": of["min"],
            f"{way}_mean_ps": of["mean"],
            f"{way}_stddev_ps": of["deviation"],
            f"{way}_max_ps": of["max"],
            f"{way}_min_piat_ms": of["gap_min"] // NS_PER_MS,
            f"{way}_mean_piat_ms": of["gap_mean"] / NS_PER_MS,
            f"{way}_stddev_piat_ms": of["gap_deviation"] / NS_PER_MS,
            f"{way}_max_piat_ms": of["gap_max"] // NS_PER_MS,
        }
        columns |= {f"{way}_{flag}_packets": of[flag] for flag in FLAGS}
    return columns


def _nfstream_schema() -> pa.Schema:
    texts = ("src_ip", "src_mac", "src_oui", "dst_ip", "dst_mac", "dst_oui")
    names = [
        "expiration_id", "src_ip", "src_mac", "src_oui", "src_port", "dst_ip", "dst_mac", "dst_oui",
        "dst_port", "protocol", "ip_version", "vlan_id",
    ]  # fmt: skip
    sums = ("first_seen_ms", "last_seen_ms", "duration_ms", "packets", "bytes")
    names += [f"{way}_{name}" for way in DIRECTIONS for name in sums]
    for unit in ("ps", "piat_ms"):
        of = ("min", "mean", "stddev", "max")
        names += [f"{way}_{name}_{unit}" for way in DIRECTIONS for name in of]
    flags = ("syn", "cwr", "ece", "urg", "ack", "psh", "rst", "fin")
    names += [f"{way}_{flag}_packets" for way in DIRECTIONS for flag in flags]

    def kind(name: str) -> pa.DataType:
        is_float = "_mean_" in name or "_stddev_" in name
        return pa.utf8() if name in texts else pa.float64() if is_float else pa.int64()

    return pa.schema([(name, kind(name)) for name in names])


CICFLOWMETER_TEXTS = ("Flow ID", "Src IP", "Dst IP")


def _cicflowmeter(record: Record) -> dict:
    ways = _sizes_and_gaps(record)
    there, back, both = ways["src2dst"], ways["dst2src"], ways["bidirectional"]
    payload, payload_back = record.whole("payload_bytes"), record.whole("reverse_payload_bytes")
    source, destination = record.column("src_addr"), record.column("dst_addr")
    ports = [record.column(name).cast(pa.utf8()) for name in ("src_port", "dst_port", "protocol")]
    duration_us = both["last"] // NS_PER_US - both["first"] // NS_PER_US
    seconds = (both["last"] - both["first"]) / NS_PER_S
    subflows = record.bins("both_gaps")[:, 1]
    columns = {
        "Flow ID": pa.compute.binary_join_element_wise(source, destination, *ports, "-"),
        "Src IP": source,
        "Src Port": record.whole("src_port"),
        "Dst IP": destination,
        "Dst Port": record.whole("dst_port"),
        "Protocol": record.whole("protocol"),
        "Timestamp": pa.array(both["first"], type=pa.timestamp("ns", "UTC")),
        "Flow Duration": duration_us,
        "Total Fwd Packet": there["packets"],
        "Total Bwd packets": back["packets"],
        "Total Length of Fwd Packet": payload,
        "Total Length of Bwd Packet": payload_back,
        "Flow Bytes/s": ratio(payload + payload_back, seconds),
        "Flow Packets/s": ratio(both["packets"], seconds),
        "Fwd Packets/s": ratio(there["packets"], seconds),
        "Bwd Packets/s": ratio(back["packets"], seconds),
        "Packet Length Variance": both["deviation"] ** 2,
        "Down/Up Ratio": ratio(back["packets"], there["packets"]),
        "Average Packet Size": both["mean"],
        "Fwd Segment Size Avg": there["mean"],
        "Bwd Segment Size Avg": back["mean"],
        "Subflow Fwd Packets": ratio(there["packets"], subflows),
        "Subflow Fwd Bytes": ratio(payload, subflows),
        "Subflow Bwd Packets": ratio(back["packets"], subflows),
        "Subflow Bwd Bytes": ratio(payload_back, subflows),
        "FWD Init Win Bytes": record.whole("window"),
        "Bwd Init Win Bytes": record.whole("reverse_window"),
        "Fwd Act Data Pkts": record.bins("with_payload")[:, 1],
    }
    for name, of in {"Fwd Packet Length": there, "Bwd Packet Length": back, "Packet Length": both}.items():
        columns |= {
            f"{name} Max": of["max"],
            f"{name} Min": of["min"],
            f"{name} Mean": of["mean"],
            f"{name} Std": of["deviation"],
        }
    for name, of in {"Flow IAT": both, "Fwd IAT": there, "Bwd IAT": back}.items():
        columns |= {
            f"{name} Total": (of["last"] - of["first"]) / NS_PER_US,
            f"{name} Mean": of["gap_mean"] / NS_PER_US,
            f"{name} Std": of["gap_deviation"] / NS_PER_US,
            f"{name} Max": of["gap_max"] / NS_PER_US,
            f"{name} Min": of["gap_min"] / NS_PER_US,
        }
    del columns["Flow IAT Total"]
    for name, of in {"Fwd": there, "Bwd": back}.items():
        columns |= {f"{name} PSH Flags": of["psh"], f"{name} URG Flags": of["urg"]}
    columns |= {f"{flag.upper()} Flag Count": both[flag] for flag in FLAGS}
    return columns


CICFLOWMETER_NAMES = [
    "Flow ID", "Src IP", "Src Port", "Dst IP", "Dst Port", "Protocol", "Timestamp", "Flow Duration",
    "Total Fwd Packet", "Total Bwd packets", "Total Length of Fwd Packet", "Total Length of Bwd Packet",
    "Fwd Packet Length Max", "Fwd Packet Length Min", "Fwd Packet Length Mean", "Fwd Packet Length Std",
    "Bwd Packet Length Max", "Bwd Packet Length Min", "Bwd Packet Length Mean", "Bwd Packet Length Std",
    "Flow Bytes/s", "Flow Packets/s", "Flow IAT Mean", "Flow IAT Std", "Flow IAT Max", "Flow IAT Min",
    "Fwd IAT Total", "Fwd IAT Mean", "Fwd IAT Std", "Fwd IAT Max", "Fwd IAT Min",
    "Bwd IAT Total", "Bwd IAT Mean", "Bwd IAT Std", "Bwd IAT Max", "Bwd IAT Min",
    "Fwd PSH Flags", "Bwd PSH Flags", "Fwd URG Flags", "Bwd URG Flags", "Fwd Packets/s", "Bwd Packets/s",
    "Packet Length Min", "Packet Length Max", "Packet Length Mean", "Packet Length Std",
    "Packet Length Variance", "FIN Flag Count", "SYN Flag Count", "RST Flag Count", "PSH Flag Count",
    "ACK Flag Count", "URG Flag Count", "CWR Flag Count", "ECE Flag Count", "Down/Up Ratio",
    "Average Packet Size", "Fwd Segment Size Avg", "Bwd Segment Size Avg", "Subflow Fwd Packets",
    "Subflow Fwd Bytes", "Subflow Bwd Packets", "Subflow Bwd Bytes", "FWD Init Win Bytes",
    "Bwd Init Win Bytes", "Fwd Act Data Pkts",
]  # fmt: skip


def _cicflowmeter_schema() -> pa.Schema:
    whole = ("Src Port", "Dst Port", "Protocol", "Flow Duration", "Fwd Act Data Pkts")
    whole_parts = ("Total ", "Win Bytes", "Flag")

    def kind(name: str) -> pa.DataType:
        if name == "Timestamp":
            return pa.timestamp("ns", "UTC")
        is_whole = name in whole or any(part in name and "IAT" not in name for part in whole_parts)
        return pa.utf8() if name in CICFLOWMETER_TEXTS else pa.int64() if is_whole else pa.float64()

    return pa.schema([(name, kind(name)) for name in CICFLOWMETER_NAMES])


FEATURE_SETS = {
    "nfstream": FeatureSet(
        FOLDER / "nfstream.toml",
        # NFStream's defaults: no flow ends at FIN or RST.
        {"initiator": "first", "idle_timeout": "120s", "active_timeout": "30m", "linger": "none"},
        _nfstream_schema(),
        _nfstream,
    ),
    "cicflowmeter": FeatureSet(
        FOLDER / "cicflowmeter.toml",
        # CICFlowMeter's flow timeout is an active timeout. It has no idle timeout.
        {"initiator": "first", "idle_timeout": "120s", "active_timeout": "120s"},
        _cicflowmeter_schema(),
        _cicflowmeter,
    ),
}

_SPLT = "read with a definition of your own: op `list` of `frame_length`, `gap` and `direction` is this"
_DPI = "nDPI's dissection is `dpi=True` where the program has it, and not part of the wheel"
_BULK = "bulks are runs of packets in one direction: no op sees them in records that merge"
_ACTIVE = "no op folds only the gaps above a threshold, or the times between such gaps"
_HEADER = "no input is the length of the transport header; `ip_length` less `payload_length` has IP's too"

_UNAVAILABLE = {
    "nfstream": {
        "id": "the number of a row: no property of the flow",
        "tunnel_id": "tunnels are entered by `decapsulate=True`, and have no such number",
        "splt_direction, splt_ps, splt_piat_ms": _SPLT,
        "application_name, application_category_name, application_is_guessed, application_confidence": _DPI,
        "requested_server_name, client_fingerprint, server_fingerprint, user_agent, content_type": _DPI,
        "system_process_pid, system_process_name": "captures do not say which process sent a packet",
    },
    "cicflowmeter": {
        "Fwd Header Length, Bwd Header Length, Fwd Seg Size Min": _HEADER,
        "Fwd Bytes/Bulk Avg, Fwd Packet/Bulk Avg, Fwd Bulk Rate Avg": _BULK,
        "Bwd Bytes/Bulk Avg, Bwd Packet/Bulk Avg, Bwd Bulk Rate Avg": _BULK,
        "Active Mean, Active Std, Active Max, Active Min": _ACTIVE,
        "Idle Mean, Idle Std, Idle Max, Idle Min": _ACTIVE,
        "Label": "a label is not in the packets",
    },
}


def unavailable(features: str) -> dict:
    """The features that a feature set lacks, each with the reason.

    A key may list several features, separated by commas. Raises `KeyError` for an unknown feature set.
    """
    return dict(_UNAVAILABLE[features])
