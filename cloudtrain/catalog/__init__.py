"""Facts about what the clouds rent, as dated data files, each with a small module that answers questions about it.

Every row names its source and ``as_of``: the date that the source carries, or the day it was read where it carries
none; empty where neither is known. A cell is empty where nothing is known. Nothing is estimated.
"""
