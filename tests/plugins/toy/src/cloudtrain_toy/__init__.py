"""A provider whose cloud is a folder of this machine, and whose machines are processes.

FOLDER/code/<digest>/   data/<digest>/   runs/<run>/   as in any cloud's store
FOLDER/jobs/<job>/      job.json, what was asked for; status.json; node-<k>.log; stop; lock
"""
