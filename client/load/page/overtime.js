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

function ratePanel(rows, x, frame, average) {
  const high = maxOf(rows.map((row) => row.rate)) * 1.08 || 1;
  const y = linear(0, high, frame.bottom, frame.top);
  const ticks = rateTicks(high);
  const path = linePath(rows.map((row) => [x(row.middle), y(row.rate)]));
  const first = px(x(rows[0].middle));
  const last = px(x(rows[rows.length - 1].middle));
  const g = svg(
      'g', {'data-panel': 'throughput'},
      axisLeft({...frame, scale: y, ticks: y.ticks(4), text: ticks.text, unit: `Throughput, ${ticks.unit}`}),
      svg('path', {class: 'area m-rate', d: `${path}L${last} ${frame.bottom}L${first} ${frame.bottom}Z`}),
      svg('path', {class: 'line m-rate', d: path}));
  if (num(average) && average < high) {
    const at = px(y(average));
    g.append(svg('line', {class: 'mean', x1: frame.left, x2: frame.right, y1: at, y2: at}));
  }
  return {g, y};
}

function errorPanel(rows, x, frame) {
  const high = maxOf(rows.map((row) => row.errors));
  const thick = Math.max(1.5, (frame.right - frame.left) / rows.length - 0.5);
  const path = rows.filter((row) => row.errors > 0).map((row) => {
    const tall = Math.max(2, (row.errors / high) * (frame.bottom - frame.top));
    return `M${px(x(row.middle) - thick / 2)} ${frame.bottom}v${px(-tall)}h${px(thick)}v${px(tall)}z`;
  });
  return svg(
      'g', {class: 'axis', 'data-panel': 'errors'},
      svg('text', {class: 'unit', x: 0, y: frame.top - 8}, `Errors, at most ${count(high)} a step`),
      svg('line', {class: 'base', x1: frame.left, x2: frame.right, y1: frame.bottom, y2: frame.bottom}),
      svg('path', {class: 'solid m-error', d: path.join('')}));
}

function latencyPanel(rows, x, frame) {
  const values =
      rows.flatMap((row) => LATENCIES.map(([name]) => row[name])).filter((value) => value !== null);
  const [low, high] = logDomain(values);
  const y = logarithmic(low, high, frame.bottom, frame.top);
  const ticks = timeTicks(Math.sqrt(low * high));
  const shown = LATENCIES.filter(([name]) => rows.some((row) => row[name] !== null));
  const ends = shown.map(([name]) => y(rows.findLast((row) => row[name] !== null)[name]) + 4);
  const places = spread(ends, 15, frame.top, frame.bottom + 4);
  const g = svg(
      'g', {'data-panel': 'latency'}, axisLeft({
        ...frame,
        scale: y,
        ticks: y.ticks(7),
        text: ticks.text,
        unit: `Latency, ${ticks.unit}, logarithmic`
      }),
      shown.map(([name]) => svg('path', {
                  class: `line m-${name}`,
                  'data-line': name,
                  d: linePath(rows.map((row) => [x(row.middle), row[name] === null ? null : y(row[name])]))
                })),
      shown.map(
          ([name], index) =>
              svg('text', {class: `end m-${name}`, x: frame.right + 8, y: px(places[index])}, name)));
  return {g, y};
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
  const left = 50;
  const right = width - 38;
  const begin = rows[0].begin;
  const x = linear(begin, rows[rows.length - 1].end, left, right);
  const failed = rows.some((row) => row.errors > 0);
  const timed = rows.some((row) => row.p50 !== null);
  let top = 32;
  const frame = (height, gap) => {
    const made = {left, right, top, bottom: top + height};
    top += height + gap;
    return made;
  };
  const panels = [ratePanel(rows, x, frame(150, failed ? 32 : 44), average)];
  const errors = failed ? errorPanel(rows, x, frame(26, 40)) : null;
  if (timed)
    panels.push(latencyPanel(rows, x, frame(190, 0)));
  else
    top -= 40;
  const bottom = top;
  const cursor = svg('g', {class: 'cursor', visibility: 'hidden'});
  const root = canvas(
      width, bottom + 42, 'Throughput and latency over time; the arrow keys read it step by step',
      axisBottom({
        left,
        right,
        top: 20,
        bottom,
        scale: x,
        ticks: x.ticks(width / 90),
        text: trim,
        title: 'Seconds since the start'
      }),
      panels[0].g, errors, timed ? panels[1].g : null, cursor);
  const items = rows.map((row) => ({x: x(row.middle), y: 60, tip: () => timeTip(row)}));
  const dot = (value, scale, name, at) =>
      (value === null ? null : svg('circle', {class: `dot m-${name}`, cx: at, cy: px(scale(value)), r: 4}));
  const read = (index) => {
    const row = rows[index];
    const at = px(items[index].x);
    cursor.replaceChildren(
        ...[svg('line', {x1: at, x2: at, y1: 24, y2: bottom}), dot(row.rate, panels[0].y, 'rate', at),
            ...(timed ? LATENCIES.map(([name]) => dot(row[name], panels[1].y, name, at)) : [])]
            .filter(Boolean));
    return {};
  };
  return exploreAlong(root, items, marker(cursor, read));
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
