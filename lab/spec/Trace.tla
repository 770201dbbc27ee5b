------------------------------- MODULE Trace -------------------------------
\* Recorded leases as behaviors of module Takeover: the versions of a lease, as a watch saw them, with the stamps of one API server.
\* A trace that the module allows is printed when its end is reached.
EXTENDS Takeover
CONSTANTS Traces        \* tuples of versions: at, the second of the write; holder, duration, renewTime and seen
VARIABLES t, rest
All == <<vars, did, t, rest>>
Where == <<t, Len(rest), now, lease>>
TraceInit ==
  /\ \E all \in {Traces} : \E n \in 1..Len(all) : t = n /\ rest = Tail(all[n]) /\ now = 2 * all[n][1].at
       /\ lease = [holder |-> all[n][1].holder, duration |-> all[n][1].duration, renewTime |-> all[n][1].renewTime,
                   seen |-> all[n][1].seen, claimed |-> 0, owner |-> ""]
  /\ renewed = now /\ dated = now /\ writes = 0 /\ loss = NoLoss /\ did = ""
\* Of a lease that nobody holds, nothing else matters.
Is(l, v) == l.holder = v.holder /\ (v.holder = "" \/ (l.duration = v.duration /\ l.renewTime = v.renewTime /\ l.seen = v.seen))
Advance(v) == now < 2 * v.at /\ now' = 2 * v.at /\ UNCHANGED <<lease, renewed, dated, writes, loss, did, t, rest>>
Step(v) ==
  /\ now = 2 * v.at
  /\ \/ Renew("m", 0, v.duration, 0) \/ Label(0)
     \/ v.holder # "" /\ (Take(v.holder, 0, v.duration, 0) \/ Rename(v.holder, 0))
     \/ lease.holder # "" /\ Release(lease.holder, 0)
  /\ Is(lease', v) /\ rest' = Tail(rest) /\ UNCHANGED t
  /\ IF Len(rest) = 1 THEN PrintT(<<"allowed", t>>) ELSE TRUE
TraceSpec == TraceInit /\ [][rest # <<>> /\ LET v == Head(rest) IN Advance(v) \/ Step(v)]_All
=============================================================================
