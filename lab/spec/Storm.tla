------------------------------- MODULE Storm -------------------------------
\* One lease and an elector whose write is a PUT over what it has read: it fails if anything was stored in between. Another client writes
\* metadata as often as it likes. Revisions are counted as what matters of them: whether the elector's copy is the stored one.
\* Defect names the clause of the design that is left out: "" is the design.
EXTENDS Integers
CONSTANTS Duration,     \* in ticks
          Stamped,      \* whether the API server knows the writer of the lease
          Defect
VARIABLES age, held, copy, did
vars == <<age, held, copy>>
\* age: ticks since the last renewal; copy: what the elector has, the stored "fresh" one, an "old" one, or "none".
Init == age = 0 /\ held = TRUE /\ copy = "none" /\ did = "a leads"
Reads == held /\ copy # "fresh" /\ copy' = "fresh" /\ did' = "a reads" /\ UNCHANGED <<age, held>>
\* A write over an old copy is a conflict, and the elector reads again.
Renews == /\ held /\ copy # "none" /\ copy' = "none"
          /\ IF copy = "fresh" THEN age' = 0 /\ did' = "a renews" ELSE UNCHANGED age /\ did' = "a gets a conflict"
          /\ UNCHANGED held
\* Of a lease that is held by its stamped writer, nobody else changes anything; one that has expired may be taken.
Labels == /\ ~(Stamped /\ held) \/ Defect = "metadata is not guarded"
          /\ copy' = (IF copy = "fresh" THEN "old" ELSE copy) /\ did' = "m changes a label" /\ UNCHANGED <<age, held>>
Takes == held /\ age = Duration /\ held' = FALSE /\ copy' = "none" /\ did' = "m takes the lease" /\ UNCHANGED age
Tick == age < Duration /\ age' = age + 1 /\ did' = "half a second passes" /\ UNCHANGED <<held, copy>>
Next == Reads \/ Renews \/ Labels \/ Takes \/ Tick
\* The elector is as fast as the clock: it reads and writes again and again, which nobody can keep it from.
Spec == Init /\ [][Next]_<<vars, did>> /\ WF_vars(Reads) /\ WF_vars(Renews)
\* As long as it holds the lease it renews it at some time.
Renewed == [](held => <>(age = 0 \/ ~held))
============================================================================
