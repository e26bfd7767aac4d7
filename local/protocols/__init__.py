# SPDX-License-Identifier: Apache-2.0
"""Protocols of the assessment: who is enrolled, which trials are made, what an attacker knows."""
