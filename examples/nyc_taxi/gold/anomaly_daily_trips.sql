-- Days that stand out: |z| > 2 on trips or revenue (sample standard deviation), or outside 1.5 x IQR.
-- The yardstick is made of all days, so the table is refreshed as a whole.
WITH yardstick AS (
  SELECT
    avg(total_trips) AS mean_trips,
    stddev_samp(total_trips) AS spread_trips,
    avg(cast(total_revenue AS double)) AS mean_revenue,
    stddev_samp(cast(total_revenue AS double)) AS spread_revenue,
    percentile(total_trips, 0.25) AS trips_q1,
    percentile(total_trips, 0.75) AS trips_q3,
    percentile(cast(total_revenue AS double), 0.25) AS revenue_q1,
    percentile(cast(total_revenue AS double), 0.75) AS revenue_q3
  FROM gold.daily_summary
),
scored AS (
  SELECT
    s.pickup_date,
    s.total_trips,
    s.total_revenue,
    round((s.total_trips - y.mean_trips) / nullif(y.spread_trips, 0), 2) AS trips_z_score,
    round((cast(s.total_revenue AS double) - y.mean_revenue) / nullif(y.spread_revenue, 0), 2) AS revenue_z_score,
    s.total_trips < y.trips_q1 - 1.5 * (y.trips_q3 - y.trips_q1)
      OR s.total_trips > y.trips_q3 + 1.5 * (y.trips_q3 - y.trips_q1) AS is_trips_outlier,
    s.total_revenue < y.revenue_q1 - 1.5 * (y.revenue_q3 - y.revenue_q1)
      OR s.total_revenue > y.revenue_q3 + 1.5 * (y.revenue_q3 - y.revenue_q1) AS is_revenue_outlier
  FROM gold.daily_summary AS s
  CROSS JOIN yardstick AS y
)
SELECT
  pickup_date,
  total_trips,
  total_revenue,
  trips_z_score,
  revenue_z_score,
  is_trips_outlier,
  is_revenue_outlier,
  coalesce(abs(trips_z_score) > 2, false)
    OR coalesce(abs(revenue_z_score) > 2, false)
    OR is_trips_outlier
    OR is_revenue_outlier AS is_anomaly
FROM scored
