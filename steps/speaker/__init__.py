# SPDX-License-Identifier: Apache-2.0
"""Speaker encoders and back ends: what a voice is, and how alike two voices are."""
