-- One row per pickup date.
-- Averages are taken over decimal(18,6) and rounded half up to 2 places at the end: sums of decimals are exact in any
-- order, so a correction that takes a trip away again leaves no trace, as it would in sums of doubles.
SELECT
  pickup_date,
  pickup_day_of_week,
  is_weekend,
  count(*) AS total_trips,
  sum(passenger_count) AS total_passengers,
  round(avg(cast(trip_distance_miles AS decimal(18, 6))), 2) AS avg_trip_distance,
  round(avg(cast(trip_duration_minutes AS decimal(18, 6))), 2) AS avg_trip_duration_min,
  round(avg(cast(avg_speed_mph AS decimal(18, 6))), 2) AS avg_speed_mph,
  sum(fare_amount) AS total_fare_revenue,
  sum(tip_amount) AS total_tip_revenue,
  sum(total_amount) AS total_revenue,
  round(avg(cast(total_amount AS decimal(18, 6))), 2) AS avg_trip_revenue,
  round(avg(cast(tip_percentage AS decimal(18, 6))), 2) AS avg_tip_percentage,
  count_if(payment_type_id = 1) AS credit_card_trips,
  count_if(payment_type_id = 2) AS cash_trips
FROM silver.trip_metrics
GROUP BY pickup_date, pickup_day_of_week, is_weekend
