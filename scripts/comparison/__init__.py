# SPDX-License-Identifier: Apache-2.0
"""Two builds of turboflow, run side by side: compare_programs.py in parts."""
