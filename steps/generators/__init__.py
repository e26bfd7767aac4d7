# SPDX-License-Identifier: Apache-2.0
"""Pseudo-speakers: x-vectors that are nobody's, from a pool of others' and maybe one's own."""
