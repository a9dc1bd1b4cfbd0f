"""Every note that we leave in the summary of a snapshot, each named once.

A batch has its notes in its stamp (`Stamp.notes`), which writes each of them as `lode.<note>`.
"""

from __future__ import annotations

PREFIX = "lode."

# Of any batch.
ASOF = "asof"  # epoch seconds up to which the table holds everything its sources had
GUEST = "guest"  # it leaves the positions as they are, such as a replay of dead letters
REPLAYED = "replayed"  # how many dead letters a replay took
ACCEPTED_GAP = "accepted-gap"  # when somebody accepted that rows of the source are lost
ADOPTED = "adopted"  # when the table was taken over from somebody else
HELD = "held"  # it may leave delete files: how many rows a reader found before it

# What made the rows of a batch.
CODE = "code"  # the code of a Silver table
PARTS = "parts"  # the parts of a Gold table's definition, and the definition as a whole
DEFINITION = "definition"
REFUSED = "refused"  # the definition of a plan that Spark has refused: it is not tried again at each start
TRIED = "tried"  # Spark had tried the plan when the batch was made: a first build needs no trial
MADE_FROM = "state"  # the snapshot of the state that a Gold batch was made from

# Of a batch with dead letters: the attempt whose letters belong to it, and up to where all letters are decided.
OWN = "dead"
SETTLED = "dead-settled"
# Of a snapshot of dead letters: the name of the attempt, and the main version of the table that it was built on.
ATTEMPT = "attempt"
BASE = "base"

# Of a staged snapshot: the id of the schema, and of the partitions, that become the table's own when it is published.
SCHEMA = f"{PREFIX}schema"
SPEC = f"{PREFIX}spec"

# Of commits that are no batch.
CREATED = {f"{PREFIX}created": "true"}  # the table was made
EVOLVED = {f"{PREFIX}evolved": "true"}  # its columns follow the contract
MENDED = {f"{PREFIX}mended": "true"}  # another tool had left the hidden columns out
