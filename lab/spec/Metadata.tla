------------------------------ MODULE Metadata -----------------------------
\* Module Stamp with metadata, sizes and counts, and the second law: the API server writes the writer of a Lease, the time and the term into
\* annotations, and refuses other writers while the lease is live. Time is in ticks of half a second; stamps are whole seconds.
\* Defect names the clause of the design that is left out: "" is the design.
EXTENDS Integers, Sequences, TLC
CONSTANTS Offsets,      \* by how many ticks the clock of each API server is ahead: a set of numbers, one server for each
          Durations,    \* seconds
          Policies,     \* which policies may be in force: "both", "none", "guard" (the one that stamps is missing)
          MaxTime, MaxWrites, MaxSwitches, Defect,
          Sizes,        \* how many labels a write of the attacker may leave; {} leaves them alone
          Counts,       \* leaseTransitions that it may set while the policies are in force; {} likewise
          Habits,       \* what an honest elector puts back with each write: "label", "owner"
          Asked         \* what the namespace asks for: "open" metadata, or the "rules" of strict, too
VARIABLES now, rv, lease, in, suffix, truth, past, loss, stir, did
vars == <<now, rv, lease, in, suffix, truth, past, loss, stir>>
\* lease: holder "" is nobody, duration 0 is none; writer "", written -1 and term 0 are no stamps, and all three count under
\* their suffix only; owner: whose object owns the lease. rv: the resourceVersion of the lease. size: how many labels there are beside
\* the elector's own, which mark says; they stand for annotations and finalizers, too. count: leaseTransitions.
\* Known to no policy: truth, who wrote spec last (an exempt writer only if it changed the holder), when, and whether both policies
\* were in force since; past, the term of the tenure before; loss, whose lease this write took, cut or deleted, and how old; stir, the same of
\* a write that changed metadata. did: words for it.
\* a holds the lease, b is an honest elector, m an attacker; x is exempt: system:apiserver or system:masters.
NoLoss == [age |-> 0, duration |-> 0, by |-> ""]
None == [there |-> FALSE, holder |-> "", duration |-> 0, writer |-> "", written |-> -1, term |-> 0, suffix |-> 0, owner |-> "",
         size |-> 0, mark |-> FALSE, count |-> 0]
Init == /\ now = 0 /\ rv = 2 /\ in = "none" /\ suffix = 1 /\ past = 0 /\ loss = NoLoss /\ stir = NoLoss /\ did = "a leads"
        /\ \E d \in Durations : lease = [None EXCEPT !.there = TRUE, !.holder = "a", !.duration = d]
        /\ truth = [by |-> "a", at |-> 0, safe |-> FALSE]

