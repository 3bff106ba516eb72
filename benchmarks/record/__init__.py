"""What measurements gave before: kept, compared with, and drawn."""
