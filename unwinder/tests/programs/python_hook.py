"""Calls a C function (argument 1 is the shared object that has it) from Python code of several shapes."""

import ctypes
import functools
import re
import sys

library = ctypes.PyDLL(sys.argv[1])
count = 0


def hook():
    global count
    count += 1
    library.hook(b"python%d" % count)
    return count


class Node:
    def __init__(self, depth):
        self.depth = depth

    def __lt__(self, other):
        if self.depth % 7 == 0:
            hook()
        return self.depth < other.depth

    def __getattr__(self, name):
        hook()
        return lambda *arguments: arguments

    def __repr__(self):
        hook()
        return "node"


def recurse(depth, *rest, **named):
    if depth == 0:
        return hook()
    if depth % 3 == 0:
        return functools.reduce(lambda a, _: a + recurse(depth - 1, a, key=1), [1, 2], 0)
    if depth % 3 == 1:
        return sum(recurse(depth - 1) for _ in range(1))
    return recurse(depth - 1, *rest, **named)


for depth in range(1, 16):
    recurse(depth)
sorted(Node(i * 37 % 50) for i in range(50))
for i in range(10):
    getattr(Node(i), "missing")(i)
    str([Node(i), {Node(i): Node(i)}])
    re.sub("a+", lambda match: str(hook()), "aaabaaab")
exec(compile("[hook() for _ in range(5)]", "made", "exec"))
library.finish()
