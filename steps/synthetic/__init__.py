# SPDX-License-Identifier: Apache-2.0
"""Synthetic speech: drawn voices, drawn sentences, eSpeak NG, rooms and microphones."""
