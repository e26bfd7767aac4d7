"""Plan of a recipe: options and settings become tables of steps, which run.sh goes through."""
