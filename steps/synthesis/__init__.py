"""Speech analysis and synthesis: pitch, envelopes, target voices, synthesisers."""
