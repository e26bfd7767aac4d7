# SPDX-License-Identifier: Apache-2.0
"""All pairs of as many x-vectors as there are, and speakers simulated for them (docs/populations.md)."""
