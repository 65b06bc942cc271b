# SPDX-License-Identifier: Apache-2.0
"""Commands that need no corpus: definitions, generated traffic, plans, configurations, help, refusals."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from comparison.definitions import all_definitions, write_all
from comparison.matrix import SEED
from comparison.programs import Case

COMMANDS = ("record", "run", "show", "top", "generate", "plan", "definition", "bench")

GENERATED: dict[str, tuple[str, ...]] = {
    "default": ("--packets", "5k"),
    "zipf": ("--packets", "20k", "--flows", "2k", "--traffic", "zipf", "--snap-length", "64"),
    "mixed": ("--packets", "5k", "--sizes", "imix", "--ipv6-share", "0.33", "--vlan-share", "0.1", "--udp-share", "0.4"),
    "births": ("--packets", "5k", "--births-per-second", "5000", "--sizes", "64:3,200:1"),
    "internet": ("--workload", "internet", "--duration", "20ms", "--snap-length", "64"),
    "dc-tor": ("--workload", "dc-tor", "--duration", "100us", "--snap-length", "64"),
    "dc-aggregation": ("--workload", "dc-aggregation", "--duration", "100us", "--snap-length", "64", "--load", "0.3"),
    "probe-stress": ("--workload", "probe-stress", "--flows", "20k", "--duration", "1ms"),
    "all-at-once": ("--workload", "adversarial", "--attack", "all-at-once", "--packets", "5k"),
    "collisions": ("--workload", "adversarial", "--attack", "collisions", "--packets", "5k", "--meter-seed", "7"),
    "single-packets": ("--workload", "adversarial", "--attack", "single-packets", "--packets", "5k"),
}

PLANS: dict[str, tuple[str, ...]] = {
    "paper": ("--paper",),
    "paper-json": ("--paper", "--json"),
    "assumptions": ("--assumptions",),
    "stated": ("--packets-per-second", "500k", "--flows-per-second", "20k", "--active-flows", "800k"),
    "stated-json": ("--packets-per-second", "500k", "--flows-per-second", "20k", "--active-flows", "800k", "--json"),
    "impossible": ("--packets-per-second", "1", "--flows-per-second", "20k", "--active-flows", "800k"),
}

WRONG_DEFINITIONS: dict[str, str] = {
    "op": '[[feature]]\nname = "x"\nop = "summ"\nof = "ip_length"\n',
    "input": '[[feature]]\nname = "x"\nop = "sum"\nof = "ip_lenght"\n',
    "label": '[[feature]]\nname = "x"\nop = "sum"\nof = "vlan"\n',
    "unseen": '[[feature]]\nname = "x"\nop = "max"\nof = "queue_depth"\n',
    "kernel": '[[feature]]\nname = "x"\nop = "max"\nof = "receive_queue"\n',
    "direction": '[[feature]]\nname = "x"\nop = "first"\nof = "direction"\n',
    "name": '[[feature]]\nname = "X y"\nop = "count"\n',
    "twice": '[[feature]]\nname = "x"\nop = "count"\n[[feature]]\nname = "x"\nop = "count"\n',
    "reserved": '[[feature]]\nname = "src_addr"\nop = "count"\n',
    "k": '[[feature]]\nname = "x"\nop = "list"\nof = "ttl"\nk = 257\n',
    "no-k": '[[feature]]\nname = "x"\nop = "nth"\nof = "ttl"\n',
    "edges": '[[feature]]\nname = "x"\nop = "histogram"\nof = "ttl"\nedges = [3, 2]\n',
    "key": '[key]\nfields = ["source_adress"]\n[[feature]]\nname = "x"\nop = "count"\n',
    "one-end": '[key]\nfields = ["source_address"]\n[[feature]]\nname = "x"\nop = "count"\n',
    "large": "".join(f'[[feature]]\nname = "{of}"\nop = "list"\nof = "{of}"\nk = 256\n' for of in ("tcp_flags", "ttl")),
    "toml": "[key\n",
    "empty": "",
    "unknown": 'colour = 1\n[[feature]]\nname = "x"\nop = "count"\n',
}  # fmt: skip

NEEDED = 'interface = ["lo"]\nwrite = ["flows-%H.csv"]\n'
CONFIGURATIONS: dict[str, str] = {
    "right": NEEDED,
    "full": NEEDED + 'rotate = "5m"\nthreads = 2\nbiflow = true\nidle-timeout = "5s"\ndecapsulate = "gre,vxlan"\n',
    "collector": 'interface = "lo"\nwrite = "ipfix+udp://127.0.0.1"\nexport-rate = 5000\n',
    "unknown": NEEDED + 'idel-timeout = "1s"\n',
    "section": "[output]\nwrite = 1\n",
    "missing": 'write = "a.csv"\n',
    "empty": 'interface = "lo"\nwrite = []\n',
    "type": NEEDED + 'biflow = "yes"\n',
    "unit": NEEDED + 'idle-timeout = "30"\n',
    "range": NEEDED + "max-flows = 0\n",
    "absent": 'interface = ["nowhere0"]\nwrite = ["/no/such/folder/a.csv"]\n',
    "twice": 'interface = "lo"\nwrite = ["a.csv", "./a.csv"]\n',
    "xdp-biflow": NEEDED + 'engine = "xdp"\nbiflow = true\n',
    "filter": NEEDED + 'filter = "tpc port 1"\n',
    "user": NEEDED + 'user = "no-such-user"\n',
}

# Options after `record -r CAPTURE`.
REFUSED: dict[str, tuple[str, ...]] = {
    "unit": ("--idle-timeout", "30"),
    "no-time": ("--active-timeout", "x"),
    "zero": ("--idle-timeout", "0"),
    "no-flows": ("--max-flows", "0"),
    "no-threads": ("--threads", "0"),
    "many-threads": ("--threads", "99G"),
    "no-slots": ("--microflow-slots", "0"),
    "many-slots": ("--microflow-slots", "99G"),
    "no-seed": ("--seed", "x"),
    "tunnel": ("--decapsulate=gre,nonsense",),
    "extension": ("-w", "a.xyz"),
    "no-format": ("-w", "-"),
    "format-alone": ("--format", "csv"),
    "format-in-vain": ("--format", "csv", "-w", "a.parquet"),
    "format-unknown": ("--format", "xml", "-w", "-"),
    "written-twice": ("-w", "a.csv", "-w", "./a.csv"),
    "no-folder": ("-w", "no/such/folder/a.csv"),
    "interface-too": ("-i", "lo"),
    "duration": ("--duration", "10s"),
    "readers": ("--readers", "2"),
    "metrics": ("--metrics", "127.0.0.1:0"),
    "rotate": ("--rotate", "5m", "-w", "a-%H.csv"),
    "mtu": ("--export-mtu", "5"),
    "rate": ("--export-rate", "0"),
    "export-time": ("--export-time", "h"),
    "template-interval": ("--template-interval", "1ms"),
    "key-alone": ("--tls-key", "a.pem"),
    "target": ("-w", "ipfix+udp://"),
    "target-scheme": ("-w", "netflow7+udp://127.0.0.1"),
    "biflow-to-v5": ("-w", "netflow5+udp://127.0.0.1:9", "--biflow"),
    "no-option": ("--no-such-option",),
    "almost-an-option": ("--idle-timeuot", "1s"),
    "filter": ("tcp prt 443",),
    "log-format": ("--log-format", "xml"),
    "engine": ("--engine", "xdp"),
    "xdp-drop": ("--xdp-drop",),
    "definition": ("--definition", "/nonexistent/d.toml"),
}

REFUSED_OTHERS: dict[str, tuple[str, ...]] = {
    "nothing": (),
    "command": ("recrod",),
    "no-input": ("record",),
    "interface": ("record", "-i", "nosuch0"),
    "any": ("record", "-i", "any"),
    "interface-twice": ("record", "-i", "lo", "-i", "lo"),
    "ring": ("record", "-i", "lo", "--ring-size", "1KiB"),
    "readers": ("record", "-i", "lo", "--readers", "65"),
    "readers-inside": ("record", "-i", "lo", "--readers", "2", "--decapsulate"),
    "table": ("record", "-i", "lo", "--table", "row-lock"),
    "xdp-mode": ("record", "-i", "lo", "--xdp-mode", "generic"),
    "unparsed": ("record", "-i", "lo", "--unparsed-to", "a.pcap"),
    "xdp-biflow": ("record", "-i", "lo", "--engine", "xdp", "--biflow"),
    "xdp-inside": ("record", "-i", "lo", "--engine", "xdp", "--decapsulate"),
    "xdp-filter": ("record", "-i", "lo", "--engine", "xdp", "tcp"),
    "xdp-readers": ("record", "-i", "lo", "--engine", "xdp", "--readers", "2"),
    "show-nothing": ("show",),
    "show-missing": ("show", "none.csv"),
    "top-nothing": ("top",),
    "top-speed": ("top", "-r", "none.pcap", "--speed", "0"),
    "generate-nothing": ("generate",),
    "generate-share": ("generate", "--to-memory", "--ipv6-share", "2"),
    "generate-load": ("generate", "--to-memory", "--load", "0.5"),
    "plan-nothing": ("plan",),
    "run-nothing": ("run",),
    "run-missing": ("run", "--config", "none.toml"),
    "definition-biflow": ("definition", "--biflow"),
    "definition-both": ("definition", "--list", "--schema"),
}

WRONG_QUESTIONS: tuple[tuple[str, ...], ...] = (
    ("--where", "bytez > 1"),
    ("--where", "bytes >"),
    ("--where", "(tcp"),
    ("--where", "duration > 5"),
    ("--group-by", "nothing"),
    ("--group-by", "time:5"),
    ("--group-by", "time:1us"),
    ("--by", "nothing"),
    ("--select", "nothing"),
    ("--top", "-1"),
    ("--format", "xml"),
)


def cases_of_commands(sample: Path, folder: Path) -> Iterator[Case]:
    """All cases of commands. Their inputs are written to the folder."""
    yield Case("version", "version", (("--version",),))
    yield from of_definitions(folder)
    for name, options in GENERATED.items():
        seeded = ("generate", *options, "--seed", "11")
        yield Case("generate", f"generate [{name}]", ((*seeded, "-w", "a.pcap"), (*seeded, "-w", "-", "-q")))
    of_memory = (("generate", "--to-memory", "--packets", "5k", "--seed", "3"),)
    yield Case("generate", "generate [memory]", of_memory)
    links = (("generate", "-w", "a.pcap", "--links", "3", "-r", str(sample)),)
    yield Case("generate", "generate [links]", links)
    for name, options in PLANS.items():
        yield Case("plan", f"plan [{name}]", (("plan", *options),))
    yield from of_configurations(folder)
    yield from of_words(sample)


def of_definitions(folder: Path) -> Iterator[Case]:
    listed = (("definition",), ("definition", "--list"), ("definition", "--schema"), ("definition", "--schema", "--biflow"))
    yield Case("definition", "definition", listed)
    paths = write_all(folder)
    for definition in all_definitions():
        path = paths[definition.name]
        both = ("--biflow",) if "--biflow" in definition.options else ()
        steps = (("definition", "--check", str(path), *both), ("definition", "--schema", str(path), *both))
        yield Case("definition", f"definition {definition.name}", steps)
    for name, text in WRONG_DEFINITIONS.items():
        path = folder / f"wrong-{name}.toml"
        path.write_text(text)
        steps = (("definition", "--check", str(path)), ("definition", "--check", str(path), "--biflow"))
        yield Case("refusal", f"wrong definition [{name}]", steps, only_words=True)


def of_configurations(folder: Path) -> Iterator[Case]:
    yield Case("refusal", "configuration [printed]", (("run", "--print-config"),), only_words=True)
    for name, text in CONFIGURATIONS.items():
        path = folder / f"configuration-{name}.toml"
        path.write_text(text)
        check = (("run", "--config", str(path), "--check"),)
        yield Case("refusal", f"configuration [{name}]", check, only_words=True)


def of_words(sample: Path) -> Iterator[Case]:
    """Help and refusals, whose wording may change. Their exit codes may not."""
    yield Case("help", "help", (("--help",), ("-h",), ("help",)), only_words=True)
    for command in COMMANDS:
        yield Case("help", f"help [{command}]", ((command, "--help"), (command, "-h"), ("help", command)), only_words=True)
    for name, options in REFUSED.items():
        refused = (("record", "-r", str(sample), *SEED, *options),)
        yield Case("refusal", f"record -r [{name}]", refused, only_words=True)
    for name, options in REFUSED_OTHERS.items():
        yield Case("refusal", f"options [{name}]", (options,), only_words=True)
    records = ("record", "-q", "-r", str(sample), *SEED, "-w", "a.csv")
    questions = tuple(("show", "a.csv", *question) for question in WRONG_QUESTIONS)
    yield Case("refusal", "questions", (records, *questions), only_words=True)
