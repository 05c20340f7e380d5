"""SageMaker on this machine: see plane.py."""
