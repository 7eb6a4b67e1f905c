"""Programs that a newcomer starts in one command."""
