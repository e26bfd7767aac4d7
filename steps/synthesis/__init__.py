# SPDX-License-Identifier: Apache-2.0
"""Speech analysis and synthesis: pitch, envelopes, target voices, synthesisers."""
