"""Groups: one name space for classic groups and share groups."""
