------------------------------ MODULE Stamped ------------------------------
\* Leases of a torture run as behaviors of module Stamp: the versions of a lease, as etcd stored them, with their stamps.
\* A trace that the module allows is printed when its end is reached.
EXTENDS Stamp
CONSTANTS Traces        \* tuples of versions: at, the second of the write; before, the revision that it replaced; holder, duration,
                        \* writer, written, term; owner; by: who deleted it, or "" if no one did
VARIABLES t, rest, ready
All == <<vars, did, t, rest, ready>>
Where == <<t, Len(rest), ready>>
Lease(v) == [there |-> TRUE, holder |-> v.holder, duration |-> v.duration, writer |-> v.writer, written |-> v.written,
             term |-> v.term, suffix |-> 1, owner |-> v.owner]
TraceInit ==
  /\ \E all \in {Traces} : \E n \in 1..Len(all) : t = n /\ rest = Tail(all[n]) /\ now = 2 * all[n][1].at
       /\ lease = Lease(all[n][1]) /\ rv = all[n][1].before + 1
  /\ in = "both" /\ suffix = 1 /\ past = 0 /\ loss = NoLoss /\ did = "" /\ ready = FALSE
  /\ truth = [by |-> "", at |-> now, safe |-> FALSE]
Advance(v) == /\ ~ready /\ ready' = TRUE /\ now <= 2 * v.at /\ now' = 2 * v.at /\ rv' = v.before
              /\ UNCHANGED <<lease, in, suffix, truth, past, loss, did, t, rest>>
Step(v) ==
  /\ ready /\ ready' = FALSE
  /\ IF v.by # "" THEN Delete(v.by)
     ELSE /\ \E p \in {v.writer, "m", "x"}, s \in {"", "sets", "removes"}, o \in {lease.owner, v.owner} :
               p # "" /\ Write(p, 0, [holder |-> v.holder, duration |-> v.duration, owner |-> o, does |-> s])
          /\ lease' = Lease(v)
  /\ rest' = Tail(rest) /\ UNCHANGED t
  /\ IF Len(rest) = 1 THEN PrintT(<<"allowed", t>>) ELSE TRUE
TraceSpec == TraceInit /\ [][rest # <<>> /\ LET v == Head(rest) IN Advance(v) \/ Step(v)]_All
=============================================================================
