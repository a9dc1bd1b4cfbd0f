"""Reference data: one file beside the pipeline, read whole."""
