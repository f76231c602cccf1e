#!/usr/bin/env python3
"""Runs a command on a terminal of its own and plays a script against it: arguments before "--" are
expect:TEXT, send:TEXT (\\n and \\xNN understood), size:ROWSxCOLS, wait:SECONDS. What it printed goes to
standard output, its exit code is ours; a text that does not come within 20 s ends with 99."""
import fcntl, os, pty, select, struct, sys, termios, time

split = sys.argv.index("--")
script, command = sys.argv[1:split], sys.argv[split + 1:]
pid, fd = pty.fork()
if pid == 0:
    os.execvp(command[0], command)
seen = b""
at = 0

def size(rows, cols):
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))

def read_for(seconds):
    global seen
    if not select.select([fd], [], [], seconds)[0]:
        return True
    try:
        data = os.read(fd, 65536)
    except OSError:
        return False
    seen += data
    return bool(data)

for step in script:
    verb, _, text = step.partition(":")
    if verb == "size":
        rows, cols = text.split("x")
        size(int(rows), int(cols))
    elif verb == "send":
        os.write(fd, text.encode().decode("unicode_escape").encode("latin-1"))
    elif verb == "wait":
        end = time.monotonic() + float(text)
        while time.monotonic() < end and read_for(end - time.monotonic()):
            pass
    elif verb == "expect":
        end = time.monotonic() + 20
        while text.encode() not in seen[at:]:
            if time.monotonic() > end or not read_for(0.2):
                sys.stdout.buffer.write(seen)
                os.kill(pid, 9)
                sys.exit(99)
        at = seen.index(text.encode(), at) + len(text)
while read_for(20):
    pass
_, status = os.waitpid(pid, 0)
sys.stdout.buffer.write(seen)
sys.stdout.flush()
sys.exit(os.waitstatus_to_exitcode(status) & 0xff)
