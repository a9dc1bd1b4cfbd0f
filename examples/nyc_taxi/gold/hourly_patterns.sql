-- One row per pickup date and hour. Averages as in daily_summary: over decimal(18,6), half up to 2 places.
SELECT
  pickup_date,
  pickup_hour,
  pickup_day_of_week,
  is_weekend,
  count(*) AS total_trips,
  round(avg(cast(trip_distance_miles AS decimal(18, 6))), 2) AS avg_distance,
  round(avg(cast(trip_duration_minutes AS decimal(18, 6))), 2) AS avg_duration_min,
  sum(total_amount) AS total_revenue,
  round(avg(cast(total_amount AS decimal(18, 6))), 2) AS avg_revenue
FROM silver.trip_metrics
GROUP BY pickup_date, pickup_hour, pickup_day_of_week, is_weekend
