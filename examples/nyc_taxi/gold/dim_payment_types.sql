SELECT payment_type_id, payment_type_name
FROM silver.payment_types
