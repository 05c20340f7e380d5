"""This machine as a provider: N simulated nodes of M processes, started the way a cloud would start them.

translate  job and options -> what to start, as plain data (pure)
contract   what a node finds in its environment
client     the host process from outside: start the nodes, hear them, stop them
host       the process that holds the nodes: loads torch once, forks each node
node_process  what such a fork does before it is a node's launcher
isolation  a host name and an address of its own for every node (Linux)
devices    which GPUs each node gets
keeping    what the run's process writes about it

As one provider among the others, for ``submit`` and all that asks about runs:

request    the job as a request to run it in the background
background the process that does
port       its states, lines and files, read from its folder: standing, loglines, artefacts

And for ``run --as``, the same through a cloud's contract:

standins   the job with places of that cloud's where it has only local ones
rehearsal  its native request, and what every node is given there
container  that, written into the nodes' folders
links      folders of this machine, put where the cloud has them
collect    results of separate disks, put together at the end
"""
