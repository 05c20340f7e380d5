"""Facts about what the clouds rent, as dated data files, each with a small module that answers questions about it."""
