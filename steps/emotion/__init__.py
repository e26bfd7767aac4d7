# SPDX-License-Identifier: Apache-2.0
"""Recognition of emotions: functionals of an utterance with a linear classifier, or a hub model."""
