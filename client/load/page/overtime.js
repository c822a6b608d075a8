// Throughput, errors and latency on one time axis.

const LATENCIES = [['max', 'max_us'], ['p99', 'p99_us'], ['p50', 'p50_us']];

function timelineRows(data) {
  const points = list(data.timeline);
  const step = points.length > 1 ? (points[points.length - 1].t - points[0].t) / (points.length - 1) :
                                   num(data.seconds) || 1;
  return points.map((point) => ({
                      begin: point.t,
                      end: point.t + step,
                      middle: point.t + step / 2,
                      calls: num(point.calls) || 0,
                      errors: num(point.errors) || 0,
                      rate: (num(point.bytes) || 0) / step,
                      callRate: (num(point.calls) || 0) / step,
                      ...Object.fromEntries(LATENCIES.map(
                          ([name, key]) => [name, point.calls > 0 && point[key] > 0 ? point[key] : null])),
                    }));
}

function timeTip(row) {
  return {
    title: `${digits(row.begin)} to ${digits(row.end)}${NBSP}s`,
    rows: [
      ['Throughput', rate(row.rate), 'm-rate'], ['Calls', perSecond(row.callRate)],
      ...LATENCIES.map(([name]) => [name, time(row[name]), 'm-' + name]),
      ...(row.errors ? [['Errors', count(row.errors), 'm-error']] : [])
    ],
  };
}

function drawOverTime(width, rows, average) {
  const failed = rows.some((row) => row.errors > 0);
  const latencies = LATENCIES.filter(([name]) => rows.some((row) => row[name] !== null));
  const points = (name) => rows.map((row) => ({x: row.middle, y: row[name]}));
  const high = maxOf(rows.map((row) => row.rate)) * 1.08 || 1;
  const most = maxOf(rows.map((row) => row.errors));
  const rates = rateTicks(high);
  const datasets = [
    lineOf('m-rate', points('rate'), {label: 'rate', yAxisID: 'rate', fill: 'origin'}),
    ...latencies.map(
        ([name]) => lineOf(
            'm-' + name, points(name),
            {label: name, yAxisID: 'latency', borderWidth: name === 'max' ? 1 : 1.6})),
    ...(failed ? [{
      type: 'bar',
      label: 'errors',
      data: rows.map((row) => ({x: row.middle, y: row.errors || null})),
      yAxisID: 'errors',
      backgroundColor: colourOf('m-error'),
      barThickness: Math.max(1.5, (width - 90) / rows.length - 0.5),
      minBarLength: 2
    }] :
                 [])
  ];
  // Panels one above the other, the last one on top.
  const panel = (weight) => ({axis: 'y', position: 'left', stack: 'panels', stackWeight: weight});
  return plot(
      width, failed ? 500 : 440, 'Throughput and latency over time; the arrow keys read it step by step', {
        datasets,
        scales: {
          x: axis('Seconds since the start', rows[0].begin, rows[rows.length - 1].end, trim, {grid: false}),
          ...(latencies.length ? {
            latency: timeAxis(
                'Latency', logDomain(rows.flatMap((row) => latencies.map(([name]) => row[name]))), panel(10))
          } :
                                 {}),
          ...(failed ? {errors: axis('Errors', 0, most * 1.7, count, {ticks: [0, most], ...panel(2.6)})} :
                       {}),
          rate: axis(`Throughput, ${rates.unit}`, 0, high, rates.text, panel(8)),
        },
        options: {layout: {padding: {right: 38, top: 8}}},
        cursor: true,
        over(made) {
          const {left, right} = made.chartArea;
          if (num(average) && average < high) {
            const y = made.scales.rate.getPixelForValue(average);
            drawLine(made, left, y, right, y, 'm-rate', [3, 4]);
          }
          if (!latencies.length) return;
          const {latency} = made.scales;
          const ends = latencies.map(
              ([name]) => latency.getPixelForValue(rows.findLast((row) => row[name] !== null)[name]));
          spread(ends, 15, latency.top, latency.bottom)
              .forEach(
                  (y, index) => drawText(
                      made, latencies[index][0], right + 8, y, 'm-' + latencies[index][0], {weight: 650}));
        },
        items: (made) =>
            pointItems(made, rows.map((row) => () => timeTip(row)), datasets.map((_, index) => index)),
      });
}

function overTimeSection(data) {
  const rows = timelineRows(data);
  if (rows.length < 2) return null;
  const average = num((data.total || {}).bytes_per_second);
  return {
    id: 'time',
    title: 'Over time',
    note: 'Throughput of right answers, and latency of the calls that ended in each step.' +
        (average ? ` The dashed line is the mean, ${rate(average)}.` : ''),
    build(body) {
      const host = el('div', {class: 'plot'});
      body.append(host);
      chart(host, 'over-time', (width) => drawOverTime(width, rows, average));
    },
  };
}
