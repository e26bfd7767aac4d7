"""Protocols of the assessment: enrolled speakers, trials, and the knowledge of an attacker."""
