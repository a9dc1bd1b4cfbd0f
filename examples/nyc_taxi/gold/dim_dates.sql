-- One row per date with trips. Holidays of the month: New Year's Day and Martin Luther King Jr. Day.
-- Weeks are those of ISO 8601; days of the week are counted from Sunday, 0.
SELECT DISTINCT
  pickup_date AS date_key,
  year(pickup_date) AS year,
  month(pickup_date) AS month,
  day(pickup_date) AS day_of_month,
  dayofweek(pickup_date) - 1 AS day_of_week_num,
  pickup_day_of_week AS day_of_week_name,
  date_format(pickup_date, 'MMMM') AS month_name,
  weekofyear(pickup_date) AS week_of_year,
  is_weekend,
  pickup_date IN (DATE '2024-01-01', DATE '2024-01-15') AS is_holiday
FROM silver.trip_metrics
