"""Amazon SageMaker training jobs as a provider: see registry.py for what each module is."""
