"""Programs of other formats than DarwiNN: what is in them, running and comparing them."""
