# SPDX-License-Identifier: Apache-2.0
"""Anonymisers: systems that turn speech into speech of another voice, and their common parts."""
