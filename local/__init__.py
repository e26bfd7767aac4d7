"""Assessment: protocols, attackers, metrics, reports. Knows no corpus."""
