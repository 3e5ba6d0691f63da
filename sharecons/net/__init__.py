"""Does: sockets, connections, and the loop that carries the machines out."""
