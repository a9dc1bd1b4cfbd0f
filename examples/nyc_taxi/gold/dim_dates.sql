-- One row per date with trips. Holidays of the month: New Year's Day and Martin Luther King Jr. Day.
SELECT DISTINCT
  pickup_date AS date_day,
  year(pickup_date) AS year,
  month(pickup_date) AS month,
  day(pickup_date) AS day_of_month,
  pickup_day_of_week AS day_of_week,
  is_weekend,
  pickup_date IN (DATE '2024-01-01', DATE '2024-01-15') AS is_holiday
FROM silver.trip_metrics
