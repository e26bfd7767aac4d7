# SPDX-License-Identifier: Apache-2.0
"""What is said, as a recogniser hears it: the content of speech generation (papers 001 and 004)."""
