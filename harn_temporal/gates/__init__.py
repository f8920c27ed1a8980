"""Gates: what holds a dispatch back, across every worker of a store.

Every operation is a function on a transaction of the EventLog. All state is in the records of the
gates' topics, folded into tables that `tx.gates` and `tx.circuits` read.

| function | in | what it does |
| --- | --- | --- |
| `gate_keys(binding, event)`, `waiting_rank(…)` | `keys` | the gates of an event |
| `pass_gates(tx, gates, asker)` | `admission` | asks the gates in order until one stops it |
| `admit(tx, gate, key, asker)` | `admission` | asks one: `Granted`, `Wait` or `Skip` |
| `release(tx, holder)` | `leaving` | gives permits back; returns whom to signal |
| `renew(tx, holder, ttl_ms)` | `leaving` | moves the expiry of all that a holder holds |
| `abandon(tx, holder)` | `leaving` | takes all from a holder that ends waiting, or is gone |
| `sweep(tx)` | `leaving` | ends what has expired, forgets what no longer counts |
| `batch_members(reader, address)` | `gathering` | the events of a batch |
| `ask_circuit`, `tell_circuit` | `circuit` | before and after attempts at a destination |

A holder is a dispatch, by the id of its workflow. A decision to wait names a time; whoever frees a
place is told (`Wake`) whom to signal, and a signal that is lost costs time only.
"""
