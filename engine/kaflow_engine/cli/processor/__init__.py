"""`kaflow processor`: the operation of Lenses processors."""
