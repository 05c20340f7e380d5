"""What the README claims about speed, re-runnable: ``python -m benchmarks``.

Everything is a ratio of whole processes measured side by side in one run, since seconds mean little on another machine
or on a busy one. One module per claim; ``measuring`` holds the clock, ``subjects`` the commands.
"""
