-- For models: what a customer has done so far.
SELECT
  customer_id,
  count(*) AS orders,
  sum(ordered) AS ordered,
  sum(paid) - sum(refunded) AS spent,
  max(placed_at) AS last_order_at,
  max(ordered) AS largest_order,
  count_if(refunded > 0) AS refunded_orders
FROM gold.order_facts
WHERE customer_id IS NOT NULL
GROUP BY customer_id
