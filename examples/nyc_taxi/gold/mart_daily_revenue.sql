-- Daily revenue with a running total. Every later day depends on every earlier one, so this table is refreshed as a
-- whole: one row per day, read from a table that has one row per day.
SELECT
  s.pickup_date,
  s.pickup_day_of_week,
  s.is_weekend,
  d.is_holiday,
  s.total_trips,
  s.total_passengers,
  s.total_fare_revenue,
  s.total_tip_revenue,
  s.total_revenue,
  s.avg_trip_revenue,
  sum(s.total_revenue) OVER (
    ORDER BY s.pickup_date ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
  ) AS cumulative_revenue,
  s.total_revenue - lag(s.total_revenue) OVER (ORDER BY s.pickup_date) AS revenue_change_vs_prior_day
FROM gold.daily_summary AS s
JOIN gold.dim_dates AS d ON d.date_day = s.pickup_date
