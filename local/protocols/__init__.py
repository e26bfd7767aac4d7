# SPDX-License-Identifier: Apache-2.0
"""Protocols of the assessment: enrolled speakers, trials, and the knowledge of an attacker."""
