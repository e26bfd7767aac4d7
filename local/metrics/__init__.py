# SPDX-License-Identifier: Apache-2.0
"""Privacy metrics, a module a family; docs/metrics explains each figure."""
