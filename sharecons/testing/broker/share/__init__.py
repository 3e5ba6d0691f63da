"""Share groups (KIP-932): members, share sessions, share partitions."""
