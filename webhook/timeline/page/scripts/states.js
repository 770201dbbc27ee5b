// What a lane is at an instant, and the times at which it is uncertain who leads, or whether anyone does.
"use strict";

/**
 * The times at which the holder's name alone would say too much, in order.
 *
 * `silent`: after the last renewal before a lease expired, as its holder may have ended right after it. `contested`:
 * after a steal, until the lease of the one before would have expired, as that one may not have noticed.
 */
function doubtsOf(lane) {
  const doubt = (kind, span, begins, ends, holder, text) => ({
    type: "doubt",
    lane,
    key: `${kind}${begins}`,
    kind,
    span,
    begins,
    ends,
    holder,
    writer: "",
    manager: "",
    count: 1,
    text,
  });
  const silent = lane.gaps
    .filter((gap) => gap.expired && gap.begins < gap.span.begins)
    .map((gap) => {
      const span = lane.spans[lane.spans.indexOf(gap.span) - 1] ?? gap.span;
      return doubt("silent", span, gap.begins, gap.span.begins, gap.holder, "from the last renewal until it expired");
    });
  const contested = lane.marks
    .filter((mark) => mark.kind === "steal")
    .map((mark) => {
      const index = bySpanBegin.right(lane.spans, mark.begins) - 1;
      const before = lane.spans[index - 1];
      const last = mark.ends ?? mark.begins;
      const renewed = Math.max(lastRenewal(lane, mark.begins - 1) ?? -Infinity, before ? before.begins : -Infinity);
      const expiry = (mark.ends ?? renewed) + (lane.duration ?? 0) * SECOND;
      const text = before ? `taken from ${brief(before.holder)}, which held it` : "taken while it was held";
      return doubt("contested", lane.spans[index], mark.begins, Math.max(last, expiry), mark.holder, text);
    });
  return d3.sort([...silent, ...contested], (one) => one.begins);
}

/** Why it is uncertain who leads at an instant, if it is. */
function doubtAt(lane, at) {
  return lane.doubts.find((one) => at >= one.begins && at <= one.ends && (one.kind !== "silent" || at > one.begins));
}

/** How long no one led: a range, as most clients go on for a while after their last renewal. */
function gapSpan(book, gap) {
  const whole = lengthOf(book, gap);
  const { lane } = gap;
  if (!gap.expired || gap.begins >= gap.span.begins) return length(whole);
  // A holder that renewed again lived: before its deadline it led.
  if (gap.holder && gap.nextHolder === gap.holder) return `up to ${length(Math.max(0, whole - lane.deadline))}`;
  const least = Math.max(0, whole - lane.leadsFor);
  return least ? `${length(least)} to ${length(whole)}` : `up to ${length(whole)}`;
}

/** What a lane was at an instant: short for its label, with a note below it, and long for the reading. */
function stateAt(book, lane, at) {
  const span = spanAt(book, lane, at);
  const title = brief(lane.title);
  if (!span) {
    const [first] = lane.marks;
    const isBefore = first && first.kind === "created" && at < first.begins;
    const words = isBefore ? "not created yet" : "not seen";
    return { kind: "none", short: words, long: `${title} was ${words}` };
  }
  const { kind } = span;
  const holder = brief(span.holder) || "a holder that the input does not name";
  const since = at - span.begins;
  if (kind === "leaderless") {
    const words = since ? `no leader for ${length(since)}` : "no leader from now on";
    return { kind, span, short: words, long: `${title} has ${words.replace(" for", ", for")}` };
  }
  const tick = lastRenewal(lane, at);
  const renewed = span.begins >= book.from && !(tick > span.begins) && kind === "held" ? span.begins : tick;
  const renewal = renewed === undefined ? "" : `, renewed ${length(at - renewed)} before`;
  if (kind === "overdue") {
    const expired = since ? `expired ${length(since)} before` : "expires now";
    const long = `${title} is overdue and has no leader: the lease of ${holder} ${expired}${renewal}`;
    return { kind, span, short: span.holder, note: "overdue", long };
  }
  if (kind === "several") return { kind, span, short: "many changes", long: `${title} changes too often to say` };
  if (kind === "offered") return { kind, span, short: "candidate", long: `${title} is a candidate${renewal}` };
  const short = span.holder || "a holder that is not named";
  const doubt = doubtAt(lane, at);
  if (doubt && doubt.kind === "silent") {
    const silence = `${length(at - doubt.begins)} before`;
    const long = `${title} possibly has no leader: ${holder} holds it, but renewed it for the last time ${silence}`;
    return { kind: "silent", span, short, note: "possibly no leader", long };
  }
  if (doubt) {
    const taken = `${title} was taken while it was held: two may lead`;
    const long = `${taken}; ${holder} holds it since ${moment(book, span.begins)}, ${doubt.text}`;
    return { kind: "contested", span, short, note: "two may lead", long };
  }
  const from = `since ${moment(book, span.begins)}${span.begins < book.from ? ", as it says itself" : ""}`;
  return { kind, span, short, note: "", long: `${title} is held by ${holder}, ${from}${renewal}` };
}
