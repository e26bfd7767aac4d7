"""Quality of speech, without listeners."""
