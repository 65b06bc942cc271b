# SPDX-License-Identifier: Apache-2.0
"""Record definitions that reach every size of record, every kind of key, and every op of every input."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

FIVE_TUPLE = ("source_address", "destination_address", "source_port", "destination_port", "protocol")
# Every key other than the 5-tuple has a wide record.
TAGGED = (*FIVE_TUPLE, "vlan", "inner_vlan", "vlan_priority", "mpls_label", "tos", "ingress_interface")
TUNNELLED = (*FIVE_TUPLE, "outer_source_address", "outer_destination_address", "vni", "teid", "gre_key")
LINK = ("source_mac", "destination_mac", "ether_type", "vlan", "ingress_interface")
FEW = ("protocol", "destination_address", "source_address")
NO_ADDRESS = ("ether_type", "ttl", "tcp_flags", "icmp_type", "icmp_code", "flow_label")

AMOUNTS = ("ip_length", "frame_length", "tcp_window", "ttl", "fragment_offset", "payload_length", "gap")
LABELS = (
    "tcp_flags", "tcp_sequence", "tcp_acknowledgement", "tcp_options", "tos", "flow_label", "identification",
    "ip_options", "icmp_type", "icmp_code", "vlan", "inner_vlan", "vlan_priority", "mpls_label", "source_mac",
    "destination_mac", "ether_type", "vni", "teid", "gre_key", "ingress_interface",
)  # fmt: skip
OF_ANYTHING = ("count", "min", "max", "first", "last", "nth", "histogram", "list")
OF_LABELS = (*OF_ANYTHING, "bit_or")
OF_AMOUNTS = (*OF_LABELS, "sum", "mean", "variance", "rate")
OF_NOTHING = ("count", "gap_min", "gap_max", "gap_mean", "gap_variance", "duration", "rate")


@dataclass(frozen=True)
class Feature:
    """One column, with `k` and `edges` if its op needs them."""

    op: str
    of: str | None = None
    k: int = 3
    edges: tuple[int, ...] = (1, 64, 1000)
    per_biflow: bool = False

    def words(self) -> int:
        """Maximum words of a record that it takes, if it shares none."""
        match self.op:
            case "mean" | "gap_mean":
                return 4
            case "variance" | "gap_variance":
                return 6
            case "gap_min" | "gap_max":
                return 3
            case "histogram":
                return len(self.edges) + 1
            case "list" | "nth":
                return self.k + 1
            case "duration" | "rate":
                return 0
        return 1

    def to_toml(self, number: int) -> str:
        name = "_".join([f"f{number}", self.op, *([self.of] if self.of else [])])
        lines = ["[[feature]]", f'name = "{name}"', f'op = "{self.op}"']
        lines += [f'of = "{self.of}"'] if self.of else []
        lines += [f"k = {self.k}"] if self.op in ("list", "nth") else []
        lines += [f"edges = {list(self.edges)}"] if self.op == "histogram" else []
        lines += ['per = "biflow"'] if self.per_biflow else []
        return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class Definition:
    """A definition, and the options for recording with it."""

    name: str
    key: tuple[str, ...]
    features: tuple[Feature, ...]
    options: tuple[str, ...] = ()

    def to_toml(self) -> str:
        fields = ", ".join(f'"{field}"' for field in self.key)
        features = (feature.to_toml(number) for number, feature in enumerate(self.features))
        return f"[key]\nfields = [{fields}]\n\n" + "\n".join(features)


FREE = (Feature("count"), Feature("sum", "ip_length"), Feature("min", "timestamp"), Feature("max", "timestamp"))
SOME = (
    *FREE, Feature("max", "frame_length"), Feature("mean", "frame_length"), Feature("gap_max"), Feature("mean", "tcp_window"),
)  # fmt: skip
MORE = (
    *FREE, Feature("list", "payload_length", k=10), Feature("variance", "frame_length"),
    Feature("histogram", "ip_length", edges=(128, 1024)), Feature("gap_min"),
)  # fmt: skip
SEQUENCES = (
    *FREE, Feature("list", "payload_length", k=20), Feature("list", "gap", k=19), Feature("gap_variance"), Feature("last", "ttl"),
)  # fmt: skip
LONG = (
    *FREE, Feature("list", "payload_length", k=50), Feature("histogram", "gap", edges=tuple(10**n for n in range(1, 12))),
    Feature("list", "tcp_flags", k=40), Feature("nth", "ip_length", k=2),
)  # fmt: skip
LONGEST = (
    *FREE, Feature("list", "timestamp", k=256),
    Feature("histogram", "ip_length", edges=tuple(range(16, 1600, 8))), Feature("nth", "ttl", k=17),
)  # fmt: skip
# Leaves room for both directions in the longest record.
LONGEST_OF_TWO = (*FREE, Feature("list", "timestamp", k=120), Feature("histogram", "ip_length", edges=tuple(range(16, 1600, 16))))
SPLT = (
    Feature("count"), Feature("duration", per_biflow=True), Feature("list", "payload_length", k=20, per_biflow=True),
    Feature("list", "gap", k=19, per_biflow=True), Feature("list", "direction", k=20), Feature("first", "direction"),
    Feature("count", per_biflow=True), Feature("rate", "ip_length", per_biflow=True), Feature("gap_mean", per_biflow=True),
)  # fmt: skip
INSIDE = (*FREE, *(Feature("bit_or", name) for name in ("vni", "teid", "gre_key")), Feature("variance", "payload_length"))

# Features by the number of feature words in a record.
BY_WORDS = {0: FREE, 8: SOME, 24: MORE, 56: SEQUENCES, 120: LONG, 504: LONGEST}


def every_op(words: int) -> list[tuple[Feature, ...]]:
    """Every op of every input that capture files have, in groups of at most that many words."""
    features = [Feature(op) for op in OF_NOTHING]
    features += [Feature(op, name) for name in AMOUNTS for op in OF_AMOUNTS]
    features += [Feature(op, name) for name in LABELS for op in OF_LABELS]
    features += [Feature(op, "timestamp") for op in OF_ANYTHING]
    groups: list[tuple[Feature, ...]] = []
    group: list[Feature] = []
    for feature in features:
        if sum(other.words() for other in group) + feature.words() > words:
            groups.append(tuple(group))
            group = []
        group.append(feature)
    return [*groups, tuple(group)]


def all_definitions() -> list[Definition]:
    """All definitions, by name."""
    biflow, inside = ("--biflow",), ("--decapsulate",)
    found = []
    for words, features in BY_WORDS.items():
        both = LONGEST_OF_TWO if words == 504 else features
        # A table of many large slots takes longer to allocate than a capture takes to read.
        slots = ("--microflow-slots", "512") if words >= 56 else ()
        found += [
            Definition(f"{words}-words", FIVE_TUPLE, features, slots),
            Definition(f"{words}-words-wide", TAGGED, features, slots),
            Definition(f"{words}-words-wide-threads", TAGGED, features, ("--threads", "2", *slots)),
            Definition(f"{words}-words-biflow", FIVE_TUPLE, both, (*biflow, *slots)),
            Definition(f"{words}-words-wide-biflow", TUNNELLED, both, (*biflow, *inside, *slots)),
        ]
    for number, group in enumerate(every_op(240), 1):
        found += [
            Definition(f"ops-{number}", FIVE_TUPLE, group, ("--reassemble-flows", "--microflow-slots", "300")),
            Definition(f"ops-{number}-biflow", FIVE_TUPLE, group, (*biflow, "--microflow-slots", "7")),
            Definition(f"ops-{number}-link", LINK, group, (*inside, "--microflow-slots", "64")),
        ]
    found += [
        Definition("few", FEW, SOME, ("--linger", "none", "--microflow-slots", "1")),
        Definition("no-address", NO_ADDRESS, MORE, ("--threads", "3")),
        Definition("inside", TUNNELLED, INSIDE, inside),
        Definition("splt", FIVE_TUPLE, SPLT, (*biflow, "--idle-timeout", "1s", "--active-timeout", "5s")),
        Definition("splt-tagged", TAGGED, SPLT, biflow),
    ]
    return found


def write_all(folder: Path) -> dict[str, Path]:
    """Writes every definition into a folder, and returns the paths by name."""
    paths = {}
    for definition in all_definitions():
        paths[definition.name] = folder / f"{definition.name}.toml"
        paths[definition.name].write_text(definition.to_toml())
    return paths
