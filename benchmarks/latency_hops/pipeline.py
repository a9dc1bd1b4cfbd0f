"""Three hops, as a user would declare them."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from lodestream import Kafka, Pipeline

bench = Pipeline("bench")

events_raw = bench.bronze("events_raw", Kafka("TOPIC"))


@bench.silver()
def events(events_raw: DataFrame) -> DataFrame:
    parsed = f.from_json(f.col("value").cast("string"), "id bigint, zone int, fare double, at string")
    return events_raw.select(parsed.alias("e")).select(
        "e.id",
        "e.zone",
        f.col("e.fare").cast("decimal(10,2)").alias("fare"),
        f.col("e.at").cast("timestamp_ntz").alias("at"),
    )


bench.gold("by_zone", sql="SELECT zone, count(*) AS n, sum(fare) AS revenue FROM silver.events GROUP BY zone")
