-- How far the orders of a day came.
SELECT
  CAST(placed_at AS date) AS day,
  count(*) AS placed,
  count_if(paid > 0) AS paid,
  count_if(paid > 0 AND shipped_at IS NOT NULL) AS shipped,
  count_if(paid > 0 AND shipped_at IS NOT NULL AND refunded = 0) AS kept
FROM gold.order_facts
WHERE placed_at IS NOT NULL
GROUP BY CAST(placed_at AS date)
