"""Anonymisers: systems that turn speech into speech of another voice, and their common parts."""
