"""Vertex AI custom jobs as a provider: see registry.py for what each module is."""
