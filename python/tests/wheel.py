# SPDX-License-Identifier: Apache-2.0
"""Makes a wheel of a compiled program, installs it into an empty environment, and tests it there.

    PYTHON python/tests/wheel.py PROGRAM SAMPLES

PYTHON is the interpreter of an environment with the packages in `scripts/python/lakehouse.txt`.
"""

import os
import subprocess
import sys
import sysconfig
import tempfile
import venv
from pathlib import Path

HERE = Path(__file__).parent


def main() -> None:
    program, samples = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        environment = Path(folder, "environment")
        venv.create(environment)
        made = [sys.executable, HERE.parent / "assemble.py", program, folder]
        wheel = subprocess.run(made, check=True, capture_output=True, text=True).stdout.strip()
        pip = [sys.executable, "-m", "pip", "--python", environment, "--disable-pip-version-check", "install"]
        subprocess.run([*pip, "--quiet", "--no-index", "--no-deps", wheel], check=True)
        # The dependencies of the wheel are those of this environment, so that they are not
        # downloaded again.
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        Path(environment, "lib", version, "site-packages", "tools.pth").write_text(sysconfig.get_path("purelib") + "\n")
        # The test must find no other program and no other module.
        surroundings = {"PATH": "/usr/bin:/bin", "HOME": folder, "PYTHONDONTWRITEBYTECODE": "1"}
        if "LD_LIBRARY_PATH" in os.environ:
            surroundings["LD_LIBRARY_PATH"] = os.environ["LD_LIBRARY_PATH"]
        python = environment / "bin" / "python"
        done = subprocess.run([python, HERE / "reading.py", samples], cwd=folder, env=surroundings)
    sys.exit(done.returncode)


if __name__ == "__main__":
    main()
