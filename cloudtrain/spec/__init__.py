"""What a job is made of: kinds of values, sections, problems, YAML text with positions. The job itself is job.py."""
