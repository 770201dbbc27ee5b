// The axis of time, and the strip above it that shows the whole time and the window that the lanes show.
"use strict";

const STRIP = 30;

/** What the strip shows of each time: those that lie above others come last. */
const STRIPES = {
  silent: (add) => eachDoubt("silent", add),
  lost: (add) => {
    for (const lane of view.lanes)
      for (const gap of lane.gaps) add(chart.whole(gap.span.begins), chart.whole(endOf(book, gap)));
  },
  contested: (add) => eachDoubt("contested", add),
};

function eachDoubt(kind, add) {
  for (const lane of view.lanes)
    for (const one of lane.doubts)
      if (one.kind === kind) add(chart.whole(one.begins), chart.whole(Math.min(one.ends, book.ends)));
}

const brush = d3.brushX().on("brush end", (event) => {
  if (!event.sourceEvent) return;
  view.follows = false;
  const selection = event.selection;
  if (selection && selection[1] - selection[0] >= 2) show(...selection.map(chart.whole.invert));
  else if (event.type === "end") show(...chart.whole.domain());
});

function timeFormat(from, until) {
  const wide = until - from;
  const digits = wide < 2 * SECOND ? 3 : wide < 20 * SECOND ? 1 : 0;
  return (date) => {
    const at = date.getTime() * 1000;
    const time = wide > 6 * 3600 * SECOND ? clock(at).slice(0, 5) : clock(at, digits);
    return at % DAY === 0 || wide > 3 * DAY ? `${d3.utcFormat("%e %b")(date)} ${time.slice(0, 5)}` : time;
  };
}

function paintAxis() {
  const [from, until] = chart.scale.domain();
  const dates = d3.scaleUtc(
    [from, until].map((at) => new Date((book.base + at) / 1000)),
    chart.scale.range(),
  );
  const svg = d3.select("#axis").attr("width", chart.width).attr("height", 24);
  const [left, right] = chart.scale.range();
  const number = Math.max(2, Math.floor((right - left) / 110));
  svg
    .selectAll("g")
    .data([0])
    .join("g")
    .attr("transform", "translate(0,23)")
    .call(d3.axisTop(dates).ticks(number).tickFormat(timeFormat(from, until)).tickSizeOuter(0));
  svg
    .selectAll(".date")
    .data([parts(book.base + Math.max(from, book.from)).date])
    .join("text")
    .attr("class", "date")
    .attr("x", 12)
    .attr("y", 15)
    .text((date) => `${date}, UTC`);
}

function paintOverview() {
  const svg = d3.select("#overview").attr("width", chart.width).attr("height", STRIP);
  const [left, right] = chart.whole.range();
  const key = `${chart.width} ${view.version}`;
  if (svg.property("key") !== key) {
    svg.property("key", key).selectAll("*").remove();
    svg.append("text").attr("class", "date").attr("x", 12).attr("y", 19).text("All lanes");
    svg
      .append("rect")
      .attr("class", "ground")
      .attr("x", left)
      .attr("width", right - left)
      .attr("y", 4)
      .attr("height", STRIP - 8);
    for (const [name, each] of Object.entries(STRIPES))
      svg
        .append("path")
        .attr("class", `stripe ${name}`)
        .attr("d", columns(left, right, each, 4, STRIP - 14));
    svg
      .append("path")
      .attr("class", "happened")
      .attr(
        "d",
        columns(
          left,
          right,
          (add) => {
            for (const lane of view.lanes)
              for (const mark of lane.marks) if (isShown(mark)) add(chart.whole(mark.begins), chart.whole(mark.begins));
          },
          STRIP - 9,
          5,
        ),
      );
    svg
      .append("g")
      .attr("class", "brush")
      .call(
        brush.extent([
          [left, 2],
          [right, STRIP - 2],
        ]),
      );
  }
  const [from, until] = chart.scale.domain();
  svg.select(".brush").call(brush.move, [Math.max(left, chart.whole(from)), Math.min(right, chart.whole(until))]);
}

/** One path with a column for each pixel in which something lies: the more, the higher. */
function columns(left, right, each, top, height) {
  const steps = new Int32Array(Math.ceil(right - left) + 2);
  const column = (x) => Math.min(Math.max(0, Math.floor(x - left)), steps.length - 2);
  each((begins, ends) => {
    steps[column(begins)] += 1;
    steps[column(ends) + 1] -= 1;
  });
  const counts = d3.cumsum(steps);
  const most = Math.max(1, d3.max(counts));
  let path = "";
  counts.forEach((number, index) => {
    const size = number && Math.max(2, height * Math.sqrt(number / most));
    if (size) path += `M${left + index},${top + height}h1v${-size.toFixed(1)}h-1z`;
  });
  return path;
}
