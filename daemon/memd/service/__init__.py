"""What runs: the socket, the watcher, the healing. The only package that knows all the others."""
