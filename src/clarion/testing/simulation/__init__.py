"""The seeded simulation: the real pipeline on the real SQLite store, in a world that does its worst.

One run follows from one seed: `option` draws what may go wrong and what is asked for, `world` puts processes, people
and providers together, `run` lets faults loose, heals everything and judges. In between:

- `loop` decides who runs next and what time it is, `weather` what fails at every call of a port, `moment` at which step
  of a process somebody acts: the `nemesis`, which kills, pauses and stops, or a `person`;
- `outside` is the provider with its `ledger`; `client` and `person` are those who ask, and `notes` has what they asked
  for and were told; `broadcast` puts some messages behind a gate;
- `truth` works out from notes and ledger what may have become of a message, `excuse` whether a worker had a reason to
  write nothing down of a claim, `ordering` who had to go first;
- `watch` reads the database after every commit, and `invariant`, `stage_invariant` and `truth_invariant` say what must
  hold of what it shows, `calling` at every call, `ending` and `audited` at the end; `coverage` counts what was met, so
  that a green run is not green because nothing happened.

`python -m clarion.testing.simulate` is the door.
"""
