-- Demand per hour of the day, weekdays and weekends apart; a period is one hour of one date.
SELECT
  pickup_hour,
  is_weekend,
  count(DISTINCT pickup_date) AS days_observed,
  round(avg(cast(total_trips AS decimal(18, 6))), 0) AS avg_trips_per_period,
  round(avg(cast(avg_distance AS decimal(18, 6))), 2) AS avg_distance,
  round(avg(cast(avg_duration_min AS decimal(18, 6))), 2) AS avg_duration_min,
  round(avg(cast(total_revenue AS decimal(18, 6))), 2) AS avg_revenue_per_period,
  sum(total_trips) AS total_trips_all_days
FROM gold.hourly_patterns
GROUP BY pickup_hour, is_weekend
