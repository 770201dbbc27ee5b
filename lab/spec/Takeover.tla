------------------------------ MODULE Takeover ------------------------------
\* The takeover guard without the component `stamp`: the rules of the `strict` preset about one Lease, by the stamps that API servers
\* with different clocks leave in managedFields. Time is in ticks of half a second; stamps are whole seconds.
\* Defect names the clause of the design that is left out: "" is the design.
EXTENDS Integers, Sequences, TLC
CONSTANTS Offsets,      \* by how many ticks the clock of each API server is ahead: a set of numbers, one server for each
          Durations,    \* seconds
          MaxTime, MaxWrites, Defect
VARIABLES now, lease, renewed, dated, writes, loss, did
vars == <<now, lease, renewed, dated, writes, loss>>
\* lease: holder "" is nobody, duration 0 is none, renewTime FALSE is none; seen: the stamp of the last renewal;
\* claimed: renewTime as its writer chose it. renewed and dated are known to no rule: the tick of the last renewal,
\* and of the last write that moved the stamp. loss: whose lease this write took, cut or deleted, and how old. did: words for it.
\* a is the holder: client-go, in a pod. b is an honest elector. m is an attacker in a pod, u is one without a pod.
Seconds == 0..(MaxTime \div 2)
Usual == Durations \ {1}                 \* a second: what only an attacker sets
NoLoss == [age |-> 0, duration |-> 0, by |-> ""]
Init == /\ now = 0 /\ renewed = 0 /\ dated = 0 /\ writes = 0 /\ loss = NoLoss /\ did = "a leads"
        /\ \E d \in Usual, o \in Offsets :
             lease = [holder |-> "a", duration |-> d, renewTime |-> TRUE, seen |-> o \div 2, claimed |-> 0, owner |-> ""]

Stamp(o) == (now + o) \div 2
Ten(d) == IF d < 10 THEN d ELSE 10       \* the tolerance is two seconds, a fifth of a duration below ten
Expired(o) ==
  \/ lease.holder = "" \/ ~lease.renewTime \/ lease.duration = 0
  \/ LET written == IF Defect = "the time of the write is the webhook's clock" THEN (now + 12) \div 2 ELSE Stamp(o)
         seen == IF Defect = "expiry by renewTime" THEN lease.claimed ELSE lease.seen
         slack == IF Defect = "no tolerance" THEN 0
                  ELSE IF Defect = "twice the tolerance" THEN 2 * Ten(lease.duration) ELSE Ten(lease.duration)
     IN 5 * (written - seen) + slack >= 5 * lease.duration

Wait == now < MaxTime /\ now' = now + 1 /\ did' = "half a second passes" /\ loss' = NoLoss /\ UNCHANGED <<lease, renewed, dated, writes>>
Write == writes < MaxWrites /\ writes' = writes + 1 /\ UNCHANGED now
Lost(p) == IF lease.holder = "" THEN NoLoss ELSE [age |-> now - renewed, duration |-> lease.duration, by |-> p]

\* The holder renews, or anyone does in its name.
Renew(p, o, d, c) ==
  /\ Write /\ lease.holder # "" /\ (p = "a" => lease.holder = "a" /\ d = lease.duration)
  /\ lease' = [lease EXCEPT !.duration = d, !.renewTime = TRUE, !.seen = Stamp(o), !.claimed = c]
  /\ renewed' = now /\ dated' = now /\ loss' = NoLoss
  /\ did' = p \o " renews the lease of " \o lease.holder \o ", with a duration of " \o ToString(d) \o " s"
\* takeover-before-expiry. Which of the other fields a taker sets is its choice.
Take(p, o, d, c) ==
  /\ Write /\ lease.holder # p /\ (Defect = "no takeover-before-expiry" \/ Expired(o))
  /\ lease' = [lease EXCEPT !.holder = p, !.duration = d, !.renewTime = TRUE, !.seen = Stamp(o), !.claimed = c]
  /\ renewed' = now /\ dated' = now /\ loss' = Lost(p) /\ did' = p \o " takes the lease"
Rename(p, o) ==
  /\ Write /\ lease.holder # p /\ (Defect = "no takeover-before-expiry" \/ Expired(o))
  /\ lease' = [lease EXCEPT !.holder = p] /\ UNCHANGED <<renewed, dated>> /\ loss' = Lost(p) /\ did' = p \o " becomes the holder, and renews nothing"
\* foreign-release: the token of a pod tells its name.
Release(p, o) ==
  /\ Write /\ lease.holder # "" /\ (p \in {lease.holder, "u"} \/ Defect = "no foreign-release" \/ Expired(o))
  /\ lease' = [lease EXCEPT !.holder = "", !.duration = 1] /\ UNCHANGED <<renewed, dated>>
  /\ loss' = IF p = lease.holder THEN NoLoss ELSE Lost(IF p = "u" THEN "limit" ELSE p)
  /\ did' = p \o " releases the lease"
