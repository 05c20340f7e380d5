"""``cloudtrain doctor``: what is there, what is missing, and what to do next.

check.py      a Check, and what a provider's doctor.py has to have
asking.py     questions side by side, none of which may take for ever or raise
machine.py    this machine           packages.py   what is installed
settings.py   the settings, and where each was found
clouds.py     one cloud: its settings and packages, then what its doctor.py asks of it
"""
