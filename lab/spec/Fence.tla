------------------------------- MODULE Fence -------------------------------
\* A fence (`export fence`), and a fence with a token: the writes of pods to one object, admitted by API servers that follow the Lease
\* through watches of their own, each as late as it likes. The token is the term of the lease, by the stamps of module Stamp: the
\* resourceVersion before the write that changed the writer; a created lease has none, and its own, less one, counts until then.
\* Defect names the clause of the design that is left out, or what surrounds it: "" is the design.
EXTENDS Naturals, Sequences, TLC
CONSTANTS Servers, MaxRev, MaxWrites, Fence, Defect
          \* Fence: "none", "fence", "token"
VARIABLES rev, lease, views, object, requests, last, writes, did
vars == <<rev, lease, views, object, requests, last, writes>>
\* lease: by, its writer; term; was, that of the tenure before; rv; ages: the number of the last tenure of each pod, which nothing
\* knows. views: the lease as each server has it. object: rv, and the token, 0 without one. last: the write that was stored last: of
\* which tenure, in which; top, the latest tenure that wrote before it; late: admitted after top had written; expired: while its lease
\* had expired. did: words for the last step.
Pods == {"a", "b"}
Low(n) == IF Defect = "a created lease counts from its own revision" THEN n ELSE n - 1
Term(l) == IF l.term = 0 THEN Low(l.rv) ELSE l.term
Init == /\ rev = 2 /\ lease = [rv |-> 2, by |-> "a", term |-> 0, was |-> 0, ages |-> [p \in Pods |-> IF p = "a" THEN 1 ELSE 0], expired |-> FALSE]
        /\ views = [s \in Servers |-> lease]
        /\ object = [rv |-> 0, token |-> 0] /\ requests = {} /\ last = [of |-> 0, in |-> 0, top |-> 0, late |-> FALSE, expired |-> FALSE]
        /\ writes = 0 /\ did = "a leads"
Age == lease.ages[lease.by]
Rest == <<views, object, requests, last, writes>>

Renew == /\ rev < MaxRev /\ ~lease.expired /\ rev' = rev + 1
         /\ lease' = [lease EXCEPT !.rv = rev', !.term = Term(lease)] /\ did' = lease.by \o " renews" /\ UNCHANGED Rest
Label == /\ rev < MaxRev /\ rev' = rev + 1 /\ lease' = [lease EXCEPT !.rv = rev'] /\ did' = "a label is set on the lease" /\ UNCHANGED Rest
Expire == ~lease.expired /\ lease' = [lease EXCEPT !.expired = TRUE] /\ did' = "the lease of " \o lease.by \o " expires" /\ UNCHANGED <<rev, Rest>>
Take(p) == /\ rev < MaxRev /\ lease.expired /\ p # lease.by /\ rev' = rev + 1
           /\ lease' = [rv |-> rev', by |-> p, was |-> Term(lease), ages |-> [lease.ages EXCEPT ![p] = Age + 1], expired |-> FALSE,
                        term |-> IF Defect = "a term changes with the writer only" THEN (IF p = "a" THEN 1 ELSE 2) ELSE lease.rv]
           /\ did' = p \o " takes the lease" /\ UNCHANGED Rest
Recreate(p) == /\ rev + 1 < MaxRev /\ rev' = rev + 2 /\ lease' = [rv |-> rev', by |-> p, was |-> Term(lease), term |-> 0,
                                                         ages |-> [lease.ages EXCEPT ![p] = Age + 1], expired |-> FALSE]
               /\ did' = "the lease is deleted, and " \o p \o " creates it" /\ UNCHANGED Rest
Watch(s) == /\ views[s] # [lease EXCEPT !.expired = FALSE] /\ views' = [views EXCEPT ![s] = [lease EXCEPT !.expired = FALSE]]
            /\ did' = "the watch of server " \o ToString(s) \o " brings the lease of " \o lease.by /\ UNCHANGED <<rev, lease, object, requests, last, writes>>

Admits(v, p) ==
  \/ Fence = "none" \/ (Defect = "a is not listed" /\ p = "a")
  \/ v.by = p /\ (Fence = "fence" \/ object.token <= Term(v) \/ (Defect = "an older term is not refused"))
View(s) == IF Fence = "none" THEN lease ELSE views[s]
Top == IF last.of > last.top THEN last.of ELSE last.top
Late(age) == Top > age
\* Who never led sends nothing.
Admit(s, p) ==
  /\ lease.ages[p] > 0 /\ writes < MaxWrites /\ writes' = writes + 1 /\ UNCHANGED <<rev, lease, views, object, last>>
  /\ IF Admits(views[s], p)
     THEN requests' = requests \cup {[s |-> s, p |-> p, v |-> View(s), base |-> object.rv, late |-> Late(View(s).ages[p])]}
          /\ did' = "server " \o ToString(s) \o " admits a write of " \o p
     ELSE requests' = requests /\ did' = "server " \o ToString(s) \o " refuses a write of " \o p
\* The token is stamped before the write is validated, perhaps by an older lease, so it is compared with the term then.
Put(v, p, late) ==
  /\ rev' = rev + 1 /\ last' = [of |-> v.ages[p], in |-> Age, top |-> Top, late |-> late, expired |-> lease.expired /\ lease.by = p]
  /\ did' = "the write of " \o p \o " is stored"
  /\ \E token \in (IF Fence # "token" THEN {0} ELSE IF Defect = "the token is not compared" THEN {Term(v), v.was} ELSE {Term(v)}) :
       object' = [rv |-> rev', token |-> token]
\* Admission is repeated if the object has changed meanwhile.
Store(w) ==
  /\ rev < MaxRev /\ requests' = requests \ {w} /\ UNCHANGED <<lease, views, writes>>
  /\ IF w.base = object.rv \/ Defect = "admission is not repeated" THEN Put(w.v, w.p, w.late)
     ELSE IF Admits(views[w.s], w.p) THEN Put(View(w.s), w.p, Late(View(w.s).ages[w.p]))
     ELSE UNCHANGED <<rev, object, last>> /\ did' = "server " \o ToString(w.s) \o " refuses the write of " \o w.p
\* A user who is not fenced writes the object; a token that it changes is put back.
Edit == /\ writes < MaxWrites /\ rev < MaxRev /\ writes' = writes + 1 /\ rev' = rev + 1
        /\ object' = [rv |-> rev', token |-> IF Defect = "a token is not put back" THEN 0 ELSE object.token]
        /\ did' = "a user changes the object" /\ UNCHANGED <<lease, views, requests, last>>
Next == \/ Renew \/ Label \/ Expire \/ Edit \/ \E p \in Pods : Take(p) \/ Recreate(p)
        \/ \E s \in Servers : Watch(s) \/ \E p \in Pods : Admit(s, p)
        \/ \E w \in requests : Store(w)
Spec == Init /\ [][Next]_<<vars, did>>

\* Writes are stored in the order of the tenures.
Fenced == last.of >= last.top
\* The same, but for a write that was on its way when a later tenure wrote first.
InFlight == last.of >= last.top \/ ~last.late
\* The leader of now is not refused by a server that knows it.
Leads == \A s \in Servers : (views[s].by = lease.by /\ views[s].rv = lease.rv) => Admits(views[s], lease.by)
\* What no fence keeps: a deposed leader writes nothing, and nobody writes while its lease has expired.
Deposed == last.of = last.in
Live == ~last.expired
=============================================================================
