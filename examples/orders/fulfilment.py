"""What the fulfilment team owns: shipments, how long they take, and orders that went wrong.

It reads the sales team's tables by their contracts, and no code of theirs.
"""

from pyspark.sql import DataFrame
from shop import moment, number, shop

from lodestream import Json, Kafka

shop.bronze("shipments_raw", Kafka("shop.shipments"), owner="fulfilment")


@shop.silver(decode=Json("contracts/shipment_event.yaml"), contract="contracts/shipment.yaml")
def shipments(shipments_raw: DataFrame) -> DataFrame:
    return shipments_raw.withColumns(
        {
            "shipment_id": number("shipment_id"),
            "order_id": number("order_id"),
            "shipped_at": moment("shipped_at"),
        }
    )


shop.gold("payment_to_shipment", sql="gold/payment_to_shipment.sql", owner="fulfilment")
shop.gold("order_anomalies", sql="gold/order_anomalies.sql", owner="fulfilment")