\* duration-shortened
Shorten(p, d) ==
  /\ Write /\ lease.holder # "" /\ d < lease.duration /\ Defect = "no duration-shortened"
  /\ lease' = [lease EXCEPT !.duration = d] /\ UNCHANGED <<renewed, dated>> /\ loss' = Lost(p) /\ did' = p \o " lowers the duration"
Undate(p) ==
  /\ Write /\ lease.holder # "" /\ lease.renewTime /\ Defect = "no duration-shortened"
  /\ lease' = [lease EXCEPT !.renewTime = FALSE] /\ UNCHANGED <<renewed, dated>> /\ loss' = Lost(p) /\ did' = p \o " removes renewTime"
\* live-lease-deleted, and owner-reference-added: the garbage collector deletes what has an owner that does not exist.
Delete(p, o) ==
  /\ Write /\ lease.holder # "" /\ (Defect = "no live-lease-deleted" \/ Expired(o))
  /\ lease' = [lease EXCEPT !.holder = "", !.renewTime = FALSE] /\ UNCHANGED <<renewed, dated>> /\ loss' = Lost(p) /\ did' = p \o " deletes the lease"
Own(p) ==
  /\ Write /\ lease.owner = "" /\ (Defect = "no owner-reference-added" \/ (lease.holder = "" /\ ~lease.renewTime))
  /\ lease' = [lease EXCEPT !.owner = IF lease.holder = "" THEN "before" ELSE "held"] /\ UNCHANGED <<renewed, dated>> /\ loss' = NoLoss /\ did' = p \o " adds an owner that does not exist"
Collect ==
  /\ lease.owner # "" /\ lease' = [lease EXCEPT !.owner = "", !.holder = "", !.renewTime = FALSE]
  /\ UNCHANGED <<now, renewed, dated, writes>> 
  /\ loss' = Lost(IF lease.owner = "held" THEN "m" ELSE "limit")
  /\ did' = "the garbage collector deletes the lease"
\* A label under the manager's name of the holder moves the stamp forward, and nothing refuses that; renewal-stamp-tampered
\* refuses every other change of it.
Label(o) ==
  /\ Write /\ lease.holder # "" /\ Stamp(o) >= lease.seen /\ lease' = [lease EXCEPT !.seen = Stamp(o)] /\ dated' = now
  /\ UNCHANGED renewed /\ loss' = NoLoss /\ did' = "a label is set as the manager of the holder"
Forge(s) ==
  /\ Write /\ s # lease.seen /\ Defect = "no renewal-stamp-tampered" /\ lease' = [lease EXCEPT !.seen = s]
  /\ UNCHANGED <<renewed, dated>> /\ loss' = NoLoss /\ did' = "the stamp is moved"

Next == \/ Wait \/ Collect
        \/ \E o \in Offsets :
             \/ \E d \in Usual : Renew("a", o, d, now \div 2) \/ Take("b", o, d, now \div 2)
             \/ \E p \in {"m", "u"}, d \in Durations, c \in {0, MaxTime} : Renew(p, o, d, c) \/ Take(p, o, d, c)
             \/ (lease.holder = "a" /\ Release("a", o))
             \/ \E p \in {"m", "u"} : Rename(p, o) \/ Release(p, o) \/ Delete(p, o)
             \/ Label(o)
        \/ \E p \in {"m"} : (\E d \in Durations : Shorten(p, d)) \/ Undate(p) \/ Own(p)
        \/ \E s \in Seconds : Forge(s)
Spec == Init /\ [][Next]_<<vars, did>>

Apart == CHOOSE n \in 0..10 : /\ \E x, y \in Offsets : x - y = n
                              /\ \A x, y \in Offsets : x - y <= n
\* No one loses a lease by a write of someone else before it has expired, but for the tolerance, what the clocks differ by, and the
\* second to which a stamp is cut. (A duration that someone sets in a renewal counts from then on.)
NoSteal == loss.by \notin {"", "limit"} => 5 * loss.age > 10 * loss.duration - 2 * Ten(loss.duration) - 5 * Apart - 10
\* A takeover is never denied once the duration has passed since the stamp was moved last, if the clocks are within the bound.
Within == Apart <= (IF lease.duration >= 10 THEN 4 ELSE IF lease.duration >= 5 THEN 2 ELSE 0)
Over == Within /\ now - dated >= 2 * lease.duration
\* No law: without a lease that is over, NoDenial says nothing.
NeverOver == ~Over
NoDenial == Over => \A o \in Offsets : Expired(o)
\* What no rule without identities can keep: a holder that renews every two seconds loses nothing, to nobody; and nothing but what
\* a pod cannot do that is not the holder's.
Keeps == loss.by # "" => loss.age >= 4
KeepsFromPods == loss.by \notin {"", "limit"} => loss.age >= 4
=============================================================================
