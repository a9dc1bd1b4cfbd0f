"""A plan carried out step by step, whatever engine runs its SQL."""

from __future__ import annotations

from abc import ABC, abstractmethod

from lodestream.pipeline.gold import GoldPlan


class PlanExecutor(ABC):
    """Keeps `_lode_gold` by a plan; the views of the inputs and their feeds are there before each `publish`."""

    plan: GoldPlan

    @abstractmethod
    def view(self, name: str, sql: str | None) -> None: ...

    @abstractmethod
    def store(self, sql: str | None) -> None: ...

    def publish(self, changed: set[str]) -> None:
        plan = self.plan
        lookups = changed & set(plan.on_lookup_change)
        if plan.strategy == "full" or any(plan.on_lookup_change[name] == "full" for name in lookups):
            self.store(plan.full_sql)
        elif plan.strategy == "affected" or lookups:
            self._replace_keys(changed)
        else:
            self.view("_lode_state", plan.unpack_sql)
            self.view("_lode_delta", plan.delta_sql)
            self.view("_lode_both", plan.both_sql)
            self.view("_lode_folded", plan.fold_sql)
            self.store(plan.store_sql)

    def _replace_keys(self, changed: set[str]) -> None:
        if not changed:
            return
        self.view("_lode_keys", " UNION ".join(self.plan.affected_sql[name] for name in sorted(changed)))
        same = " AND ".join(f"g.`{key}` <=> k.`{key}`" for key in self.plan.affected_keys)
        kept = f"SELECT g.* FROM _lode_gold g LEFT ANTI JOIN _lode_keys k ON {same}"
        self.store(f"{kept} UNION ALL {self.plan.recompute_sql}")
