-- One row per pickup zone.
-- Ties: the most common dropoff zone is the one with most trips, then the lowest location id (trips without a dropoff
-- zone do not compete); the peak hour is the one with most trips, then the earliest.
WITH zone_totals AS (
  SELECT
    pickup_location_id,
    count(*) AS total_pickups,
    round(avg(cast(trip_distance_miles AS decimal(18, 6))), 2) AS avg_trip_distance,
    round(avg(cast(trip_duration_minutes AS decimal(18, 6))), 2) AS avg_trip_duration_min,
    sum(total_amount) AS total_revenue,
    round(avg(cast(total_amount AS decimal(18, 6))), 2) AS avg_revenue_per_trip,
    round(avg(cast(tip_percentage AS decimal(18, 6))), 2) AS avg_tip_pct,
    round(avg(cast(passenger_count AS decimal(18, 6))), 2) AS avg_passengers
  FROM silver.trip_metrics
  GROUP BY pickup_location_id
),
dropoff_counts AS (
  SELECT pickup_location_id, dropoff_location_id, count(*) AS trips
  FROM silver.trip_metrics
  WHERE dropoff_location_id IS NOT NULL
  GROUP BY pickup_location_id, dropoff_location_id
),
top_dropoffs AS (
  SELECT pickup_location_id, max_by(dropoff_location_id, struct(trips, -dropoff_location_id)) AS dropoff_location_id
  FROM dropoff_counts
  GROUP BY pickup_location_id
),
hour_counts AS (
  SELECT pickup_location_id, pickup_hour, count(*) AS trips
  FROM silver.trip_metrics
  GROUP BY pickup_location_id, pickup_hour
),
peak_hours AS (
  SELECT pickup_location_id, max_by(pickup_hour, struct(trips, -pickup_hour)) AS peak_pickup_hour
  FROM hour_counts
  GROUP BY pickup_location_id
)
SELECT
  t.pickup_location_id,
  pickup.borough AS pickup_borough,
  pickup.zone_name AS pickup_zone,
  t.total_pickups,
  t.avg_trip_distance,
  t.avg_trip_duration_min,
  t.total_revenue,
  t.avg_revenue_per_trip,
  t.avg_tip_pct,
  t.avg_passengers,
  dropoff.zone_name AS most_common_dropoff_zone,
  h.peak_pickup_hour
FROM zone_totals AS t
LEFT JOIN top_dropoffs AS d ON d.pickup_location_id <=> t.pickup_location_id
LEFT JOIN peak_hours AS h ON h.pickup_location_id <=> t.pickup_location_id
LEFT JOIN silver.zones AS pickup ON pickup.location_id = t.pickup_location_id
LEFT JOIN silver.zones AS dropoff ON dropoff.location_id = d.dropoff_location_id
