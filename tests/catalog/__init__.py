"""Tests of cloudtrain.catalog."""
