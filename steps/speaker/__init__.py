# SPDX-License-Identifier: Apache-2.0
"""Speaker encoders and back ends: vectors of voices, and their similarity."""
