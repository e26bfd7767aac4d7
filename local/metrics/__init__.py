# SPDX-License-Identifier: Apache-2.0
"""Privacy metrics, a module a family; what each figure means stands in docs/metrics."""
