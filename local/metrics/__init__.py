"""Privacy metrics, a module a family; docs/metrics explains each figure."""
