"""One module for each API: `handle` answers a request with a response's fields."""
