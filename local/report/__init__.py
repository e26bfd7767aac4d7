"""The figures as people read them: the tidy table of results, and the tables of the report."""
