"""Speech: features, x-vectors, back ends, pseudo-speakers, synthesis, anonymisers, recognisers."""
