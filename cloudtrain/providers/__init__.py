"""One folder per place a job can run, each with the same few files."""
