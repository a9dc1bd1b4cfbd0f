-- Money received less money given back, by the day of the order and the region of the order or its customer.
SELECT
  coalesce(o.region, c.region, 'UNKNOWN') AS region,
  CAST(o.placed_at AS date) AS day,
  count(*) AS orders,
  sum(o.paid) AS paid,
  sum(o.refunded) AS refunded,
  sum(o.paid) - sum(o.refunded) AS net
FROM gold.order_facts o
LEFT JOIN silver.customers c ON c.customer_id = o.customer_id
GROUP BY coalesce(o.region, c.region, 'UNKNOWN'), CAST(o.placed_at AS date)
