"""The node launcher: what stands between a cloud's container (or a simulated node) and the training processes.

Standard library and torch only, Python 3.9 or newer. The story is in ``node.py``; below it, one idea a module:

cluster    which nodes there are and which one this is, read from the provider's contract
spec       what to run: the job as a file of plain data
environ    the environment of a worker; foreign launcher variables removed; ``${data.x}`` put in
members    the channel between the nodes' launchers: all here, one failed, one preempted, all done
agent      torch elastic's agent in a process of its own
worker     one training process and its warden
script     runs the user's script as ``__main__``
output     each rank's output: kept in a file, shown line by line
failure    what failed first, and what merely followed
processes  death with the parent, orphans, descendants
"""
