"""One module per API: `handle` returns the fields of the response to a request."""
