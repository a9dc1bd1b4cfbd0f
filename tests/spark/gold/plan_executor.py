"""A plan carried out step by step, whatever engine runs its SQL."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod

from lodestream.pipeline.gold import GoldPlan, now_view


class PlanExecutor(ABC):
    """Keeps `_lode_gold` by a plan; the views of the inputs and their feeds are there before each `publish`.

    `large` does it as for a table that is not written as a whole: only the stored rows that the change meets are read
    and replaced, and inputs are read through the touched keys.
    """

    plan: GoldPlan
    large = False

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
        elif self.large and plan.stored_keys and plan.state_home != "table":
            self._replace_met()
        else:
            self.view("_lode_stored", plan.unpack_sql)
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
        self.store(f"{kept} UNION ALL {self._pruned() if self.large else self.plan.recompute_sql}")

    def _pruned(self) -> str:
        """The recompute over inputs of which only rows with a touched key are shown."""
        recompute = self.plan.recompute_sql or ""
        for name, pairs in self.plan.prune.items():
            view = now_view(name)
            among = [f"EXISTS (SELECT 1 FROM _lode_keys k WHERE k.`{key}` <=> n.`{column}`)" for column, key in pairs]
            self.view(f"{view}_pruned", f"SELECT n.* FROM {view} n WHERE {' AND '.join(among)}")
            recompute = re.sub(rf"\b{view}\b", f"{view}_pruned", recompute)
        return recompute

    def _replace_met(self) -> None:
        """Delta into a large table: the groups or rows that the change meets, folded and put in the place of theirs."""
        plan = self.plan
        names = [f"`{key}`" for key, _ in plan.stored_keys]
        self.view("_lode_delta", plan.delta_sql)
        met = " AND ".join(f"s.{name} <=> d.{name}" for name in names)
        self.view("_lode_stored", f"SELECT s.* FROM ({plan.unpack_sql}) s LEFT SEMI JOIN _lode_delta d ON {met}")
        self.view("_lode_both", plan.both_sql)
        self.view("_lode_folded", plan.fold_sql)
        same = " AND ".join(f"g.{stored} <=> k.`{key}`" for key, stored in plan.stored_keys)
        kept = f"SELECT g.* FROM _lode_gold g LEFT ANTI JOIN _lode_delta k ON {same}"
        self.store(f"{kept} UNION ALL {plan.store_sql}")
