"""A live page: studies watched while they train, on this machine alone."""
