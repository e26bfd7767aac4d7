"""Channels beside the voice by which attackers know people: what is said, sounds, timing."""
