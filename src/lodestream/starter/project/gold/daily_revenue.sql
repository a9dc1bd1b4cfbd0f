-- Kept equal to this query over all of silver.orders, also when an order arrives late.
SELECT
  cast(ordered_at AS date) AS day,
  region,
  count(*) AS orders,
  sum(amount) AS revenue
FROM silver.orders
GROUP BY cast(ordered_at AS date), region
