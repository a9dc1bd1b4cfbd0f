-- Seconds from payment to shipment, by the day of the payment; an order shipped before it was paid is an anomaly.
SELECT
  CAST(paid_at AS date) AS day,
  count(*) AS orders,
  sum(unix_seconds(shipped_at) - unix_seconds(paid_at)) AS seconds,
  max(unix_seconds(shipped_at) - unix_seconds(paid_at)) AS slowest
FROM gold.order_facts
WHERE paid_at IS NOT NULL AND shipped_at >= paid_at
GROUP BY CAST(paid_at AS date)
