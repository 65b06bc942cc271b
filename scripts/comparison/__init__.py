# SPDX-License-Identifier: Apache-2.0
"""The parts of compare_programs.py, which compares two builds of turboflow."""
