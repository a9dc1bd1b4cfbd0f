-- Daily revenue with a running total. Every later day depends on every earlier one, so this table is refreshed as a
-- whole: one row per day, read from a table that has one row per day.
SELECT
  d.date_key,
  d.day_of_week_name,
  d.is_weekend,
  d.is_holiday,
  d.week_of_year,
  s.total_trips,
  s.total_passengers,
  s.total_fare_revenue,
  s.total_tip_revenue,
  s.total_revenue,
  s.avg_trip_revenue,
  s.avg_tip_percentage,
  s.credit_card_trips,
  s.cash_trips,
  s.avg_trip_distance,
  s.avg_trip_duration_min,
  sum(s.total_revenue) OVER (
    ORDER BY d.date_key ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
  ) AS cumulative_revenue,
  s.total_revenue - lag(s.total_revenue) OVER (ORDER BY d.date_key) AS revenue_change_vs_prior_day
FROM gold.daily_summary AS s
JOIN gold.dim_dates AS d ON d.date_key = s.pickup_date
