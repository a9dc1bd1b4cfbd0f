"""The taxi stream as a demonstration: a broker, a generator and a pipeline in one process tree."""
