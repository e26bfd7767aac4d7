"""All pairs of many x-vectors, and speakers simulated for them (docs/populations.md)."""
