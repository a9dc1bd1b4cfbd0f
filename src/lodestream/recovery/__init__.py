"""What operators do to tables that run: replay, discard, and later rewind, backfill and erase."""
