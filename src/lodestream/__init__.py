"""Lodestream: a streaming medallion lakehouse for Python teams."""
