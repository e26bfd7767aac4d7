# SPDX-License-Identifier: Apache-2.0
"""Speech recognition: recognisers behind one interface, their language data, text."""
