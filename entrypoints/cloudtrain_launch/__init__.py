"""The node launcher: what stands between a cloud's container (or a simulated node) and the training processes.

Standard library and torch only, Python 3.9 or newer. The story is in ``node.py``; below it, one idea a module:

cluster    which nodes there are and which one this is, read from the provider's contract (``contracts/``)
spec       what to run: the job as a file of plain data
environ    the environment of a worker; foreign launcher variables removed; ``${data.x}`` put in
prepare    a cloud node before its workers start: code, packages, secrets (``secret_stores/``), network, data
deliver    its results after their end, as far as the time goes (``delivery``)
layout     where a node keeps what was brought to it
banner     the first lines of its log
gathering  who is here, who is prepared, who is waited for, until the workers start
members    the channel between the nodes' launchers: all here, one failed, one preempted, all done
helper     a process forked from the launcher, for what takes its time
agent      torch elastic's agent in such a process
worker     one training process and its warden
script     runs the user's script as ``__main__``
output     each rank's output: kept in a file, shown line by line
failure    what failed first, and what merely followed
processes  death with the parent, orphans, descendants
"""
