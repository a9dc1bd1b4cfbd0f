"""Whether a Gold table is what its query says, asked by computing it again."""
