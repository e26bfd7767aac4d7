"""Evidence on a folder of recordings and its protected version, without labels or training."""
