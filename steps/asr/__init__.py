# SPDX-License-Identifier: Apache-2.0
"""Speech recognition: recognisers behind one interface, what they know of the language, text."""
