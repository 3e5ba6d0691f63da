"""Groups: classic groups and share groups have one name space."""
