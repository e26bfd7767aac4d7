# SPDX-License-Identifier: Apache-2.0
"""Speech taken apart and put together again: pitch, envelopes, target voices, synthesisers."""
