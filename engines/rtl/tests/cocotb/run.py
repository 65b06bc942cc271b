# SPDX-License-Identifier: Apache-2.0
"""Runs the tests of single modules with cocotb and Verilator: run.py BUILD_FOLDER [MODULE]..."""

import sys
from pathlib import Path

from cocotb.runner import get_results, get_runner

HERE = Path(__file__).resolve().parent
RTL = HERE.parent.parent / "rtl"
# A module, the modules that it needs, and its parameters.
MODULES = {
    "tf_hash_toeplitz": ([], {"KeyBits": 104, "HashBits": 29}),
    "tf_ram": ([], {"Lanes": 4, "LaneBits": 6, "AddrBits": 4}),
    "tf_delay": ([], {"Bits": 40, "Clocks": 11}),
    "tf_queue": ([], {"Bits": 8, "DepthBits": 3}),
    "tf_spread": (["tf_pkg", "tf_ram"], {"NumStages": 4, "EntryBits": 6}),
    "tf_time_of_day": ([], {}),
    "tf_ethernet": ([], {}),
    "tf_aside": (["tf_pkg", "tf_frame_pkg", "tf_ram", "tf_queue"], {"DepthBits": 4}),
    "tf_parser": (["tf_pkg", "tf_frame_pkg", "tf_queue", "tf_delay", "tf_window", "tf_headers", "tf_transport", "tf_time_of_day"], {}),
    "tf_egress": (["tf_pkg", "tf_record_pkg", "tf_ram"], {"KeyBits": 104, "LineLatency": 17, "DepthBits": 5}),
}


def main():
    build, wanted = Path(sys.argv[1]).resolve(), sys.argv[2:] or list(MODULES)
    failed = 0
    for name in wanted:
        needs, parameters = MODULES[name]
        runner = get_runner("verilator")
        runner.build(
            sources=[RTL / f"{source}.sv" for source in [*needs, name]],
            hdl_toplevel=name,
            parameters=parameters,
            build_args=["-Wno-fatal", "-Wno-lint", "-Wno-style", "--assert", "-DTF_ASSERT", f"-I{RTL}"],
            build_dir=build / name,
        )
        results = runner.test(hdl_toplevel=name, test_module=f"test_{name}", test_dir=HERE, build_dir=build / name,
                              results_xml=str(build / name / "results.xml"))
        tests, failures = get_results(results)
        print(f"{name}: {tests} tests, {failures} failed")
        failed += failures + (tests == 0)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
