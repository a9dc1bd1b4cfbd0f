-- Orders that do not add up as far as is known now; a row disappears when what was missing arrives.
SELECT
  order_id,
  placed_at IS NULL AS never_placed,
  shipped_at IS NOT NULL AND paid_at IS NULL AS shipped_unpaid,
  shipped_at < paid_at AS shipped_before_paid,
  placed_at IS NOT NULL AND paid > ordered AS overpaid,
  refunded > paid AS refunded_too_much
FROM gold.order_facts
WHERE placed_at IS NULL
  OR (shipped_at IS NOT NULL AND paid_at IS NULL)
  OR shipped_at < paid_at
  OR (placed_at IS NOT NULL AND paid > ordered)
  OR refunded > paid
