# SPDX-License-Identifier: Apache-2.0
"""Reads captures with the program `turboflow` into exact, unsampled flow records, as Arrow.

    import turboflow
    flows = turboflow.read("office.pcap", biflow=True).read_all()
"""

from turboflow._features import FEATURE_SETS, unavailable
from turboflow._program import TurboflowError, TurboflowWarning, program
from turboflow._read import read

__all__ = [
    "FEATURE_SETS",
    "TurboflowError",
    "TurboflowWarning",
    "program",
    "read",
    "unavailable",
]
