------------------------------- MODULE Stamp -------------------------------
\* The component `stamp` (deploy/stamp/policies.yaml): the API server writes the writer of a Lease, the time and the term into
\* annotations, and refuses other writers while the lease is live. Time is in ticks of half a second; stamps are whole seconds.
\* Defect names the clause of the design that is left out: "" is the design.
EXTENDS Integers, Sequences, TLC
CONSTANTS Offsets,      \* by how many ticks the clock of each API server is ahead: a set of numbers, one server for each
          Durations,    \* seconds
          Policies,     \* which policies may be in force: "both", "none", "guard" (the one that stamps is missing)
          MaxTime, MaxWrites, MaxSwitches, Defect
VARIABLES now, rv, lease, in, suffix, truth, past, loss, did
vars == <<now, rv, lease, in, suffix, truth, past, loss>>
\* lease: holder "" is nobody, duration 0 is none; writer "", written -1 and term 0 are no stamps, and all three count under
\* their suffix only; owner: whose object owns the lease. rv: the resourceVersion of the lease.
\* Known to no policy: truth, who wrote spec last (an exempt writer only if it changed the holder), when, and whether both policies
\* were in force since; past, the term of the tenure before; loss, whose lease this write took, cut or deleted, and how old. did: words for it.
\* a holds the lease, b is an honest elector, m an attacker; x is exempt: system:apiserver or system:masters.
NoLoss == [age |-> 0, duration |-> 0, by |-> ""]
None == [there |-> FALSE, holder |-> "", duration |-> 0, writer |-> "", written |-> -1, term |-> 0, suffix |-> 0, owner |-> ""]
Init == /\ now = 0 /\ rv = 2 /\ in = "none" /\ suffix = 1 /\ past = 0 /\ loss = NoLoss /\ did = "a leads"
        /\ \E d \in Durations : lease = [None EXCEPT !.there = TRUE, !.holder = "a", !.duration = d]
        /\ truth = [by |-> "a", at |-> 0, safe |-> FALSE]

