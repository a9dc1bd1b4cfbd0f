# ruff: noqa: E501 - a query reads best in one piece
"""A small shop for the tests of `lode plan`: its contract, its pipeline, and queries that Spark was asked about."""

from __future__ import annotations

from collections.abc import Mapping

CONTRACT = """\
apiVersion: v3.0.2
kind: DataContract
id: order
name: order
version: 1.0.0
status: active
schema:
  - name: order
    properties:
      - {name: order_id, logicalType: integer, physicalType: bigint, required: true, primaryKey: true}
      - {name: status, logicalType: string, physicalType: string}
      - {name: amount, logicalType: number, physicalType: "decimal(12,2)"}
      - {name: paid, logicalType: boolean, physicalType: boolean}
      - {name: tags, logicalType: array, physicalType: "array<string>", items: {logicalType: string, physicalType: string}}
      - {name: ordered_at, logicalType: date, physicalType: timestamp}
"""
PIPELINE = """\
from lodestream import Debezium, Files, Json, Kafka, Pipeline

shop = Pipeline("shop")
shop.bronze("raw", Kafka("orders"))


@shop.silver(decode=Json(), contract="order.yaml")
def orders(raw):
    return raw
"""
TABLES: Mapping[str, Mapping[str, str]] = {
    "silver.orders": {
        "id": "bigint", "status": "string", "amount": "decimal(10,2)", "tags": "array<string>", "flag": "boolean",
        "ordered_at": "timestamp", "address": "struct<city:string>", "pairs": "map<string,int>", "raw": "binary",
        "day": "date", "local": "timestamp_ntz",
    },
    "silver.zones": {"zone": "int", "name": "string"},
}  # fmt: skip
RIGHT = [
    "SELECT address.city, orders.address.city c2, orders.id, tags[0] AS f, pairs['k'] AS k, pairs.k AS k2 FROM silver.orders",
    "SELECT id, item FROM silver.orders LATERAL VIEW explode(tags) t AS item",
    "SELECT id, col FROM silver.orders LATERAL VIEW explode(tags) t",
    "SELECT o.id, t.x FROM silver.orders o, LATERAL explode(o.tags) AS t(x)",
    "SELECT x FROM (SELECT explode(tags) AS x FROM silver.orders)",
    "SELECT col FROM (SELECT explode(tags) FROM silver.orders)",
    "SELECT a FROM (SELECT stack(2, id, id) AS a FROM silver.orders)",
    "SELECT k, v FROM (SELECT explode(pairs) AS (k, v) FROM silver.orders)",
    "SELECT window.start AS s, count(*) AS n FROM silver.orders GROUP BY window(ordered_at, '1 hour')",
    "SELECT session_window.start AS s, count(*) AS n FROM silver.orders GROUP BY session_window(ordered_at, '1 hour')",
    "SELECT date_trunc('day', ordered_at) AS d, sum(amount) AS s, s / 2 AS h FROM silver.orders GROUP BY d",
    "SELECT upper(status) AS u, count(*) n FROM silver.orders GROUP BY upper(status) HAVING n > 1 ORDER BY u",
    "SELECT status, sum(sum(amount)) OVER (ORDER BY status) AS r FROM silver.orders GROUP BY status",
    "SELECT timestampdiff(MINUTE, ordered_at, ordered_at) AS m, extract(YEAR FROM ordered_at) AS y, dateadd(DAY, 1, ordered_at) AS z, datediff(ordered_at, ordered_at) q FROM silver.orders",
    "SELECT transform(tags, t -> concat(t, status)) AS x, aggregate(tags, 0, (a, b) -> a + length(b)) AS y, filter(tags, (x, i) -> i > 0) z FROM silver.orders",
    "SELECT id FROM silver.orders o WHERE amount > (SELECT avg(amount) FROM silver.orders i WHERE i.status = o.status)",
    "SELECT zone FROM silver.zones UNION ALL SELECT id FROM silver.orders ORDER BY zone",
    "SELECT a FROM VALUES (1, 2) AS v(a, b)",
    "SELECT id FROM range(10)",
    "SELECT status, any(flag) AS f, some(flag) AS g, every(flag) AS h, count_if(flag) AS c, percentile_cont(0.5) WITHIN GROUP (ORDER BY amount) AS p, listagg(status, ',') l, first(id) fi, mode(id) m FROM silver.orders GROUP BY status",
    "SELECT status, count(*) FILTER (WHERE flag) AS n, max_by(id, amount) AS m FROM silver.orders GROUP BY ALL",
    "SELECT status, flag, count(*) AS n FROM silver.orders GROUP BY ROLLUP(status, flag)",
    "SELECT status, flag, grouping_id() AS g, count(*) AS n FROM silver.orders GROUP BY GROUPING SETS ((status), (flag))",
    "SELECT count(*) AS n, current_date AS d, current_date() AS e, now() AS f, current_user AS u FROM silver.orders",
    "SELECT id, lag(amount) OVER w AS l FROM silver.orders WINDOW w AS (PARTITION BY status ORDER BY id)",
    "SELECT mask(status, lowerChar => 'q') AS m, make_date(2024, 1, 1) AS d, try_cast(status AS INT) AS i, struct(id AS a, status) AS st, named_struct('a', id) AS ns, map('a', 1) AS mm, array(1,2) AS ar FROM silver.orders",
    "SELECT substring(status FROM 1 FOR 2) AS s, trim(BOTH 'x' FROM status) AS t, position('a' IN status) AS p, overlay(status PLACING 'a' FROM 1) AS o FROM silver.orders",
    "SELECT INTERVAL '1' DAY AS i, DATE '2024-01-01' AS d, status LIKE '%x' AS l, status RLIKE 'x' AS r FROM silver.orders",
    "SELECT CASE WHEN flag THEN 1 ELSE 0 END AS c, count(*) AS n FROM silver.orders GROUP BY CASE WHEN flag THEN 1 ELSE 0 END",
    "SELECT sum(CASE WHEN flag THEN amount END) AS s, id % 2 AS k FROM silver.orders GROUP BY id % 2",
    "SELECT `status` FROM `silver`.`orders` WHERE STATUS = 'x'",
    "SELECT s.zone FROM (SELECT zone, count(*) OVER () AS n FROM silver.zones) s WHERE s.n > 1",
    "SELECT t.a FROM (SELECT id, status FROM silver.orders) AS t(a, b)",
    "WITH t(a, b) AS (SELECT id, status FROM silver.orders) SELECT a, b FROM t",
    "SELECT o.*, z.name FROM silver.orders o LEFT JOIN silver.zones z ON z.zone = o.id",
    "SELECT id FROM silver.orders WHERE id IN (SELECT zone FROM silver.zones) AND status NOT IN ('a')",
    "SELECT (SELECT max(zone) FROM silver.zones) AS z, id FROM silver.orders",
    "SELECT count(DISTINCT id) AS n, collect_list(struct(id, amount)) AS l, sum(status) AS s FROM silver.orders",
    "SELECT z.n FROM silver.orders o JOIN LATERAL (SELECT count(*) AS n FROM silver.zones WHERE zone = o.id) z",
    "SELECT date_part('year', ordered_at) AS y, trunc(ordered_at, 'MM') AS t, to_char(amount, '999') AS c, try_divide(1, id) AS d, xxhash64(id) AS x, ifnull(status,'') AS i, nvl(status,'') n, len(status) l, left(status, 1) le, if(flag,1,2) ii FROM silver.orders",
    "SELECT id::string AS s, id <=> 1 AS e, id DIV 2 AS q, status || 'x' AS y, !flag AS z, ~id AS w FROM silver.orders",
    "SELECT * FROM (SELECT status, flag, amount FROM silver.orders) PIVOT (sum(amount) FOR flag IN (true AS yes, false AS no))",
    "SELECT status, amount AS total, total * 2 AS twice FROM silver.orders",
    "SELECT a.id FROM silver.orders a LEFT SEMI JOIN silver.zones b ON a.id = b.zone",
    "SELECT max(id) AS m FROM silver.orders HAVING count(*) > 1",
    "SELECT status, count(*) AS n FROM silver.orders GROUP BY 1",
    "SELECT id FROM silver.orders ORDER BY amount DESC LIMIT 3",
    "SELECT date_format(ordered_at, 'yyyy') AS year, count(*) AS n FROM silver.orders GROUP BY year",
    "SELECT c.x FROM (SELECT o.status AS x FROM silver.orders o LEFT ANTI JOIN silver.zones c ON c.zone = o.id) c",
    "SELECT * FROM silver.zones z LEFT SEMI JOIN silver.orders o ON o.id = z.zone",
    "SELECT status, count(*) AS amount FROM silver.orders GROUP BY status HAVING amount > 1",
    "SELECT status, count(*) AS n FROM silver.orders GROUP BY ALL HAVING status > 'a' AND max(amount) > 1 AND NOT bool_and(flag)",
    "SELECT address.city, count(*) AS n FROM silver.orders GROUP BY address HAVING address.city = 'x'",
    "SELECT window.start AS s, count(*) AS n FROM silver.orders GROUP BY window(ordered_at, '1 hour') HAVING window.start IS NOT NULL",
    "SELECT o.id FROM silver.orders o WHERE EXISTS (SELECT max(z.zone) FROM silver.zones z HAVING o.amount > 1)",
    "SELECT o.id, (SELECT count(*) FROM silver.zones z WHERE z.zone = o.id HAVING max(z.zone) > o.id) AS m FROM silver.orders o",
    "SELECT 1 AS one FROM silver.orders HAVING 1 = 1",
    "SELECT sum(ordered_at) AS s, avg(ordered_at) AS a, max(day) AS d, min(local) AS l FROM silver.orders",
    "SELECT address.*, o.address.* FROM silver.orders o",
    "SELECT transform(tags, T -> concat(t, status)) AS a, transform(tags, t -> transform(tags, u -> concat(t, u, status))) AS b FROM silver.orders",
    "SELECT a.zone FROM silver.zones a JOIN silver.zones b USING (ZONE) JOIN silver.zones c USING (zone, name)",
    "WITH a AS (SELECT zone, name FROM silver.zones) SELECT zone FROM a",
    "SELECT status, id % 2 AS k, count(*) AS n FROM silver.orders GROUP BY 1, 2 ORDER BY 3 DESC, 1",
    "SELECT concat(status, ',,') AS c, split(status, '(,') AS d FROM silver.orders -- ,, (",
]
WRONG = [
    "SELECT stat FROM silver.orders",
    "SELECT o.stat FROM silver.orders o",
    "SELECT z.status FROM silver.orders o",
    "SELECT silver.orders.stat FROM silver.orders",
    "WITH a AS (SELECT status AS s FROM silver.orders) SELECT a.status FROM a",
    "SELECT o.id FROM silver.orders o WHERE EXISTS (SELECT 1 FROM silver.zones z WHERE z.zon = o.id)",
    "SELECT id, item FROM silver.orders LATERAL VIEW explode(tag) t AS item",
    "SELECT o.id FROM silver.orders o LEFT SEMI JOIN silver.zones z ON z.zon = o.id",
    "SELECT t.x FROM silver.orders o JOIN (SELECT o.id AS x FROM silver.zones) t ON t.x = o.id",
    "SELECT coun(*) AS n FROM silver.orders",
    "SELECT lenght(status) AS n FROM silver.orders",
    *(f"SELECT sum({column}) AS n FROM silver.orders" for column in ("tags", "flag", "address", "pairs", "raw")),
    "SELECT status, id, count(*) AS n FROM silver.orders GROUP BY status",
    "SELECT status, count(*) AS n FROM silver.orders",
    "SELECT id, upper(status) AS s, sum(amount) AS n FROM silver.orders GROUP BY id",
    "WITH a AS (SELECT zone, nam FROM silver.zones) SELECT zone FROM a",
    "SELECT zone FROM (SELECT zone, nam FROM silver.zones)",
    "SELECT zone FROM (SELECT zone FROM (SELECT zone, nam FROM silver.zones)) UNION ALL SELECT zone FROM silver.zones",
    "SELECT status, count(*) AS n FROM silver.orders GROUP BY status HAVING amount > 1",
    "SELECT id FROM silver.orders HAVING amount > 1",
    *(f"SELECT {call} AS n FROM silver.orders" for call in ("sum(day)", "avg(day)", "sum(local)", "stddev(ordered_at)")),
    "SELECT a.zone FROM silver.zones a JOIN silver.zones b USING (zonee)",
    "SELECT a.id FROM silver.orders a JOIN silver.zones b USING (zone)",
    "SELECT x.* FROM silver.orders",
    "SELECT count(x.*) AS n FROM silver.orders o",
    "SELECT transform(tags, t -> concat(t, statu)) AS m FROM silver.orders",
    "SELECT id,, status FROM silver.orders",
    "SELECT id, status, FROM silver.orders",
    "SELECT coalesce(id,) AS n FROM silver.orders",
    "SELECT (id FROM silver.orders",
    "SELECT id) FROM silver.orders",
    "SELECT count(*) AS n FROM silver.orders GROUP BY 5",
    "SELECT id FROM silver.orders ORDER BY 2",
    "SELECT avrage(id) AS n FROM silver.orders",
    "SELECT average(id) AS n FROM silver.orders",
]  # fmt: skip
