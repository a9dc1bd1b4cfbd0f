SELECT location_id, borough, zone_name, service_zone
FROM silver.zones
