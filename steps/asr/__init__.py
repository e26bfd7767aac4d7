"""Speech recognition: recognisers behind one interface, their language data, text."""
