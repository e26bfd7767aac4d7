"""Content of speech as a recogniser hears it (Champion et al. 2021, Liu et al. 2025)."""
