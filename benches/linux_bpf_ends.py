"""Programs for both ends of a TCP connection whose controller is a BPF program, and the command that loads programs."""

import sys

# Runs `sparelane kernel` with this Python, even if the package is not installed.
COMMAND = [sys.executable, "-c", "from sparelane.cli.main import main; main()", "kernel"]
# Sends with a controller to port 5000 of an address for some seconds.
SEND = """\
import socket, sys, time
s = socket.socket()
s.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, sys.argv[1].encode())
s.connect((sys.argv[2], 5000))
data, end = bytes(65536), time.monotonic() + float(sys.argv[3])
while time.monotonic() < end:
    s.send(data)
"""
# Receives connections at port 5000, one after the other, until it is killed. Prints a line when it listens.
RECEIVE = """\
import socket
l = socket.socket()
l.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
l.bind(("0.0.0.0", 5000))
l.listen()
print("ready", flush=True)
while True:
    c, _ = l.accept()
    while c.recv(1 << 20):
        pass
    c.close()
"""
