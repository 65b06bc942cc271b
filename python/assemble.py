#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a wheel of a program that is already compiled, and prints the path of the wheel.

    python/assemble.py PROGRAM FOLDER

Wheels for users are made by `scripts/wheel.sh`, which compiles the program for release and runs maturin.
Tests need a wheel of the program that they test, within seconds.
"""

import base64
import hashlib
import platform
import stat
import subprocess
import sys
import zipfile
from pathlib import Path

HERE = Path(__file__).parent
# The tag of this machine, because only tests install the wheel.
TAG = f"py3-none-{sys.platform}_{platform.machine()}"


def fields() -> dict:
    """All `key = value` lines of pyproject.toml, whichever table they are in. No value spans lines."""
    lines = (HERE / "pyproject.toml").read_text(encoding="utf-8").splitlines()
    pairs = [line.split(" = ", 1) for line in lines if " = " in line and not line.startswith("#")]
    return {key: value.strip('"') for key, value in pairs}


def main() -> None:
    if len(sys.argv) != 3:
        sys.exit("usage: python/assemble.py PROGRAM FOLDER")
    program, folder = Path(sys.argv[1]), Path(sys.argv[2])
    version = subprocess.run([program, "--version"], check=True, capture_output=True, text=True).stdout.split()[1]
    project = fields()
    needs = [part.strip(' "') for part in project["dependencies"].strip("[]").split(",")]
    requires = f"Requires-Python: {project['requires-python']}"
    head = ["Metadata-Version: 2.1", "Name: turboflow", f"Version: {version}", requires]
    metadata = "\n".join(head + [f"Requires-Dist: {need}" for need in needs]) + "\n"
    kind = f"Wheel-Version: 1.0\nGenerator: assemble\nRoot-Is-Purelib: false\nTag: {TAG}\n"
    info = f"turboflow-{version}.dist-info"
    sources = sorted(path for path in (HERE / "turboflow").iterdir() if path.suffix in (".py", ".toml", ".typed"))
    contents = {f"turboflow/{path.name}": path.read_bytes() for path in sources}
    contents[f"turboflow-{version}.data/scripts/turboflow"] = program.read_bytes()
    contents |= {f"{info}/METADATA": metadata.encode(), f"{info}/WHEEL": kind.encode()}
    record = [f"{name},sha256={digest(content)},{len(content)}\n" for name, content in contents.items()]
    contents[f"{info}/RECORD"] = "".join([*record, f"{info}/RECORD,,\n"]).encode()
    wheel = folder / f"turboflow-{version}-{TAG}.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_STORED) as archive:
        for name, content in contents.items():
            entry = zipfile.ZipInfo(name)
            entry.external_attr = (stat.S_IFREG | (0o755 if "/scripts/" in name else 0o644)) << 16
            archive.writestr(entry, content)
    print(wheel)


def digest(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


if __name__ == "__main__":
    main()
