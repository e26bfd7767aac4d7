"""All pairs of many x-vectors (docs/populations.md)."""