Read(l) == IF l.suffix = suffix THEN l ELSE [l EXCEPT !.writer = "", !.written = -1, !.term = 0]
Ten(d) == IF d < 10 THEN d ELSE 10       \* the tolerance is two seconds, a fifth of a duration below ten
\* A write w asks for a holder, a duration, an owner, labels and a count; does: it "sets" a value in spec, which the API server dates,
\* "removes" one, or neither, "".
Changes(w) == w.does # "" \/ w.holder # lease.holder \/ w.duration # lease.duration \/ w.count # lease.count
Alters(w) == w.owner # lease.owner \/ w.size # lease.size \/ w.mark # lease.mark
\* The bound is for labels, more are not stamped, and etcd stores an object up to a size, stamps included. A count above MaxCount is none.
Bound == 2
Room == 5
Jump == 2
MaxCount == 6
One(b) == IF b THEN 1 ELSE 0
Labels(l) == l.size + One(l.mark)
Alone(l) == Labels(l) + One(l.suffix # 0) <= Room /\ l.count <= MaxCount
AsOne == Defect = "all lists are compared as one"
Keeping == AsOne \/ Defect = "the next writer keeps what it finds"
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
      first == same /\ lease.suffix # suffix
               /\ (lease.holder # "" \/ Defect = "the first stamp of a free lease keeps what it finds")
      \* Before it, what adds no owner and leaves the writer as it is adds no stamps.
      before == kept /\ first /\ w.owner \in {"", lease.owner}
      inherits == lease.there /\ w.owner = lease.owner /\ ~first
                  /\ (writer # old.writer \/ (~same /\ Defect # "owners are removed with the writer only"))
      \* What the next writer finds beyond the bound is removed from its write.
      drops == lease.there /\ ~kept /\ old.writer # p /\ ~first /\ Labels(w) > Bound /\ ~Keeping
      \* Of a write that is not bound, what would end the room for stamps replaces the rest, or is left out with it.
      spared == old.writer = p \/ (Changes(w) /\ IF old.writer = "" THEN same /\ lease.holder # "" ELSE writer = old.writer)
      grows == lease.there /\ spared /\ Labels(w) > Bound + 1 /\ Labels(lease) <= Bound + 1
      size == IF (drops /\ w.size = lease.size) \/ grows THEN 0 ELSE w.size
      fits == ~before /\ size + One(w.mark) <= IF Defect = "stamps are written without room" THEN 2 * Room ELSE Bound + 1
  IN [there |-> TRUE, holder |-> w.holder, duration |-> w.duration, size |-> size, mark |-> w.mark, count |-> w.count,
      writer |-> IF fits THEN writer ELSE "", written |-> IF fits THEN written ELSE -1, term |-> IF fits THEN term ELSE 0,
      suffix |-> IF fits THEN suffix ELSE 0, owner |-> IF inherits /\ Defect # "an owner is inherited" THEN "" ELSE w.owner]
Plant(w) == [there |-> TRUE, holder |-> w.holder, duration |-> w.duration, owner |-> w.owner, size |-> w.size, mark |-> w.mark,
             count |-> w.count, writer |-> "m", written |-> MaxTime, term |-> 3 * MaxWrites, suffix |-> suffix]
Leave(w) == [lease EXCEPT !.there = TRUE, !.holder = w.holder, !.duration = w.duration, !.owner = w.owner, !.size = w.size,
                          !.mark = w.mark, !.count = w.count]
\* Before the label is there in full, nothing is stamped, and what looks like a stamp is removed from each write.
Cleaned(w) == [Leave(w) EXCEPT !.writer = "", !.written = -1, !.term = 0, !.suffix = 0]

Old == Read(lease)
Own(p) == p = "x" \/ Old.writer = p
Held == Old.writer # "" /\ lease.holder # ""
Expired(written) ==
  /\ written # -1
  /\ \/ Old.written = -1 \/ lease.duration = 0
     \/ 5 * (written - Old.written) + (IF Defect = "no tolerance" THEN 0 ELSE Ten(lease.duration)) >= 5 * lease.duration
\* The bounds, about a write w of p that becomes l: neither the stamped writer nor the first stamp of a lease that is held is bound.
Counting == Defect = "stamps are counted"
Count(l) == Labels(l) + One(Counting /\ l.suffix # 0)
Spared(p, w) == \/ Own(p)
                \/ Old.writer = "" /\ lease.there /\ lease.holder # "" /\ w.holder = lease.holder /\ Changes(w)
Bounds(p, w, l) ==
  /\ \/ Spared(p, w) /\ ~Counting /\ ~AsOne /\ Defect # "the writer is bound"
     \/ Count(l) <= Bound + One(Counting) \/ Count(l) < Count(lease)
     \/ Count(l) = Count(lease) /\ (l.owner = lease.owner \/ ~AsOne)
  /\ w.count <= lease.count + 1 \/ w.count < Jump \/ Defect = "a count may jump"
\* The rule owner-reference-added of strict: who may write spec is the guard's to say.
Rule(p, w) == \/ "rules" \notin Asked \/ w.owner \in {"", lease.owner} \/ lease.holder = ""
              \/ Defect # "an owner may not be put back" /\ (Own(p) \/ Changes(w))
\* The guard, about the same; is: whether the policy that stamps has stamped it.
Admits(p, w, l, is) ==
  \/ in \in {"none", "pending"}
  \/ Bounds(p, w, l) /\ Rule(p, w) /\ (~lease.there \/ Own(p))
  \/ /\ Bounds(p, w, l) /\ Rule(p, w) /\ lease.there
     /\ ~Held \/ ~Changes(w) \/ Expired(Read(l).written) \/ (Defect = "only the holder is guarded" /\ w.holder = lease.holder)
     /\ is \/ (~Held /\ [l EXCEPT !.holder = "", !.duration = 0, !.owner = ""] = [lease EXCEPT !.holder = "", !.duration = 0, !.owner = ""])
     /\ ~Held \/ Changes(w) \/ w.owner = lease.owner \/ Defect = "owners are not guarded"
     /\ ~Held \/ Changes(w) \/ ~Alters(w) \/ "open" \in Asked \/ Defect = "metadata is not guarded"
Lost(p) == IF truth.safe /\ truth.by # "x" /\ p \notin {truth.by, "x"} /\ lease.holder # ""
           THEN [age |-> now - truth.at, duration |-> lease.duration, by |-> p] ELSE NoLoss
Term(l) == IF l.term # 0 THEN l.term ELSE IF Defect = "a created lease counts from its own revision" THEN rv ELSE rv - 1

Store(p, w, l) ==
  /\ rv <= MaxWrites + 1 /\ Admits(p, w, l, in = "both") /\ Alone(l) /\ lease' = l /\ rv' = rv + 1 /\ UNCHANGED <<now, in, suffix>>
  /\ did' = p \o (IF ~Changes(w) THEN " changes metadata" ELSE IF ~lease.there THEN " creates the lease"
                   ELSE IF w.holder = lease.holder THEN " renews or changes the lease" ELSE IF w.holder = "" THEN " releases the lease"
                   ELSE " makes " \o w.holder \o " the holder")
  /\ stir' = IF ~Changes(w) /\ Alters(w) THEN Lost(p) ELSE NoLoss
  /\ IF ~Changes(w) THEN UNCHANGED <<truth, past>> /\ loss' = NoLoss
     ELSE /\ loss' = IF lease.there THEN Lost(p) ELSE NoLoss
          /\ truth' = IF p = "x" /\ w.holder = lease.holder THEN truth ELSE [by |-> p, at |-> now, safe |-> in = "both"]
          /\ past' = IF ~lease.there \/ in # "both" THEN past
                     ELSE IF w.holder # lease.holder \/ l.writer # Old.writer THEN Term(Old) ELSE past
Sent(p, o, w) == IF in = "both" THEN Stamped(p, o, w)
                 ELSE IF in = "pending" /\ Defect # "the label follows a check" THEN Cleaned(w) ELSE Leave(w)
Write(p, o, w) == \/ Store(p, w, Sent(p, o, w))
                  \/ /\ p = "m" /\ in # "both" /\ (in # "pending" \/ Defect = "the label follows a check")
                     /\ Store(p, w, Plant(w))
Delete(p) == /\ rv <= MaxWrites + 1 /\ lease.there
             /\ in \in {"none", "pending"} \/ Own(p) \/ ~Held \/ lease.duration = 0 \/ Defect = "a deletion is not guarded"
             /\ lease' = None /\ rv' = rv + 1 /\ loss' = Lost(p) /\ stir' = NoLoss /\ past' = Term(Old)
             /\ truth' = [by |-> "", at |-> now, safe |-> FALSE] /\ did' = p \o " deletes the lease" /\ UNCHANGED <<now, in, suffix>>
Collect == /\ lease.owner \in {"m", "earlier"} /\ lease' = None /\ rv' = rv + 1 /\ stir' = NoLoss /\ loss' = (IF lease.owner = "m" THEN Lost("m") ELSE NoLoss) /\ past' = Term(Old)
           /\ truth' = [by |-> "", at |-> now, safe |-> FALSE] /\ did' = "the garbage collector deletes the lease"
           /\ UNCHANGED <<now, in, suffix>>
Wait == now < MaxTime /\ now' = now + 1 /\ did' = "half a second passes" /\ loss' = NoLoss /\ stir' = NoLoss /\ UNCHANGED <<rv, lease, in, suffix, truth, past>>
\* Both come back under a suffix that nobody knew; or, if it is known, after a while in which each write lost its stamps, and a check.
Switch(to) == /\ to # in /\ suffix <= MaxSwitches /\ (to = "guard" => in = "both") /\ in' = to
              /\ (to = "pending" => in = "none") /\ (to = "both" /\ "pending" \in Policies => in = "pending")
              /\ (lease.suffix = suffix => to # IF Defect = "the label follows a check" THEN "pending" ELSE "both") \/ "pending" \notin Policies
              /\ suffix' = IF to = "both" /\ Defect # "the suffix is kept" /\ "pending" \notin Policies THEN suffix + 1 ELSE suffix
              /\ truth' = [truth EXCEPT !.safe = FALSE] /\ loss' = NoLoss /\ stir' = NoLoss /\ past' = 0 /\ UNCHANGED <<now, rv>>
              /\ lease' = IF lease.owner = "m" THEN [lease EXCEPT !.owner = "earlier"] ELSE lease
              /\ did' = "in force: " \o to
Same == [holder |-> lease.holder, duration |-> lease.duration, owner |-> lease.owner, size |-> lease.size, mark |-> lease.mark,
         count |-> lease.count, does |-> ""]
\* What an elector writes: it may put its label and its owner back, whatever is there.
Puts(p) == {[mark |-> mark, owner |-> owner] : mark \in {lease.mark} \cup (IF "label" \in Habits THEN {TRUE} ELSE {}),
                                              owner \in {lease.owner} \cup (IF "owner" \in Habits THEN {p} ELSE {})}
Its(p, h, d, does, put) == [Same EXCEPT !.holder = h, !.duration = d, !.owner = put.owner, !.mark = put.mark, !.does = does,
                            !.count = IF h = p /\ lease.holder # p /\ Counts # {} THEN @ + 1 ELSE @]
Keeps(p) == lease.holder = p /\ truth.by \in {p, "x"}
Waited == lease.holder = "" \/ now - truth.at >= 2 * lease.duration
Honest(p, o) == \E put \in Puts(p) :
  \/ Keeps(p) /\ \E h \in {p, ""} : Write(p, o, Its(p, h, lease.duration, IF h = p THEN "sets" ELSE "", put))
  \/ Waited /\ \E d \in Durations : Write(p, o, Its(p, p, d, "sets", put))
\* What a lease got before it was stamped stays, because the first stamp of a held lease changes nothing else: a limit.
Owner == IF in # "both" \/ (lease.suffix # suffix /\ lease.holder # "") THEN "earlier" ELSE "m"
Next == \/ Wait \/ Collect \/ Delete("m") \/ \E to \in Policies : Switch(to)
        \/ \E o \in Offsets :
             \/ Honest("a", o) \/ Honest("b", o)
             \/ \E h \in {"", "m", lease.holder}, d \in Durations \cup {0, lease.duration}, w \in {Owner, lease.owner},
                s \in {"", "sets", "removes"} : Write("m", o, [Same EXCEPT !.holder = h, !.duration = d, !.owner = w, !.does = s])
             \/ lease.there /\ \E n \in Sizes : Write("m", o, [Same EXCEPT !.size = n])
             \/ lease.there /\ in = "both" /\ \E c \in Counts : Write("m", o, [Same EXCEPT !.count = c])
             \/ lease.there /\ Write("x", o, [Same EXCEPT !.holder = "b"])
Spec == Init /\ [][Next]_<<vars, did>>

Apart == CHOOSE n \in 0..10 : (\E x, y \in Offsets : x - y = n) /\ \A x, y \in Offsets : x - y <= n
\* Nobody else takes, renews, cuts, releases or deletes the lease of its writer before it has expired, but for the tolerance, what the
\* clocks of API servers differ by, and the second to which a stamp is cut.
Kept == (loss.by # "" /\ loss.duration # 0) => 5 * loss.age > 10 * loss.duration - 2 * Ten(loss.duration) - 5 * Apart - 10
\* The holder is never refused, if it wrote the lease last, or was chosen by an exempt writer.
Renewal == [Same EXCEPT !.does = "sets"]
Renews == (lease.holder \in {"a", "b"} /\ truth.by \in {lease.holder, "x"}) =>
            \A o \in Offsets : Admits(lease.holder, Renewal, Sent(lease.holder, o, Renewal), in = "both")
\* A takeover is never refused once the duration has passed, if the clocks are within the bound.
Within == Apart <= (IF lease.duration >= 10 THEN 4 ELSE IF lease.duration >= 5 THEN 2 ELSE 0)
Over == lease.there /\ in = "both" /\ Within /\ now - truth.at >= 2 * lease.duration
Takes == Over =>
           \A o \in Offsets : LET w == [Renewal EXCEPT !.holder = "c"] IN Admits("c", w, Stamped("c", o, w), TRUE)
\* No law: without a lease that is over, Takes says nothing.
NeverOver == ~Over
\* The term of a tenure is greater than that of every tenure before, over deletion and creation too.
Grows == (lease.there /\ in = "both" /\ truth.safe) => Term(Old) > past
\* The second law: what an honest elector writes, and what the API server alone would store, is stored, whatever others wrote before. It
\* renews or releases its lease, or takes one that is free or has expired, and puts back what it always sets. A release may come late:
\* someone else made the lease free before it.
Harmless ==
  lease.there => \A p \in {"a", "b"}, o \in Offsets : \A put \in Puts(p) :
    LET Stores(w) == Alone(Leave(w)) => (Admits(p, w, Sent(p, o, w), in = "both") /\ Alone(Sent(p, o, w)))
    IN /\ Keeps(p) => Stores(Its(p, p, lease.duration, "sets", put)) /\ Stores(Its(p, "", lease.duration, "", put))
       /\ (in # "guard" /\ Waited /\ Within) => \A d \in Durations : Stores(Its(p, p, d, "sets", put))
       /\ (in # "guard" /\ lease.holder = "") => Stores(Its(p, "", lease.duration, "sets", put))
\* Nobody else changes metadata of the lease of its writer before it has expired, so no write of the writer fails for it.
Undisturbed == ("open" \notin Asked /\ stir.by # "" /\ stir.duration # 0) =>
                 5 * stir.age > 10 * stir.duration - 2 * Ten(stir.duration) - 5 * Apart - 10
\* The next leader can count.
Counted == lease.there => lease.count < MaxCount
=============================================================================
