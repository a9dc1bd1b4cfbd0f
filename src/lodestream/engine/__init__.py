"""Plan, run, wake, size batches, supervise: the rooms wired together."""

from lodestream.engine.plan import Plan, PlannedTable, make_plan
from lodestream.engine.project import Project, open_project
from lodestream.engine.run import RunEnd, run_pipeline

__all__ = ["Plan", "PlannedTable", "Project", "RunEnd", "make_plan", "open_project", "run_pipeline"]
