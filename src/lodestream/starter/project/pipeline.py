"""Orders, from files as they arrive to revenue per day and region."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from lodestream import Files, Json, Pipeline

pipeline = Pipeline("starter_name")

# Bronze keeps every line as it came. For a topic instead of files: Kafka("orders").
orders_raw = pipeline.bronze("orders_raw", Files("data", format="json"), owner="sales")


@pipeline.silver(decode=Json(), contract="contracts/order.yaml", partition_by="days(ordered_at)")
def orders(orders_raw: DataFrame) -> DataFrame:
    """One row per order. What breaks the contract goes to silver.orders__dead, with the reason."""
    return orders_raw.withColumn("region", f.lower(f.trim("region")))


pipeline.gold("daily_revenue", sql="gold/daily_revenue.sql", owner="sales")
