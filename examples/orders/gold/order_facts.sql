-- One row per order that anything is known of: events meet here by order, whichever comes first.
WITH known AS (
  SELECT order_id, customer_id, region, placed_at, amount AS ordered,
    CAST(NULL AS timestamp) AS paid_at, CAST(0 AS decimal(12,2)) AS paid,
    CAST(NULL AS timestamp) AS shipped_at, CAST(0 AS decimal(12,2)) AS refunded
  FROM silver.orders
  UNION ALL
  SELECT order_id, NULL, NULL, NULL, 0, paid_at, amount, NULL, 0 FROM silver.payments
  UNION ALL
  SELECT order_id, NULL, NULL, NULL, 0, NULL, 0, shipped_at, 0 FROM silver.shipments
  UNION ALL
  SELECT order_id, NULL, NULL, NULL, 0, NULL, 0, NULL, amount FROM silver.refunds
)
SELECT
  order_id,
  max(customer_id) AS customer_id,
  max(region) AS region,
  max(placed_at) AS placed_at,
  sum(ordered) AS ordered,
  sum(paid) AS paid,
  sum(refunded) AS refunded,
  min(paid_at) AS paid_at,
  min(shipped_at) AS shipped_at
FROM known
GROUP BY order_id
