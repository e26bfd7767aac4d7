"""Recognition of emotions: functionals of an utterance with a linear classifier, or a hub model."""
