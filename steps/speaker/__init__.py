"""Speaker encoders and back ends: vectors of voices, and their similarity."""
