"""Pseudo-speakers: x-vectors that are nobody's, from a pool and maybe the source's own."""