Read(l) == IF l.suffix = suffix THEN l ELSE [l EXCEPT !.writer = "", !.written = -1, !.term = 0]
Ten(d) == IF d < 10 THEN d ELSE 10       \* the tolerance is two seconds, a fifth of a duration below ten
\* A write w asks for a holder, a duration and an owner; does: it "sets" a value in spec, which the API server dates, "removes" one,
\* or neither, "".
Changes(w) == w.does # "" \/ w.holder # lease.holder \/ w.duration # lease.duration
Stamped(p, o, w) ==
  LET old == Read(lease)
      same == lease.there /\ w.holder = lease.holder
      kept == lease.there /\ (~Changes(w) \/ (p = "x" /\ same))
      writer == IF kept \/ (p = "x" /\ Defect = "an exempt writer leaves the writer") THEN old.writer ELSE IF p = "x" THEN "" ELSE p
      written == IF kept THEN old.written ELSE IF w.does = "sets" THEN (now + o) \div 2
                 ELSE IF writer = old.writer THEN old.written ELSE -1
      term == IF ~lease.there THEN 0 ELSE IF kept THEN old.term
              ELSE IF writer # old.writer \/ (~same /\ Defect # "a term changes with the writer only") THEN rv
              ELSE IF old.term # 0 THEN old.term ELSE IF Defect = "a created lease counts from its own revision" THEN rv ELSE rv - 1
      \* The first stamp of a lease that is held changes nothing else. A lease that has stamps, if without a writer, is no such lease.
      first == same /\ lease.holder # ""
               /\ IF Defect = "a lease without a writer keeps its owner" THEN old.writer = "" ELSE lease.suffix # suffix
      \* Before it, what adds no owner and leaves the writer as it is adds no stamps.
      before == kept /\ first /\ lease.suffix # suffix /\ w.owner \in {"", lease.owner}
      inherits == lease.there /\ w.owner = lease.owner /\ ~first
                  /\ (writer # old.writer \/ (~same /\ Defect # "owners are removed with the writer only"))
  IN [there |-> TRUE, holder |-> w.holder, duration |-> w.duration, writer |-> writer, written |-> written, term |-> term,
      suffix |-> IF before THEN 0 ELSE suffix, owner |-> IF inherits /\ Defect # "an owner is inherited" THEN "" ELSE w.owner]
Plant(w) == [there |-> TRUE, holder |-> w.holder, duration |-> w.duration, owner |-> w.owner,
             writer |-> "m", written |-> MaxTime, term |-> 3 * MaxWrites, suffix |-> suffix]
Leave(w) == [lease EXCEPT !.there = TRUE, !.holder = w.holder, !.duration = w.duration, !.owner = w.owner]

Old == Read(lease)
Own(p) == p = "x" \/ Old.writer = p
Held == Old.writer # "" /\ lease.holder # ""
Expired(written) ==
  /\ written # -1
  /\ \/ Old.written = -1 \/ lease.duration = 0
     \/ 5 * (written - Old.written) + (IF Defect = "no tolerance" THEN 0 ELSE Ten(lease.duration)) >= 5 * lease.duration
\* The guard, about a write w of p that becomes l; is: whether the policy that stamps has stamped it.
Admits(p, w, l, is) ==
  \/ in = "none" \/ ~lease.there \/ Own(p)
  \/ /\ ~Held \/ ~Changes(w) \/ Expired(Read(l).written) \/ (Defect = "only the holder is guarded" /\ w.holder = lease.holder)
     /\ is \/ (~Held /\ [l EXCEPT !.holder = "", !.duration = 0, !.owner = ""] = [lease EXCEPT !.holder = "", !.duration = 0, !.owner = ""])
     /\ ~Held \/ Changes(w) \/ w.owner = lease.owner \/ Defect = "owners are not guarded"
Lost(p) == IF truth.safe /\ truth.by # "x" /\ p \notin {truth.by, "x"} /\ lease.holder # ""
           THEN [age |-> now - truth.at, duration |-> lease.duration, by |-> p] ELSE NoLoss
Term(l) == IF l.term # 0 THEN l.term ELSE IF Defect = "a created lease counts from its own revision" THEN rv ELSE rv - 1

Store(p, w, l) ==
  /\ rv <= MaxWrites + 1 /\ Admits(p, w, l, in = "both") /\ lease' = l /\ rv' = rv + 1 /\ UNCHANGED <<now, in, suffix>>
  /\ did' = p \o (IF ~Changes(w) THEN " changes metadata" ELSE IF ~lease.there THEN " creates the lease"
                   ELSE IF w.holder = lease.holder THEN " renews or changes the lease" ELSE IF w.holder = "" THEN " releases the lease"
                   ELSE " makes " \o w.holder \o " the holder")
  /\ IF ~Changes(w) THEN UNCHANGED <<truth, past>> /\ loss' = NoLoss
     ELSE /\ loss' = IF lease.there THEN Lost(p) ELSE NoLoss
          /\ truth' = IF p = "x" /\ w.holder = lease.holder THEN truth ELSE [by |-> p, at |-> now, safe |-> in = "both"]
          /\ past' = IF ~lease.there \/ in # "both" THEN past
                     ELSE IF w.holder # lease.holder \/ l.writer # Old.writer THEN Term(Old) ELSE past
Write(p, o, w) == IF in = "both" THEN Store(p, w, Stamped(p, o, w))
                  ELSE Store(p, w, Leave(w)) \/ (p = "m" /\ Store(p, w, Plant(w)))
Delete(p) == /\ rv <= MaxWrites + 1 /\ lease.there
             /\ in = "none" \/ Own(p) \/ ~Held \/ lease.duration = 0 \/ Defect = "a deletion is not guarded"
             /\ lease' = None /\ rv' = rv + 1 /\ loss' = Lost(p) /\ past' = Term(Old)
             /\ truth' = [by |-> "", at |-> now, safe |-> FALSE] /\ did' = p \o " deletes the lease" /\ UNCHANGED <<now, in, suffix>>
Collect == /\ lease.owner # "" /\ lease' = None /\ rv' = rv + 1 /\ loss' = (IF lease.owner = "m" THEN Lost("m") ELSE NoLoss) /\ past' = Term(Old)
           /\ truth' = [by |-> "", at |-> now, safe |-> FALSE] /\ did' = "the garbage collector deletes the lease"
           /\ UNCHANGED <<now, in, suffix>>
Wait == now < MaxTime /\ now' = now + 1 /\ did' = "half a second passes" /\ loss' = NoLoss /\ UNCHANGED <<rv, lease, in, suffix, truth, past>>
\* Both come back under a suffix that nobody knew.
Switch(to) == /\ to # in /\ suffix <= MaxSwitches /\ (to = "guard" => in = "both") /\ in' = to
              /\ suffix' = IF to = "both" /\ Defect # "the suffix is kept" THEN suffix + 1 ELSE suffix
              /\ truth' = [truth EXCEPT !.safe = FALSE] /\ loss' = NoLoss /\ past' = 0 /\ UNCHANGED <<now, rv>>
              /\ lease' = IF lease.owner = "m" THEN [lease EXCEPT !.owner = "earlier"] ELSE lease
              /\ did' = "in force: " \o to
Honest(p, o) ==
  \/ lease.holder = p /\ truth.by \in {p, "x"} /\ \E h \in {p, ""} :
       Write(p, o, [holder |-> h, duration |-> lease.duration, owner |-> lease.owner, does |-> IF h = p THEN "sets" ELSE ""])
  \/ (lease.holder = "" \/ now - truth.at >= 2 * lease.duration) /\ \E d \in Durations :
       Write(p, o, [holder |-> p, duration |-> d, owner |-> lease.owner, does |-> "sets"])
\* What a lease got before it was stamped stays, because the first stamp of a held lease changes nothing else: a limit.
Owner == IF in # "both" \/ (lease.suffix # suffix /\ lease.holder # "") THEN "earlier" ELSE "m"
Next == \/ Wait \/ Collect \/ Delete("m") \/ \E to \in Policies : Switch(to)
        \/ \E o \in Offsets :
             \/ Honest("a", o) \/ Honest("b", o)
             \/ \E h \in {"", "m", lease.holder}, d \in Durations \cup {0, lease.duration}, w \in {Owner, lease.owner},
                s \in {"", "sets", "removes"} : Write("m", o, [holder |-> h, duration |-> d, owner |-> w, does |-> s])
             \/ lease.there /\ Write("x", o, [holder |-> "b", duration |-> lease.duration, owner |-> lease.owner, does |-> ""])
Spec == Init /\ [][Next]_<<vars, did>>

Apart == CHOOSE n \in 0..10 : (\E x, y \in Offsets : x - y = n) /\ \A x, y \in Offsets : x - y <= n
\* Nobody else takes, renews, cuts, releases or deletes the lease of its writer before it has expired, but for the tolerance, what the
\* clocks of API servers differ by, and the second to which a stamp is cut.
Kept == (loss.by # "" /\ loss.duration # 0) => 5 * loss.age > 10 * loss.duration - 2 * Ten(loss.duration) - 5 * Apart - 10
\* The holder is never refused, if it wrote the lease last, or was chosen by an exempt writer.
Renewal == [holder |-> lease.holder, duration |-> lease.duration, owner |-> lease.owner, does |-> "sets"]
Renews == (lease.holder \in {"a", "b"} /\ truth.by \in {lease.holder, "x"}) =>
            \A o \in Offsets : LET l == IF in = "both" THEN Stamped(lease.holder, o, Renewal) ELSE Leave(Renewal)
                               IN Admits(lease.holder, Renewal, l, in = "both")
\* A takeover is never refused once the duration has passed, if the clocks are within the bound.
Within == Apart <= (IF lease.duration >= 10 THEN 4 ELSE IF lease.duration >= 5 THEN 2 ELSE 0)
Over == lease.there /\ in = "both" /\ Within /\ now - truth.at >= 2 * lease.duration
Takes == Over =>
           \A o \in Offsets : LET w == [Renewal EXCEPT !.holder = "c"] IN Admits("c", w, Stamped("c", o, w), TRUE)
\* No law: without a lease that is over, Takes says nothing.
NeverOver == ~Over
\* The term of a tenure is greater than that of every tenure before, over deletion and creation too.
Grows == (lease.there /\ in = "both" /\ truth.safe) => Term(Old) > past
=============================================================================
