"""The ledger on a PostgreSQL server that several machines share. `engine` makes writers and readers.

One row, `ledger`, is locked by every transaction that writes: so all machines together have one writer, as
one machine has, and what is planned inside a transaction cannot change before it is written. Only the row is
the lock: whoever vanishes in the middle loses it within `connecting.IDLE_MS`, and unique indexes hold what
matters whoever writes. Nothing here needs more than tables, row locks, and text search with an inverted
index, which servers that speak the same protocol have too.

Rows hold the texts: a segment would be of use to the machine alone that wrote it. Cursors and losses belong
to a machine, since two of them may have sources of the same name; runs and checkouts belong to one too, since
process numbers and paths mean nothing elsewhere.
"""
