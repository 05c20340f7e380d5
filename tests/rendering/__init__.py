"""Tests of cloudtrain.rendering."""
