"""Refuses the network to every Python program that is started with this folder on PYTHONPATH; loopback works."""

import sys


def _refuse(event, args):
    if event == "socket.getaddrinfo":
        host = args[0]
    elif event in ("socket.connect", "socket.sendto") and isinstance(args[1], tuple):
        host = args[1][0]
    else:
        return
    host = host.decode() if isinstance(host, bytes) else host
    if host not in (None, "", "localhost", "::1", "::", "0.0.0.0") and not host.startswith("127."):
        raise OSError(f"the network is refused: {host}")


sys.addaudithook(_refuse)
