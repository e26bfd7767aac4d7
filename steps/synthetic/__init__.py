"""Synthetic speech: drawn voices, drawn sentences, eSpeak NG, rooms and microphones."""
