"""What leaves the lakehouse: sinks, which are given the changes of a table. No Spark is needed here."""

from lodestream.serving.parquet import Parquet
from lodestream.serving.sink import Change, Delivery, Outlet, Sink

__all__ = ["Change", "Delivery", "Outlet", "Parquet", "Sink"]
