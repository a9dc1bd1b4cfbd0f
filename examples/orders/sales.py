"""What the sales team owns: orders, payments, refunds, customers, and the figures made of them."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from shop import moment, money, number, shop

from lodestream import Debezium, Json, Kafka

shop.bronze("orders_raw", Kafka("shop.orders"), owner="sales")
shop.bronze("payments_raw", Kafka("shop.payments"), owner="sales")
shop.bronze("refunds_raw", Kafka("shop.refunds"), owner="sales")
shop.bronze("customers_raw", Kafka("shop.public.customers"), owner="sales")


@shop.silver(
    decode=Json("contracts/order_event.yaml"), contract="contracts/order.yaml", keys="order_id", sequence_by="version"
)
def orders(orders_raw: DataFrame) -> DataFrame:
    """One row per order, as last amended."""
    return orders_raw.withColumns(
        {
            "order_id": number("order_id"),
            "customer_id": number("customer_id"),
            "version": f.coalesce("version", f.lit(1)),
            "region": f.upper("region"),
            "amount": money("amount"),
            "placed_at": moment("placed_at"),
        }
    )


@shop.silver(decode=Json("contracts/payment_event.yaml"), contract="contracts/payment.yaml")
def payments(payments_raw: DataFrame) -> DataFrame:
    """One row per payment; the same payment told twice counts once."""
    return payments_raw.withColumns(
        {
            "payment_id": number("payment_id"),
            "order_id": number("order_id"),
            "amount": money("amount"),
            "paid_at": moment("paid_at"),
        }
    )


@shop.silver(decode=Json("contracts/refund_event.yaml"), contract="contracts/refund.yaml")
def refunds(refunds_raw: DataFrame) -> DataFrame:
    return refunds_raw.withColumns(
        {
            "refund_id": number("refund_id"),
            "order_id": number("order_id"),
            "amount": money("amount"),
            "refunded_at": moment("refunded_at"),
        }
    )


@shop.silver(
    decode=Debezium(Json("id bigint, name string, region string")),
    contract="contracts/customer.yaml",
    keys="customer_id",
    sequence_by="__lsn",
    delete_when="__deleted",
)
def customers(customers_raw: DataFrame) -> DataFrame:
    """The customers table of the shop's database, as it is now."""
    return customers_raw.withColumnRenamed("id", "customer_id")


shop.gold("order_facts", sql="gold/order_facts.sql", contract="contracts/order_facts.yaml", owner="sales")
shop.gold("daily_revenue", sql="gold/daily_revenue.sql", owner="sales")
shop.gold("funnel", sql="gold/funnel.sql", owner="sales")
shop.gold("customer_features", sql="gold/customer_features.sql", owner="sales")
