"""What a recipe makes: options and settings become tables of steps, which run.sh goes through."""
