// What was paid over time. The figures are in the page's table, too.
(() => {
  "use strict";
  const box = document.querySelector("[data-cost]");
  if (!box) return;

  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name);
  const dollars = (_, value) => (value == null ? "" : "$" + value.toFixed(value < 1 ? 4 : 2));

  function draw({ seq, paid, everything }) {
    if (seq.length < 2) return;
    box.hidden = false;
    const plot = box.querySelector(".plot");
    const axis = { stroke: color("--faint"), grid: { stroke: color("--line") }, ticks: { show: false } };
    const line = { width: 2, value: dollars, points: { show: false } };
    const chart = new uPlot(
      {
        width: plot.clientWidth,
        height: 220,
        scales: { x: { time: false } },
        cursor: { drag: { x: true, y: false } },
        axes: [
          { ...axis, values: (_, at) => at.map((each) => seq[each] ?? "") },
          { ...axis, size: 70, values: (_, at) => at.map((each) => dollars(_, each)) },
        ],
        series: [
          { label: "Request", value: (_, at) => seq[at] ?? "" },
          { ...line, label: "Paid", stroke: color("--kept") },
          { ...line, label: "Sending everything", stroke: color("--dropped"), dash: [6, 4] },
        ],
      },
      [seq.map((_, index) => index), paid, everything],
      plot,
    );
    chart.over.addEventListener("click", () => {
      const at = chart.cursor.idx;
      if (at != null && !chart.select.width) location.href = `${box.dataset.session}/requests/${seq[at]}`;
    });
    new ResizeObserver(() => chart.setSize({ width: plot.clientWidth, height: 220 })).observe(plot);
  }

  fetch(box.dataset.cost)
    .then((answer) => (answer.ok ? answer.json() : { seq: [] }))
    .then(draw);
})();
