# SPDX-License-Identifier: Apache-2.0
"""Training: one loop for all networks, its checkpoints, the training audio, devices."""
