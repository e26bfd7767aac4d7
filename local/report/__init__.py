"""What people read of the figures: the tidy table of results, and the tables of the report."""
