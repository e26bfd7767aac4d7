"""Protection of folders of audio as they are: no lists, no transcripts, no training."""
