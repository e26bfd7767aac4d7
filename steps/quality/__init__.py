"""How good speech sounds, without listeners."""
