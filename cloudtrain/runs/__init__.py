"""The life of a run, the same on every provider: ledger, submit, follow, resume, download, and the users' handle."""
